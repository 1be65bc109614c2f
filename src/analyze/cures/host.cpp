// What the CPU does between calls: allocations, and batches made by the thread that launches.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analyze/cures/batches.hpp"
#include "analyze/cures/candidate.hpp"
#include "analyze/replay/between_calls.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::string_view kDeviceAllocations[] = {"cudaMalloc",
                                                   "cudaFree",
                                                   "cuMemAlloc",
                                                   "cuMemFree",
                                                   "cuMemMap",
                                                   "cuMemUnmap",
                                                   "cuMemCreate",
                                                   "cuMemRelease"};
constexpr std::string_view kPinnedAllocations[] = {"cudaHostAlloc",
                                                   "cudaMallocHost",
                                                   "cudaFreeHost",
                                                   "cuMemHostAlloc",
                                                   "cuMemFreeHost",
                                                   "cuMemAllocHost",
                                                   "cudaHostRegister",
                                                   "cuMemHostRegister",
                                                   "cudaHostUnregister"};

bool begins_with_any(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

/// From pools, which neither wait nor enter the driver.
bool is_of_pool(std::string_view name) {
  return name.find("Async") != std::string_view::npos ||
         name.find("FromPool") != std::string_view::npos;
}

bool allocates_pinned(std::string_view name) {
  return begins_with_any(name, kPinnedAllocations);
}

bool allocates_on_device(std::string_view name) {
  return begins_with_any(name, kDeviceAllocations) && !allocates_pinned(name) && !is_of_pool(name);
}

Ids long_stretches(const Recording& recording, const Findings& findings) {
  Ids stretches;
  for (const Instance& instance : recording.instances()) {
    for (const Id id : instance.calls) {
      const bool is_long = replay::is_long_stretch(recording.operation(id));
      if (is_long && !findings.is_claimed(id))
        stretches.push_back(id);
    }
  }
  return stretches;
}

template <class Fits>
Ids calls_named(const Recording& recording, Fits fits) {
  Ids calls;
  const auto add = [&](Id id) {
    const Kind kind = recording.operation(id).kind;
    const bool is_call = kind == Kind::kCall || kind == Kind::kWait;
    if (is_call && fits(recording.call_name(id)))
      calls.push_back(id);
  };
  for (const Instance& instance : recording.instances()) {
    std::ranges::for_each(instance.calls, add);
    std::ranges::for_each(instance.helper_calls, add);
  }
  return calls;
}

void add_allocation_calls(const Recording& recording,
                          Findings& findings,
                          std::string_view cure,
                          Ids calls) {
  if (per_instance(recording, calls.size()) < 1)
    return;
  // In the first instances they are start-up.
  constexpr std::size_t kFewestInstances = 5;
  const std::size_t allocating = recording.count_instances_with(calls);
  const bool goes_on = !recording.has_steps() || (allocating >= kFewestInstances &&
                                                  2 * allocating >= recording.instances().size());
  if (!goes_on)
    return;
  findings.claim(calls);
  Candidate candidate{
      cure,
      fmt::format("{:.3g} calls of {} and the like per instance ({} in all)",
                  per_instance(recording, calls.size()),
                  recording.call_name(calls.front()),
                  base::format_ns(recording.duration_ns(calls))),
      {},
      {},
      {{"calls", static_cast<double>(calls.size())}, {"call_ns", recording.duration_ns(calls)}}};
  candidate.remedy.removed = std::move(calls);
  findings.add(std::move(candidate));
}

struct AllocationSamples {
  std::size_t samples = 0, device = 0, pinned = 0, driver = 0;
};

/// Samples in the driver while no call that is recorded is open: it allocates, frees or maps.
AllocationSamples allocation_samples(const Recording& recording,
                                     const StackSamples& samples,
                                     const Ids& stretches) {
  AllocationSamples count;
  for (const Id stretch : stretches) {
    for (const std::uint32_t stack : samples.in(recording, stretch)) {
      ++count.samples;
      const bool is_pinned = samples.has_function(stack, allocates_pinned);
      const bool is_device = samples.has_function(stack, allocates_on_device);
      if (is_pinned)
        ++count.pinned;
      if (is_device && !is_pinned)
        ++count.device;
      const bool is_driver = !is_pinned && !is_device && samples.enters_kernel_from_driver(stack);
      if (is_driver)
        ++count.driver;
    }
  }
  return count;
}

/// What is left of such a stretch: the program's own work in it.
constexpr replay::Parameter kLeft{0.05, 0, 0.1};
constexpr std::size_t kFewestSamples = 2;

void find_sampled_allocations(const Recording& recording,
                              const StackSamples& samples,
                              Findings& findings) {
  Ids stretches = long_stretches(recording, findings);
  const AllocationSamples count = allocation_samples(recording, samples, stretches);
  const std::size_t allocating = count.device + count.pinned + count.driver;
  if (allocating < kFewestSamples || 2 * allocating < count.samples)
    return;
  const bool is_pinned = count.pinned > count.device + count.driver;
  const std::string_view cure = is_pinned ? "pinned_allocations" : "allocations";
  findings.claim(stretches);
  Candidate candidate{
      cure,
      fmt::format(
          "the driver allocates and frees memory between calls ({} of {} samples, {} in all)",
          allocating,
          count.samples,
          base::format_ns(recording.duration_ns(stretches))),
      {},
      kLeft,
      {{"samples", static_cast<double>(count.samples)},
       {"allocating_samples", static_cast<double>(allocating)},
       {"stretch_ns", recording.duration_ns(stretches)}}};
  candidate.remedy.shortened = std::move(stretches);
  findings.add(std::move(candidate));
}

// ---- Batches

bool indexes(std::string_view function) {
  constexpr std::string_view kIndexing[] = {
      "at::native::index", "index_select", "THPVariable_getitem", "index_kernel"};
  return std::ranges::any_of(kIndexing, [&](std::string_view part) {
    return function.find(part) != std::string_view::npos;
  });
}

/// PyTorch's copy of a tensor into pinned memory, whose blocks it keeps for the next one.
bool pins(std::string_view function) {
  return function.find("at::native::_pin_memory") != std::string_view::npos;
}

/// Of the samples of these stretches the share in which such a function is open; none where it is
/// less than half, or nearly nothing was sampled.
template <class Fits>
std::optional<double> share_of_most(const Recording& recording,
                                    const StackSamples& samples,
                                    const Ids& stretches,
                                    Fits fits) {
  std::size_t sampled = 0, fitting = 0;
  for (const Id stretch : stretches) {
    for (const std::uint32_t stack : samples.in(recording, stretch)) {
      ++sampled;
      if (samples.has_function(stack, fits))
        ++fitting;
    }
  }
  if (fitting < kFewestSamples || 2 * fitting < sampled)
    return std::nullopt;
  return static_cast<double>(fitting) / static_cast<double>(sampled);
}

void add_cpu_indexing(const Recording& recording,
                      Findings& findings,
                      const std::vector<Batch>& batches,
                      const Ids& stretches) {
  // Rows are read and written on the GPU, at the memory's speed.
  const double bytes_per_s = recording.peaks()->memory_bytes_per_s / 2;
  Candidate candidate{"cpu_indexing",
                      fmt::format("the CPU indexes tensors for {} before it copies the result",
                                  base::format_ns(recording.duration_ns(stretches))),
                      {},
                      {0.8 * bytes_per_s, 0.5 * bytes_per_s, bytes_per_s},
                      {{"stretch_ns", recording.duration_ns(stretches)}}};
  candidate.remedy.removed = stretches;
  for (const Batch& batch : batches) {
    candidate.remedy.copies.push_back(batch.copy);
    candidate.remedy.copy_bytes.push_back(static_cast<double>(recording.copy(batch.copy).bytes));
    findings.claim({batch.copy});
  }
  findings.add(std::move(candidate));
}

/// What is left of the stretches is what the samples show besides, within a tenth of them.
void add_pinning(const Recording& recording,
                 Findings& findings,
                 Ids stretches,
                 double pinning_share) {
  const double left = 1 - pinning_share;
  constexpr double kUncertain = 0.1;
  Candidate candidate{
      "pinned_in_loop",
      fmt::format("the launching thread copies {} into pinned memory ({} in all)",
                  base::counted(stretches.size(), "batch", "batches"),
                  base::format_ns(pinning_share * recording.duration_ns(stretches))),
      {},
      {left, std::max(0.0, left - kUncertain), std::min(1.0, left + kUncertain)},
      {{"batches", static_cast<double>(stretches.size())},
       {"pinning_share", pinning_share},
       {"stretch_ns", recording.duration_ns(stretches)}}};
  candidate.remedy.shortened = std::move(stretches);
  findings.add(std::move(candidate));
}

/// How many batches are made at once. A batch that keeps several CPUs busy leaves fewer for others,
/// as far as these do not only spin while they wait for work.
replay::Parameter workers_for(double busy_cpus) {
  constexpr double kExpected = 8, kFew = 4, kMany = 16;
  return {kExpected, std::clamp(kExpected / busy_cpus, 1.0, kFew), kMany};
}

}  // namespace

void find_allocations(const Recording& recording, Findings& findings) {
  Ids on_device = calls_named(recording, allocates_on_device);
  Ids pinned = calls_named(recording, allocates_pinned);
  const bool are_recorded = !on_device.empty() || !pinned.empty();
  if (!on_device.empty())
    add_allocation_calls(recording, findings, "allocations", std::move(on_device));
  if (!pinned.empty())
    add_allocation_calls(recording, findings, "pinned_allocations", std::move(pinned));
  if (are_recorded)
    return;
  const StackSamples& samples = findings.samples();
  if (!samples.empty())
    find_sampled_allocations(recording, samples, findings);
}

void find_batches_on_main_thread(const Recording& recording, Findings& findings) {
  std::vector<Batch> batches = batches_of(recording);
  std::erase_if(batches, [&](const Batch& batch) { return findings.is_claimed(batch.stretch); });
  if (batches.size() < 2)
    return;
  Ids stretches;
  for (const Batch& batch : batches)
    stretches.push_back(batch.stretch);
  findings.claim(stretches);
  const StackSamples& samples = findings.samples();
  const bool has_memory = recording.peaks() != nullptr && recording.peaks()->memory_bytes_per_s > 0;
  if (has_memory && share_of_most(recording, samples, stretches, indexes))
    return add_cpu_indexing(recording, findings, batches, stretches);
  const auto pinning_share = share_of_most(recording, samples, stretches, pins);
  if (pinning_share)
    return add_pinning(recording, findings, std::move(stretches), *pinning_share);
  const std::string function = samples.python_function(recording, stretches);
  const double stretch_ns = recording.duration_ns(stretches);
  std::string observation =
      fmt::format("the launching thread makes {} ({} each)",
                  base::counted(batches.size(), "batch", "batches"),
                  base::format_ns(stretch_ns / static_cast<double>(batches.size())));
  if (!function.empty())
    observation += ", in " + function;
  const double busy_cpus = samples.busy_cpus(recording, stretches);
  Candidate candidate{"batches_on_main_thread",
                      std::move(observation),
                      {},
                      workers_for(busy_cpus),
                      {{"batches", static_cast<double>(batches.size())},
                       {"busy_cpus", busy_cpus},
                       {"stretch_ns", stretch_ns}}};
  candidate.remedy.moved = std::move(stretches);
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
