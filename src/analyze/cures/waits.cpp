// The CPU waits for the GPU where the program could go on.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// How long they took in the recording.
double recorded_ns(const Recording& recording, const Ids& waits) {
  double sum_ns = 0;
  for (const Id wait : waits) {
    const Operation& recorded = recording.operation(wait);
    sum_ns += static_cast<double>(recorded.end_ns - recorded.start_ns);
  }
  return sum_ns;
}

/// A mask's selection from its first kernel to the indexing.
struct MaskIndexing {
  Ids kernels, copies;
};

/// The longest of the element-wise kernels: what one more pass over the tensor takes.
double one_pass_ns(const Recording& recording, const Instance& instance) {
  double longest_ns = 0;
  for (const Id work : instance.works) {
    if (recording.has_role(work, Role::kPointwise))
      longest_ns = std::max(longest_ns, recording.duration_ns(work));
  }
  return longest_ns;
}

std::vector<MaskIndexing> mask_indexings(const Recording& recording, const Instance& instance) {
  std::vector<MaskIndexing> found;
  MaskIndexing open;
  for (const Id work : instance.works) {
    if (recording.operation(work).kind == Kind::kMemset)
      continue;
    const bool selects = recording.has_role(work, Role::kSelection);
    const bool indexes = recording.has_role(work, Role::kIndexing);
    const bool copies_size = is_value_to_host(recording, work) && !open.kernels.empty();
    if (copies_size)
      open.copies.push_back(work);
    if (selects || (indexes && !open.kernels.empty()))
      open.kernels.push_back(work);
    if (!selects && !copies_size) {
      if (indexes && !open.copies.empty())
        found.push_back(open);
      open = {};
    }
  }
  return found;
}

/// Between the kernel that counts what a mask selects and the one that lists it: memory for the
/// list has to be as large.
bool is_size_of_selection(const Recording& recording,
                          const Instance& instance,
                          std::size_t position) {
  const auto selects = [&](std::size_t index) {
    return recording.has_role(instance.works[index], Role::kSelection);
  };
  return position > 0 && position + 1 < instance.works.size() && selects(position - 1) &&
         selects(position + 1);
}

/// Kernels that only made the value which is copied: a reduction, and the cast in front of it. At
/// the end of an instance nothing else can use it.
Ids kernels_of_value(const Recording& recording, const Instance& instance, std::size_t copy) {
  Ids kernels;
  while (copy > 0) {
    const Id work = instance.works[--copy];
    const bool reduces = recording.has_role(work, Role::kReduction) && kernels.empty();
    const bool casts = recording.has_role(work, Role::kCopy) && !kernels.empty();
    const bool clears = recording.operation(work).kind == Kind::kMemset;
    if (!reduces && !casts && !clears)
      break;
    kernels.push_back(work);
    if (casts)
      break;
  }
  const bool has_reduction = std::ranges::any_of(
      kernels, [&](Id kernel) { return recording.has_role(kernel, Role::kReduction); });
  return has_reduction ? kernels : Ids{};
}

/// Values at the end of an instance: behind them it launches nothing but others.
Ids values_only_read(const Recording& recording, const Instance& instance) {
  Ids removed;
  std::size_t position = instance.works.size();
  while (position > 0 && is_value_to_host(recording, instance.works[position - 1])) {
    const Ids kernels = kernels_of_value(recording, instance, position - 1);
    if (kernels.empty())
      break;
    append(removed, kernels);
    position -= 1 + kernels.size();
  }
  return removed;
}

}  // namespace

void find_mask_indexing(const Recording& recording, Findings& findings) {
  Candidate candidate{"mask_indexing", "", {}, {1, 0.7, 2}, {}};
  std::size_t count = 0;
  for (const Instance& instance : recording.instances()) {
    const double pass_ns = one_pass_ns(recording, instance);
    for (const MaskIndexing& indexing : mask_indexings(recording, instance)) {
      if (findings.is_claimed(indexing.kernels.back()))
        continue;
      const double one_ns = pass_ns > 0 ? pass_ns : recording.duration_ns(indexing.kernels.back());
      const Ids waits = recording.waits_behind(instance, indexing.copies);
      candidate.remedy.fused.push_back({indexing.kernels, static_cast<std::int64_t>(one_ns)});
      append(candidate.remedy.removed, indexing.copies);
      append(candidate.remedy.removed, waits);
      findings.claim(indexing.kernels);
      findings.claim(indexing.copies);
      findings.claim(waits);
      ++count;
    }
  }
  if (count == 0)
    return;
  candidate.observation = fmt::format("{} wait for the size of their result",
                                      count_text(recording, count, "indexings by a mask"));
  candidate.evidence = {{"indexings", static_cast<double>(count)}};
  findings.add(std::move(candidate));
}

void find_values_read(const Recording& recording, Findings& findings) {
  Candidate candidate{"values_read", "", {}, {}, {}};
  std::size_t count = 0;
  double waited_ns = 0;
  for (const Instance& instance : recording.instances()) {
    Ids copies;
    for (std::size_t position = 0; position < instance.works.size(); ++position) {
      const Id work = instance.works[position];
      const bool is_value = is_value_to_host(recording, work) && !findings.is_claimed(work) &&
                            !is_size_of_selection(recording, instance, position);
      if (is_value)
        copies.push_back(work);
    }
    const Ids waits = recording.waits_behind(instance, copies);
    if (waits.empty())
      continue;
    append(candidate.remedy.removed, copies);
    append(candidate.remedy.removed, waits);
    append(candidate.remedy.removed, values_only_read(recording, instance));
    findings.claim(copies);
    findings.claim(waits);
    count += copies.size();
    waited_ns += recorded_ns(recording, waits);
  }
  if (count == 0)
    return;
  candidate.observation = fmt::format("{} are copied to the CPU and waited for ({})",
                                      count_text(recording, count, "values"),
                                      base::format_ns(waited_ns));
  candidate.evidence = {{"values", static_cast<double>(count)},
                        {"values_per_instance", per_instance(recording, count)},
                        {"waited_ns", waited_ns}};
  findings.add(std::move(candidate));
}

void find_synchronizations(const Recording& recording, Findings& findings) {
  Candidate candidate{"synchronizations", "", {}, {}, {}};
  for (const Instance& instance : recording.instances()) {
    Ids copies;
    for (const Id work : instance.works) {
      if (recording.operation(work).kind == Kind::kCopy)
        copies.push_back(work);
    }
    Ids behind_copies = recording.waits_behind(instance, copies);
    std::ranges::sort(behind_copies);
    Ids pending;
    for (const Id id : instance.calls) {
      const Operation& operation = recording.operation(id);
      const bool is_free = operation.kind == Kind::kWait && !findings.is_claimed(id) &&
                           !std::ranges::binary_search(behind_copies, id);
      if (is_free)
        pending.push_back(id);
      if (operation.kind != Kind::kCall)
        continue;
      // The thread goes on to launch: nothing of what it waited for was looked at.
      append(candidate.remedy.removed, pending);
      pending.clear();
    }
  }
  const Ids& waits = candidate.remedy.removed;
  if (waits.empty())
    return;
  const double waited_ns = recorded_ns(recording, waits);
  candidate.observation = fmt::format("{} ({}), behind which it launches on",
                                      count_text(recording, waits.size(), "synchronizations"),
                                      base::format_ns(waited_ns));
  candidate.evidence = {{"synchronizations", static_cast<double>(waits.size())},
                        {"waited_ns", waited_ns}};
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
