// What holds the memory of the GPUs: why it ran out, what leaks, what is lost between blocks, who
// has the peak.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using base::format_bytes;
using model::DeviceMemory;
using model::MemoryPart;
using model::MemoryUse;
using Verdicts = std::vector<model::Verdict>;

double share_of_peak(const DeviceMemory& memory, double bytes) {
  return memory.peak_bytes > 0 ? bytes / memory.peak_bytes : 0;
}

double bytes_of(const DeviceMemory& memory, MemoryUse use) {
  for (const MemoryPart& part : memory.uses)
    if (part.use == use)
      return part.bytes;
  return 0;
}

/// "GPU 0", "GPU 0 of rank 3" where several processes have one.
std::string gpu_text(const Case& facts, const DeviceMemory& memory) {
  std::string text = fmt::format("GPU {}", memory.device);
  const auto& processes = facts.report().processes;
  if (processes.size() < 2 || memory.process >= processes.size())
    return text;
  const model::ReportProcess& process = processes[memory.process];
  if (process.rank)
    return text + fmt::format(" of rank {}", *process.rank);
  if (process.pid == 0)
    return text;  // of a snapshot: unknown
  return text + fmt::format(" of process {}", process.pid);
}

/// "61 % activations, 12 % gradients": at most three uses, of a twentieth or more.
std::string uses_text(const DeviceMemory& memory) {
  constexpr std::size_t kMostUses = 3;
  std::vector<std::string> texts;
  for (const MemoryPart& use : memory.uses) {
    const double share = share_of_peak(memory, use.bytes);
    if (share < kUseOfPeak || texts.size() == kMostUses)
      break;
    texts.push_back(fmt::format("{} {}", share_text(share), model::memory_use_name(use.use)));
  }
  return base::join(texts, ", ");
}

/// "most by layers.#.mlp (Mlp), 1.2 GiB": the owner with most bytes over all uses; "" where that is
/// no owner.
std::string owner_text(const DeviceMemory& memory) {
  const auto has_owner = [](const MemoryPart& part) { return !part.owner.empty(); };
  const auto largest = std::ranges::find_if(memory.parts, has_owner);
  if (largest == memory.parts.end())
    return {};
  if (share_of_peak(memory, largest->bytes) < kUseOfPeak)
    return {};
  const std::string owner = base::elide(base::printable(largest->owner), 80);
  const std::string_view relation = largest->is_of_time ? "allocated" : "of";
  return fmt::format("largest part: {} {} {}, {}",
                     model::memory_use_name(largest->use),
                     relation,
                     owner,
                     format_bytes(largest->bytes));
}

void add_evidence(const DeviceMemory& memory, model::Verdict& verdict) {
  constexpr std::pair<const char*, MemoryUse> kShares[] = {
      {"activations_share", MemoryUse::kActivations},
      {"gradients_share", MemoryUse::kGradients},
      {"cache_share", MemoryUse::kCache},
      {"optimizer_state_share", MemoryUse::kOptimizerState},
  };
  verdict.evidence["peak_bytes"] = memory.peak_bytes;
  for (const auto& [name, use] : kShares)
    verdict.evidence[name] = share_of_peak(memory, bytes_of(memory, use));
  if (!memory.peak_reserved_bytes)
    return;
  const double unused_bytes = *memory.peak_reserved_bytes - memory.peak_bytes;
  verdict.evidence["unused_reserved_bytes"] = std::max(0.0, unused_bytes);
}

void find_out_of_memory(const Case& facts, const DeviceMemory& memory, Verdicts& out) {
  if (!memory.failure)
    return;
  const model::MemoryFailure& failure = *memory.failure;
  const std::string requested = format_bytes(failure.asked_bytes);
  const std::string in_use = format_bytes(failure.in_use_bytes);
  std::string text = fmt::format("out of memory on {}: it asked for {}, {} were in use",
                                 gpu_text(facts, memory),
                                 requested,
                                 in_use);
  const std::string uses = uses_text(memory);
  if (!uses.empty())
    text += ": " + uses;
  if (const std::string owner = owner_text(memory); !owner.empty())
    text += "; " + owner;
  if (failure.count > 1)
    text += fmt::format("; {} times", failure.count);
  model::Verdict verdict = facts.about_run("out_of_memory", std::move(text), std::nullopt);
  verdict.severity = model::Weight::kError;
  verdict.path = failure.owner;
  add_evidence(memory, verdict);
  verdict.evidence["asked_bytes"] = failure.asked_bytes;
  verdict.evidence["in_use_bytes"] = failure.in_use_bytes;
  verdict.evidence["free_bytes"] = failure.free_bytes;
  // Held by the allocator, but in pieces that are too small.
  const double lost_bytes = failure.reserved_bytes - failure.in_use_bytes;
  verdict.evidence["fragmented"] = lost_bytes >= failure.asked_bytes ? 1 : 0;
  out.push_back(std::move(verdict));
}

void find_growth(const Case& facts, const DeviceMemory& memory, Verdicts& out) {
  if (!memory.growth)
    return;
  const model::MemoryGrowth& growth = *memory.growth;
  const std::string bytes_a_step = format_bytes(growth.bytes_per_step);
  std::string text = fmt::format("memory of {} grows by {} a step, over {} steps",
                                 gpu_text(facts, memory),
                                 bytes_a_step,
                                 growth.steps);
  model::Verdict verdict = facts.about_run("memory_grows", std::move(text), std::nullopt);
  verdict.severity = model::Weight::kWarning;
  verdict.path = growth.owner;
  verdict.evidence["bytes_per_step"] = growth.bytes_per_step;
  verdict.evidence["steps"] = static_cast<double>(growth.steps);
  out.push_back(std::move(verdict));
}

void find_fragmentation(const Case& facts, const DeviceMemory& memory, Verdicts& out) {
  if (!memory.peak_reserved_bytes || memory.failure)
    return;
  const double lost_bytes = *memory.peak_reserved_bytes - memory.peak_bytes;
  const double least_bytes =
      std::max(kFragmentedBytes, kFragmentedShare * *memory.peak_reserved_bytes);
  if (lost_bytes < least_bytes)
    return;
  const std::string lost = format_bytes(lost_bytes),
                    held = format_bytes(*memory.peak_reserved_bytes);
  std::string text =
      fmt::format("{} of the {} that the allocator of {} holds are in no block at the peak",
                  lost,
                  held,
                  gpu_text(facts, memory));
  model::Verdict verdict = facts.about_run("fragmentation", std::move(text), std::nullopt);
  verdict.severity = model::Weight::kWarning;
  verdict.evidence["unused_reserved_bytes"] = lost_bytes;
  verdict.evidence["peak_reserved_bytes"] = *memory.peak_reserved_bytes;
  out.push_back(std::move(verdict));
}

void find_peak(const Case& facts, const DeviceMemory& memory, Verdicts& out) {
  if (memory.failure || !(memory.peak_bytes > 0))
    return;
  const std::string peak = format_bytes(memory.peak_bytes);
  std::string text = fmt::format("peak memory of {} {}", gpu_text(facts, memory), peak);
  const std::string uses = uses_text(memory);
  if (!uses.empty())
    text += ": " + uses;
  const std::string owner = owner_text(memory);
  if (!owner.empty())
    text += "; " + owner;
  const double activations = bytes_of(memory, MemoryUse::kActivations);
  if (share_of_peak(memory, activations) >= kCheckpointShare)
    text += fmt::format("; recomputing activations frees up to {}", format_bytes(activations));
  model::Verdict verdict = facts.about_run("peak_memory", std::move(text), std::nullopt);
  verdict.severity = model::Weight::kNote;
  add_evidence(memory, verdict);
  out.push_back(std::move(verdict));
}

}  // namespace

void find_memory(const Case& facts, Verdicts& out) {
  const auto& devices = facts.report().memory;
  for (const DeviceMemory& memory : devices)
    find_out_of_memory(facts, memory, out);
  if (devices.empty())
    return;
  const auto fullest = std::ranges::max_element(devices, {}, &DeviceMemory::peak_bytes);
  find_growth(facts, *fullest, out);
  find_fragmentation(facts, *fullest, out);
  find_peak(facts, *fullest, out);
}

}  // namespace rangescope::analyze
