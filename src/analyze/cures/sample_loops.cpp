// A loop of the program over samples: a few small kernels for each, and a value that is read.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analyze/cures/candidate.hpp"
#include "analyze/cures/repetition.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::size_t kFewestSamples = 16;

/// A product may be a model's, whose next input can need the value.
bool works_on_elements(Role role) {
  constexpr Role kRoles[] = {Role::kPointwise, Role::kFill,      Role::kCopy,
                             Role::kReduction, Role::kSelection, Role::kIndexing};
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
std::vector<Ids> small_works_in_a_row(const Recording& recording, const Findings& findings,
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

/// A pattern with a kernel and a value that the thread waits for.
bool is_loop_over_samples(const Recording& recording, const Instance& instance,
                          const Repetition& repetition) {
  if (repetition.works.size() < kFewestSamples * repetition.pattern) return false;
  const auto pattern = repetition.works.first(repetition.pattern);
  Ids values;
  for (const Id work : pattern) {
    if (is_value_to_host(recording, work)) values.push_back(work);
  }
  const bool has_kernel =
      std::ranges::any_of(pattern, [&](Id work) { return recording.is_kernel(work); });
  return has_kernel && !recording.waits_behind(instance, values).empty();
}

/// All that the thread does for the samples behind the first one.
Ids operations_behind_first(const Recording& recording, const Instance& instance,
                            const Repetition& repetition) {
  const Id first = replay::launch_of(recording.graph(), repetition.works[repetition.pattern - 1]);
  const Id last = replay::launch_of(recording.graph(), repetition.works.back());
  Ids operations(repetition.works.begin() + static_cast<std::ptrdiff_t>(repetition.pattern),
                 repetition.works.end());
  if (first == model::kNone || last == model::kNone) return operations;
  for (const Id id : recording.operations_of(instance, recording.operation(first).lane)) {
    if (id > first && id <= last) operations.push_back(id);
  }
  return operations;
}

/// The values of the first sample, and the waits for them: nothing needs them on the CPU then.
Ids values_of_first(const Recording& recording, const Instance& instance,
                    const Repetition& repetition) {
  Ids values;
  for (const Id work : repetition.works.first(repetition.pattern)) {
    if (is_value_to_host(recording, work)) values.push_back(work);
  }
  append(values, recording.waits_behind(instance, values));
  return values;
}

}  // namespace

void find_sample_loops(const Recording& recording, Findings& findings) {
  if (!recording.has_steps()) return;
  Candidate candidate{"loop_over_samples", "", {}, {}, {}};
  std::size_t samples = 0;
  for (const Instance& instance : recording.instances()) {
    for (const Ids& row : small_works_in_a_row(recording, findings, instance)) {
      for (const Repetition& repetition : repetitions_in(recording, row)) {
        if (!is_loop_over_samples(recording, instance, repetition)) continue;
        samples += repetition.works.size() / repetition.pattern;
        append(candidate.remedy.removed, values_of_first(recording, instance, repetition));
        append(candidate.remedy.removed, operations_behind_first(recording, instance, repetition));
      }
    }
  }
  if (samples == 0) return;
  findings.claim(candidate.remedy.removed);
  candidate.observation =
      fmt::format("a loop launches small kernels and reads a value for each of {}",
                  count_text(recording, samples, "samples"));
  candidate.evidence = {{"samples", static_cast<double>(samples)},
                        {"samples_per_instance", per_instance(recording, samples)}};
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
