// The GPU has work: what bounds it, what warps of its kernels wait for, and how much of the work
// was needed.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/counters/roofline.hpp"
#include "analyze/counters/useful.hpp"
#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using base::format_ns;

/// GPU busy time of all occurrences; 0 where it is unknown.
double busy_total(const Case& facts, std::size_t row) {
  const model::Region& region = facts.region(row);
  if (region.gpu && !region.gpu->partial && region.gpu->busy_ns > 0)
    return region.gpu->busy_ns;
  const auto occurrence_ns = busy_per_occurrence_ns(region);
  if (occurrence_ns && region.occurrences > 0)
    return *occurrence_ns * static_cast<double>(region.occurrences);
  return kernel_ns(region);
}

/// " (L2)": the level of memory that is nearest to its peak.
std::string level_of(const model::Bound& bound) {
  if (bound.kind == "memory: system")
    return {};
  const std::size_t colon = bound.kind.find(": ");
  if (colon == std::string::npos)
    return " (DRAM)";
  return " (" + bound.kind.substr(colon + 2) + ")";
}

/// "limiter unknown: collect memory traffic, SM throughput or executed FLOPs"
std::string unknown_text(const model::Bound& bound) {
  constexpr std::string_view kMissing = "not measured: ";
  if (bound.reason.starts_with(kMissing))
    return "limiter unknown: collect " + bound.reason.substr(kMissing.size());
  return "limiter unknown: " + bound.reason;
}

/// Busy time that is above the roof: what a kernel that reached its peak would not need.
double above_roof(const Case& facts, std::size_t row) {
  const auto& bound = facts.region(row).bound;
  if (!bound || bound_kind(*bound).empty() || !bound->memory || !bound->compute)
    return 0;
  return busy_total(facts, row) / facts.gpus_side_by_side(row) *
         std::max(0.0, 1 - std::max(*bound->memory, *bound->compute));
}

/// Counters of a range as a whole that was measured without a timeline: its time holds the gaps
/// between kernels.
bool hardly_used(const model::Region& region) {
  const bool timeline = region.gpu && region.gpu->busy_ns_per_occurrence.median > 0;
  return !timeline && std::max(*region.bound->memory, *region.bound->compute) < kHardlyUsed;
}

void add_counters(const model::Region& region, model::Verdict& verdict) {
  for (const char* name : {"launch__waves_per_multiprocessor",
                           "dram_bytes_per_s",
                           "occupancy",
                           "sm_active",
                           "tensor_active",
                           "dram_throughput",
                           "sm_throughput",
                           "memory_throughput"}) {
    if (const auto* metric = model::known_metric(region.metrics, name))
      verdict.evidence[name] = metric->value;
  }
}

/// What warps wait for, by the counter that shows it; else which counters would.
std::string waits_text(const model::Region& region) {
  constexpr std::string_view kStall = "stall_";
  std::string_view longest_wait;
  double stalled_per_issue = 0;
  for (const auto& [name, metric] : region.metrics) {
    const bool is_wait =
        name.starts_with(kStall) && name != "stall_selected" && metric.absent.empty();
    if (!is_wait)
      continue;
    if (longest_wait.empty() || metric.value > stalled_per_issue) {
      longest_wait = name;
      stalled_per_issue = metric.value;
    }
  }
  if (!longest_wait.empty()) {
    const std::string reason = base::replace_all(longest_wait.substr(kStall.size()), "_", " ");
    return fmt::format("warps wait mostly for {} ({:.1f} per issue)", reason, stalled_per_issue);
  }
  const auto* occupancy = model::known_metric(region.metrics, "occupancy");
  if (occupancy != nullptr && occupancy->value < kOccupied)
    return "occupancy " + share_text(occupancy->value);
  return {};
}

void say_bound(const Case& facts, std::size_t row, std::vector<model::Verdict>& out) {
  const model::Region& region = facts.region(row);
  const model::Bound& bound = *region.bound;
  std::string kind = bound_kind(bound);
  if (kind == "latency_bound" && hardly_used(region))
    kind = "hardly_used";
  const std::string shares = bound_shares(bound);
  std::string text, metrics;
  if (kind == "memory_bound") {
    text = fmt::format("memory-bound{}: {}", level_of(bound), shares);
    metrics = "memory,cache";
  } else if (kind == "compute_bound") {
    text =
        fmt::format("compute-bound ({}): {}", bound.kind.substr(bound.kind.find(' ') + 1), shares);
    metrics = bound.kind.find("tensor") != std::string::npos ? "tensor" : "instructions";
  } else if (kind == "balanced") {
    text = fmt::format("memory and compute alike limit it: {}", shares);
    metrics = "memory,instructions";
  } else if (hardly_used(region)) {
    text = fmt::format("hardly uses the GPU: {}, gaps included", shares);
    metrics = "occupancy";
  } else {
    text = "latency-bound: " + shares;
    const std::string waits = waits_text(region);
    if (!waits.empty())
      text += "; " + waits;
    metrics = "stalls,occupancy";
  }
  model::Verdict verdict = facts.about(kind, row, std::move(text), above_roof(facts, row));
  verdict.evidence = {{"memory_share", *bound.memory}, {"compute_share", *bound.compute}};
  verdict.evidence["gpu_busy_ns"] = busy_total(facts, row);
  add_counters(region, verdict);
  verdict.next = facts.measure_again(metrics, &region);
  out.push_back(std::move(verdict));
}

double saving(const model::KernelRow& row) {
  return row.stalls && row.stalls->saves_ns ? *row.stalls->saves_ns : 0;
}

/// The kernel whose most frequent stall costs a region most; null where none was sampled.
const model::KernelRow* worst_kernel(const model::Region& region) {
  if (!region.gpu)
    return nullptr;
  const model::KernelRow* worst = nullptr;
  double saved_ns = 0;
  for (const model::KernelRow& row : region.gpu->top_kernels) {
    if (saving(row) > saved_ns) {
      worst = &row;
      saved_ns = saving(row);
    }
  }
  return worst;
}

/// " at kernel.cu:112": where most of its samples of that stall are.
std::string place_of(const model::KernelRow& kernel, const std::string& reason) {
  const model::StallLine* hottest = nullptr;
  for (const model::StallLine& line : kernel.stalls->lines) {
    if (line.reason != reason)
      continue;
    if (hottest == nullptr || line.reason_share > hottest->reason_share)
      hottest = &line;
  }
  if (hottest == nullptr)
    return {};
  return " at " + base::printable(model::place_text(*hottest));
}

/// Says whether it found one, as the next does.
bool report_limits(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) { return above_roof(facts, row); };
  const std::vector<std::size_t> rows = facts.worst(saves);
  for (const std::size_t row : rows)
    say_bound(facts, row, out);
  return !rows.empty();
}

/// Time in which the GPU works, of a row that keeps it busy; else 0. Kernels of NCCL that wait for
/// another rank keep the GPU, but not at work: the straggler's line reports them. Copies have a
/// line of their own.
double gpu_bound_ns(const Case& facts, std::size_t row) {
  const model::Region& region = facts.region(row);
  const double busy_ns = busy_total(facts, row);
  if (!region.steady || !(busy_ns > 0))
    return 0;
  double not_working_ns = 0;
  if (region.communication)
    not_working_ns += region.communication->wait_ns;
  if (region.gpu)
    not_working_ns += copies_alone_ns(*region.gpu);
  not_working_ns = std::min(not_working_ns, busy_ns);
  const double share = region.steady->busy_share.value_or(0) * (1 - not_working_ns / busy_ns);
  if (!(share >= kGpuFull))
    return 0;
  return (busy_ns - not_working_ns) / facts.gpus_side_by_side(row);
}

std::string gpu_bound_text(const model::Steady& steady) {
  const double busy = *steady.busy_share;
  if (busy > 1)
    return fmt::format("asynchronous: its GPU work takes {:.1f}x its CPU time; GPU-bound", busy);
  std::string text = "GPU-bound: the GPU is busy " + share_text(busy) + " of its time";
  if (steady.left_out > 0)
    text += " in steady state";
  return text;
}

void say_gpu_bound(const Case& facts, std::size_t row, std::vector<model::Verdict>& out) {
  const model::Region& region = facts.region(row);
  // Kernels of NCCL wait for the other ranks: counters of this GPU do not say for whom.
  const bool is_nccl = region.gpu && region.gpu->nccl_ns > region.gpu->kernel_ns / 2;
  const std::string kernel = facts.largest_kernel(row);
  std::string text = gpu_bound_text(*region.steady);
  if (is_nccl)
    text += "; NCCL's kernels transfer and wait for the last rank";
  else if (!kernel.empty())
    text += "; largest kernel " + kernel;
  model::Verdict verdict = facts.about("gpu_bound", row, text, gpu_bound_ns(facts, row));
  verdict.evidence = {{"gpu_busy_share", *region.steady->busy_share},
                      {"gpu_busy_ns", busy_total(facts, row)}};
  if (!is_nccl)
    verdict.next = facts.measure_again("roofline", &region);
  out.push_back(std::move(verdict));
}

bool report_full_gpu(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) { return gpu_bound_ns(facts, row); };
  for (const std::size_t row : facts.worst(saves, 1)) {
    if (!facts.matters(saves(row)))
      continue;
    say_gpu_bound(facts, row, out);
    return true;
  }
  return false;
}

/// Counters were read and do not show the limiter: which ones would.
void report_missing_counters(const Case& facts, std::vector<model::Verdict>& out) {
  const auto without_limiter = [&](std::size_t row) {
    const model::Region& region = facts.region(row);
    const bool is_unknown = has_counters(region) && region.bound && region.bound->kind == "unknown";
    return is_unknown ? std::max(busy_total(facts, row), 1.0) : 0.0;
  };
  for (const std::size_t row : facts.worst(without_limiter, 1)) {
    const model::Region& region = facts.region(row);
    model::Verdict verdict =
        facts.about("bound_unknown", row, unknown_text(*region.bound), std::nullopt);
    verdict.severity = model::Weight::kNote;
    const double busy = busy_total(facts, row);
    if (busy > 0)
      verdict.evidence["gpu_busy_ns"] = busy;
    verdict.next = facts.measure_again("roofline,speed_of_light", &region);
    out.push_back(std::move(verdict));
  }
}

double executed_flop(const model::Region& region) {
  double flop = 0;
  for (const auto& [name, metric] : region.metrics) {
    const bool counts_flop = name.starts_with("flop_") && metric.unit == "FLOP";
    if (counts_flop && metric.absent.empty())
      flop += metric.value;
  }
  return flop;
}

}  // namespace

void find_bounds(const Case& facts, std::vector<model::Verdict>& out) {
  if (report_limits(facts, out) || report_full_gpu(facts, out))
    return;
  const auto has_limiter = [](const model::KernelCounters& kernel) {
    return kernel.bound && kernel.bound->kind != "unknown";
  };
  if (std::ranges::any_of(facts.report().kernel_counters, has_limiter))
    return;  // the line of the kernel tells more
  report_missing_counters(facts, out);
}

void find_padding(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) {
    const model::Region& region = facts.region(row);
    if (!region.utilization || region.utilization->useful_flop.value_or(0) <= 0)
      return 0.0;
    const double executed = executed_flop(region);
    const double useful = *region.utilization->useful_flop;
    if (executed < kPadded * useful)
      return 0.0;
    return busy_total(facts, row) / facts.gpus_side_by_side(row) * (1 - useful / executed);
  };
  for (const std::size_t row : facts.worst(saves, 1)) {
    const model::Region& region = facts.region(row);
    const double executed = executed_flop(region);
    const double useful = *region.utilization->useful_flop;
    std::string text = fmt::format("executes {:.1f}x the FLOPs it needs: {} for {}",
                                   executed / useful,
                                   base::format_si(executed, "FLOP"),
                                   base::format_si(useful, "FLOP"));
    model::Verdict verdict = facts.about("padding", row, std::move(text), saves(row));
    verdict.evidence = {{"executed_flop", executed}, {"useful_flop", useful}};
    verdict.next = facts.measure_again("tensor", &region);
    out.push_back(std::move(verdict));
  }
}

void find_stalls(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) {
    const model::KernelRow* worst = worst_kernel(facts.region(row));
    if (worst == nullptr)
      return 0.0;
    const double saved_ns = saving(*worst) / facts.gpus_side_by_side(row);
    return facts.matters(saved_ns) ? saved_ns : 0.0;
  };
  for (const std::size_t row : facts.worst(saves)) {
    const model::KernelRow& kernel = *worst_kernel(facts.region(row));
    const model::StallShare& top = *model::top_stall(*kernel.stalls);
    std::string text = fmt::format("{} {}{}, in {}",
                                   share_text(top.share),
                                   top.reason,
                                   place_of(kernel, top.reason),
                                   kernel_text(kernel));
    model::Verdict verdict = facts.about("stalls", row, std::move(text), saves(row));
    verdict.severity = model::Weight::kWarning;
    verdict.evidence = {{"stall_share", top.share},
                        {"samples", static_cast<double>(kernel.stalls->samples)},
                        {"kernel_ns", kernel.total_ns}};
    out.push_back(std::move(verdict));
  }
}

}  // namespace rangescope::analyze
