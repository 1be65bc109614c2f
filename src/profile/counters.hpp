// Hardware counters on the command line: the shipped groups, the planner behind them, what `profile
// --metrics` needs before the program starts, and what a report needs to say what the counters
// mean.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyze/analyze.hpp"
#include "base/result.hpp"
#include "collect/native/counter_plan.hpp"
#include "collect/native/native.hpp"
#include "collect/native/planner.hpp"

namespace rangescope::profile {

/// The planner of the injected library that this program would use.
[[nodiscard]] base::Result<collect::native::Planner> open_planner();
/// The chip of a GPU that people name ("H100", "L40S"); what is no known name is taken for a chip.
[[nodiscard]] std::string chip_named(const std::string& name);

/// The chip of the first GPU in this machine: by the name that the driver gives it. kNoInput
/// without a GPU.
[[nodiscard]] base::Result<std::string> chip_of_machine();
/// kPermission, with the three ways out, when the driver keeps counters from this user.
[[nodiscard]] base::Result<void> may_count();

/// What the injected library gets, and what the report says of it.
struct PreparedCounters {
  collect::native::CounterPlan plan;
  collect::native::CounterRequest request;  ///< with the plan's metrics
  std::string note;                         ///< counters.json
};

/// Resolves `names` for this machine's GPU and checks that counters may be read. Writes nothing:
/// everything that can be known to be wrong is found before a run directory is made.
[[nodiscard]] base::Result<PreparedCounters> prepare_counters(
    const std::vector<std::string>& names, collect::native::CounterRequest request);
/// The same of samples of the program counter.
[[nodiscard]] base::Result<PreparedCounters> prepare_samples(
    collect::native::CounterRequest request);
/// "22 metrics in 7 passes on GH100: a range needs 7 occurrences for one complete set".
[[nodiscard]] std::string cost_sentence(const collect::native::CounterPlan& plan);

/// counters.plan and counters.json of a run directory (absolute); points the injected library at
/// them.
[[nodiscard]] base::Result<std::vector<std::pair<std::filesystem::path, std::string>>>
counter_files(const PreparedCounters& prepared,
              const std::filesystem::path& run,
              bool again,
              collect::native::Options& native);
/// Writes counters.plan and counters.json into the run directory (absolute) and points the injected
/// library at them. `again`: for the second run of --passes relaunch and those after it.
[[nodiscard]] base::Result<void> write_counters(const PreparedCounters& prepared,
                                                const std::filesystem::path& run,
                                                bool again,
                                                collect::native::Options& native);

/// How far the runs of --passes relaunch have got.
struct RelaunchProgress {
  unsigned lacking = 0;         ///< ranges that lack rounds
  unsigned long long done = 0;  ///< passes taken in all runs; another run helps only while it grows
};
/// Nothing where the last run left none: it was killed, or measured nothing.
[[nodiscard]] std::optional<RelaunchProgress> relaunch_progress(const std::filesystem::path& run);
/// The file that carries it is of no use after the last run.
void forget_progress(const std::filesystem::path& run);

/// The run's counters were collected with --bucket-by payload, so that its report needs the same.
[[nodiscard]] bool counted_by_payload(const std::filesystem::path& run);

/// What the report of a run rests on: the groups that its counters were collected by
/// (counters.json), for other inputs all that are shipped, and the peaks of every GPU that is
/// known. "" for no run; `measured`: metrics are there, so that groups are of use.
[[nodiscard]] analyze::Reference reference_of(const std::filesystem::path& run, bool measured);

}  // namespace rangescope::profile
