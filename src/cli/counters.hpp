// Hardware counters on the command line: the shipped groups, the planner behind them, what `profile --metrics` needs
// before the program starts, and what a report needs to say what the counters mean.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "base/result.hpp"
#include "collect/native/counter_plan.hpp"
#include "collect/native/native.hpp"
#include "collect/native/planner.hpp"
#include "model/metric_group.hpp"
#include "model/peaks.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::cli {

/// conf/metrics of this program, $RANGESCOPE_CONF respected.
[[nodiscard]] base::Result<std::vector<model::MetricGroup>> shipped_groups();
/// conf/device of this program.
[[nodiscard]] base::Result<std::vector<model::Peaks>> shipped_peaks();
/// The planner of the injected library that this program would use.
[[nodiscard]] base::Result<collect::native::Planner> open_planner();
/// Text for standard output; 0, or the exit code of a failure to write.
[[nodiscard]] int put(const std::string& text);
/// "a,b" and repeated options as one list; empty items refused with kUsage.
[[nodiscard]] base::Result<std::vector<std::string>> metric_names(const std::vector<std::string>& options);

/// --per, --rounds, --skip-first, --trace-first; the metrics and ranges come from elsewhere.
void bind_counters(CLI::App& app, collect::native::CounterRequest& request);

/// The chip of the first GPU in this machine: by the name that the driver gives it. kNoInput without a GPU.
[[nodiscard]] base::Result<std::string> chip_of_machine();
/// kPermission, with the three ways out, when the driver keeps counters from this user.
[[nodiscard]] base::Result<void> may_count();

/// Resolves `names` for this machine's GPU, checks that counters may be read, writes counters.plan and counters.json
/// into the run directory and points the injected library at it. Everything that can be known to be wrong is found
/// here.
[[nodiscard]] base::Result<collect::native::CounterPlan> prepare_counters(const std::vector<std::string>& names,
                                                                          collect::native::CounterRequest request,
                                                                          const std::filesystem::path& run,
                                                                          collect::native::Options& native);

/// Before analysis: adds derived metrics, by the groups that the run was made with (counters.json) or, for other
/// inputs, those that the measured metrics allow.
void derive_metrics(model::Session& session, const std::filesystem::path& run);
/// After it: roofline, bound and utilization of each region.
void judge_regions(model::Report& report);

}  // namespace rangescope::cli
