// Metric groups and device peaks from YAML files (conf/metrics/, conf/device/) into plain data.
//
// A folder is read whole: one file, one group or device. Anything unknown, missing or of the wrong
// type is kConfig with file:line:column.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "model/metric_group.hpp"
#include "model/name_regex.hpp"
#include "model/peaks.hpp"
#include "model/replay_costs.hpp"

namespace rangescope::config {

/// Every `*.yaml` of a folder, by name. kNoInput when the folder is not there.
[[nodiscard]] base::Result<std::vector<model::MetricGroup>> load_metric_groups(
    const std::filesystem::path& folder);
[[nodiscard]] base::Result<std::vector<model::Peaks>> load_peaks(
    const std::filesystem::path& folder);

/// conf/metrics of this program, $RANGESCOPE_CONF respected.
[[nodiscard]] base::Result<std::vector<model::MetricGroup>> shipped_groups();
/// conf/sample of this program: what is sampled while a program runs.
[[nodiscard]] base::Result<std::vector<model::MetricGroup>> sampled_groups();
/// conf/cpu_counters of this program: events of the CPU by perf's names.
[[nodiscard]] base::Result<std::vector<model::MetricGroup>> cpu_counter_groups();
/// conf/kernels of this program: the name of each kind, and its expressions.
[[nodiscard]] base::Result<std::vector<std::pair<std::string, std::vector<model::NameRegex>>>>
kernel_kinds();
/// conf/replay of this program.
[[nodiscard]] base::Result<model::ReplayCosts> replay_costs();
/// Where calibrate keeps what it measured: $XDG_CONFIG_HOME/rangescope/device, else ~/.config/...
/// kConfig without a home.
[[nodiscard]] base::Result<std::filesystem::path> user_devices();
/// What was measured on this machine, then conf/device of this program: among equals the first one
/// counts.
[[nodiscard]] base::Result<std::vector<model::Peaks>> known_peaks();
/// kConfig, with the nearest, unless this is "", auto or the id of known peaks.
[[nodiscard]] base::Result<void> check_device(const std::string& id);

}  // namespace rangescope::config
