// A loop of the program over samples: a few small kernels for each, and a value that is read, or a
// tensor of each, all of which are stacked behind the loop.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "analyze/cures/candidate.hpp"
#include "analyze/cures/repetition.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::size_t kFewestSamplesOfLoop = 16;
/// Longer stretches between two samples are no part of the loop: a compiler's, a file's.
constexpr double kLongestStretch_ns = 1'000'000;

/// A product may be a model's, whose next input can need the value.
bool works_on_elements(Role role) {
  constexpr Role kRoles[] = {Role::kPointwise,
                             Role::kFill,
                             Role::kCopy,
                             Role::kReduction,
                             Role::kSelection,
                             Role::kIndexing};
  return std::ranges::find(kRoles, role) != std::end(kRoles);
}

bool is_small_work(const Recording& recording, Id work) {
  if (recording.is_kernel(work)) {
    return works_on_elements(recording.traits(work).role) &&
           recording.duration_ns(work) <= kSmallKernel_ns;
  }
  return recording.operation(work).kind == Kind::kMemset || is_value_to_host(recording, work);
}

/// Unclaimed small works in a row.
std::vector<Ids> small_works_in_a_row(const Recording& recording,
                                      const Findings& findings,
                                      const Instance& instance) {
  std::vector<Ids> rows(1);
  for (const Id work : instance.works) {
    if (is_small_work(recording, work) && !findings.is_claimed(work)) {
      rows.back().push_back(work);
    } else if (!rows.back().empty()) {
      rows.emplace_back();
    }
  }
  return rows;
}

/// Values that are read, and the kernels and memsets behind them: one sample, works by index.
struct Sample {
  std::size_t first = 0, end = 0;
};

/// Each begins with the first value behind a kernel.
std::vector<Sample> samples_in(const Recording& recording, const Ids& row) {
  std::vector<Sample> samples;
  bool is_behind_kernel = true;
  for (std::size_t index = 0; index < row.size(); ++index) {
    const bool is_value = is_value_to_host(recording, row[index]);
    if (is_value && is_behind_kernel) {
      if (!samples.empty())
        samples.back().end = index;
      samples.push_back({index, row.size()});
    }
    is_behind_kernel = !is_value;
  }
  const bool ends_with_value = !row.empty() && is_value_to_host(recording, row.back());
  if (ends_with_value && !samples.empty())
    samples.pop_back();
  return samples;
}

Ids values_of(const Recording& recording, const Ids& row, const Sample& sample) {
  Ids values;
  for (std::size_t index = sample.first; index < sample.end; ++index) {
    if (is_value_to_host(recording, row[index]))
      values.push_back(row[index]);
  }
  return values;
}

bool is_loop_over_samples(const Recording& recording,
                          const Instance& instance,
                          const Ids& row,
                          const std::vector<Sample>& samples) {
  if (samples.size() < kFewestSamplesOfLoop)
    return false;
  const bool are_short = std::ranges::all_of(
      samples, [](const Sample& sample) { return sample.end - sample.first <= kLongestPattern; });
  const Ids values = values_of(recording, row, samples.front());
  return are_short && !recording.waits_behind(instance, values).empty();
}

/// All that the thread does for the samples behind the first one.
Ids operations_behind_first(const Recording& recording,
                            const Instance& instance,
                            const Ids& row,
                            const std::vector<Sample>& samples) {
  const std::size_t begin = samples.front().end, end = samples.back().end;
  Ids operations(row.begin() + static_cast<std::ptrdiff_t>(begin),
                 row.begin() + static_cast<std::ptrdiff_t>(end));
  const Id first = replay::launch_of(recording.graph(), row[begin - 1]);
  const Id last = replay::launch_of(recording.graph(), row[end - 1]);
  if (first == model::kNone || last == model::kNone)
    return operations;
  for (const Id id : recording.operations_of(instance, recording.operation(first).lane)) {
    const bool is_of_loop = recording.operation(id).kind != Kind::kStretch ||
                            recording.duration_ns(id) <= kLongestStretch_ns;
    if (id > first && id <= last && is_of_loop)
      operations.push_back(id);
  }
  return operations;
}

/// The values of the first sample, and the waits for them: without the loop the CPU reads none.
Ids values_of_first(const Recording& recording,
                    const Instance& instance,
                    const Ids& row,
                    const Sample& sample) {
  Ids values = values_of(recording, row, sample);
  append(values, recording.waits_behind(instance, values));
  return values;
}

// ---- Samples that are stacked

/// How many tensors a concatenation takes: a row of blocks copies each.
std::size_t concatenated_tensors(const Recording& recording, Id kernel) {
  return recording.shape_of(kernel).grid[1];
}

/// Small kernels in a row, and how many tensors are concatenated right behind them.
struct StackedRow {
  Ids works;
  std::size_t tensors = 0;
};

std::vector<StackedRow> stacked_rows(const Recording& recording,
                                     const Findings& findings,
                                     const Instance& instance) {
  std::vector<StackedRow> rows;
  StackedRow open;
  const auto close = [&] {
    if (open.tensors > 0 && !open.works.empty())
      rows.push_back(std::move(open));
    open = {};
  };
  for (const Id work : instance.works) {
    if (recording.has_role(work, Role::kConcatenation)) {
      open.tensors += concatenated_tensors(recording, work);
      continue;
    }
    if (open.tensors > 0)
      close();
    const bool is_part =
        recording.is_kernel(work) && is_small_work(recording, work) && !findings.is_claimed(work);
    if (is_part) {
      open.works.push_back(work);
    } else {
      open = {};
    }
  }
  close();
  return rows;
}

/// Each sample ends with a kernel of the same name, and there are as many as are concatenated.
std::vector<Sample> samples_of_stack(const Recording& recording, const StackedRow& row) {
  const std::uint32_t last_name = recording.name_of(row.works.back());
  std::vector<Sample> samples;
  std::size_t first = 0;
  for (std::size_t index = 0; index < row.works.size(); ++index) {
    if (recording.name_of(row.works[index]) != last_name)
      continue;
    samples.push_back({first, index + 1});
    first = index + 1;
  }
  if (samples.size() < row.tensors)
    return {};
  samples.erase(samples.begin(), samples.end() - static_cast<std::ptrdiff_t>(row.tensors));
  return samples;
}

/// Steps of a recurrence follow one another as samples do, but each needs the one before it: what
/// takes as many kernels for each may be one. Where numbers differ, though no value was read, the
/// program treats each in a way of its own, as random augmentations do. Of the first sample works
/// of something else may be part.
bool are_treated_differently(const std::vector<Sample>& samples) {
  constexpr double kFewestOthers = 1.0 / 8;
  std::map<std::size_t, std::size_t> count_of_length;
  std::size_t most_frequent = 0;
  for (auto sample = samples.begin() + 1; sample != samples.end(); ++sample)
    most_frequent = std::max(most_frequent, ++count_of_length[sample->end - sample->first]);
  const auto count = static_cast<double>(samples.size() - 1);
  return count - static_cast<double>(most_frequent) >= kFewestOthers * count;
}

bool is_loop_that_stacks(const std::vector<Sample>& samples) {
  if (samples.size() < kFewestSamplesOfLoop)
    return false;
  const bool are_short = std::all_of(samples.begin() + 1, samples.end(), [](const Sample& sample) {
    return sample.end - sample.first <= kLongestPattern;
  });
  return are_short && are_treated_differently(samples);
}

/// What kernels take that run side by side as far as the GPU has room for them.
double side_by_side_ns(const Recording& recording, const Ids& kernels) {
  double room_ns = 0, longest_ns = 0;
  for (const Id kernel : kernels) {
    room_ns += recording.room(kernel) * recording.duration_ns(kernel);
    longest_ns = std::max(longest_ns, recording.duration_ns(kernel));
  }
  return std::max(room_ns, longest_ns);
}

/// The first sample's kernels stay; those of all others become one, and what the thread does for
/// them goes.
void add_stacked_samples(const Recording& recording,
                         const Instance& instance,
                         const Ids& row,
                         const std::vector<Sample>& samples,
                         Remedy& remedy) {
  Ids kernels;
  for (const Id operation : operations_behind_first(recording, instance, row, samples)) {
    if (recording.is_kernel(operation))
      kernels.push_back(operation);
    if (recording.operation(operation).kind == Kind::kStretch)
      remedy.removed.push_back(operation);
  }
  const double one_ns = side_by_side_ns(recording, kernels);
  remedy.fused.push_back({std::move(kernels), static_cast<std::int64_t>(one_ns)});
}

/// Adds a loop over samples, unless half of the steps are without one.
void add_sample_loop(const Recording& recording,
                     std::size_t samples,
                     Candidate candidate,
                     Findings& findings) {
  const Ids operations = candidate.remedy.operations();
  if (2 * recording.count_instances_with(operations) <= recording.instances().size())
    return;
  findings.claim(operations);
  candidate.evidence = {{"samples", static_cast<double>(samples)},
                        {"samples_per_instance", per_instance(recording, samples)}};
  findings.add(std::move(candidate));
}

}  // namespace

void find_stacked_samples(const Recording& recording, Findings& findings) {
  if (!recording.has_steps())
    return;
  Candidate candidate{"loop_over_samples", "", {}, {1, 1, 2}, {}};
  std::size_t count = 0;
  for (const Instance& instance : recording.instances()) {
    for (const StackedRow& row : stacked_rows(recording, findings, instance)) {
      const std::vector<Sample> samples = samples_of_stack(recording, row);
      if (!is_loop_that_stacks(samples))
        continue;
      count += samples.size();
      add_stacked_samples(recording, instance, row.works, samples, candidate.remedy);
    }
  }
  candidate.observation =
      fmt::format("a loop launches small kernels for each of {}, and stacks them",
                  count_text(recording, count, "samples"));
  add_sample_loop(recording, count, std::move(candidate), findings);
}

void find_sample_loops(const Recording& recording, Findings& findings) {
  if (!recording.has_steps())
    return;
  Candidate candidate{"loop_over_samples", "", {}, {}, {}};
  std::size_t count = 0;
  for (const Instance& instance : recording.instances()) {
    for (const Ids& row : small_works_in_a_row(recording, findings, instance)) {
      const std::vector<Sample> samples = samples_in(recording, row);
      if (!is_loop_over_samples(recording, instance, row, samples))
        continue;
      count += samples.size();
      append(candidate.remedy.removed, values_of_first(recording, instance, row, samples.front()));
      append(candidate.remedy.removed, operations_behind_first(recording, instance, row, samples));
    }
  }
  candidate.observation =
      fmt::format("a loop launches small kernels and reads a value for each of {}",
                  count_text(recording, count, "samples"));
  add_sample_loop(recording, count, std::move(candidate), findings);
}

}  // namespace rangescope::analyze::cures
