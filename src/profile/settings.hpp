// From the composed configuration to the options of the collectors that drive nsys and ncu.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collect/collector.hpp"
#include "collect/nsight/ncu.hpp"
#include "collect/nsight/nsys.hpp"
#include "collect/nsight/tools.hpp"
#include "config/compose.hpp"
#include "model/metric_group.hpp"

namespace rangescope::profile {

/// The ranges and kernels of a run: ranges.*, kernels.*, or the keys of ncu that are aliases of
/// them; of a key and its alias the one that was set last. kUsage where both are on the command
/// line, and for what cannot be parsed.
[[nodiscard]] base::Result<model::RangeSelection> ranges_of(const config::Config& config);
[[nodiscard]] base::Result<model::KernelSelection> kernels_of(const config::Config& config);
/// The key that asks for a gated recording, which only nsys makes; "" when none does, when nsys is
/// on, or when somebody decided about nsys (by its key or by a choice of collector).
[[nodiscard]] std::string_view gating_key(const config::Config& config);
/// capture_range=cudaProfilerApi without nsys and ncu: those calls of the program open and close a
/// window.
[[nodiscard]] bool opens_window_by_calls(const config::Config& config);
/// Says which keys of the command line belong to a tool that is switched off.
void warn_of_idle_keys(const config::Config& config);
/// kUsage where a range is included and excluded. `decode|prefill` is one name to every tool and to
/// us: warns how several are written.
[[nodiscard]] base::Result<void> check_ranges(const model::RangeSelection& ranges);
/// kUsage where a kernel is included and excluded.
[[nodiscard]] base::Result<void> check_kernels(const model::KernelSelection& kernels);
[[nodiscard]] collect::nsys::Options nsys_options(const config::Config& config);
[[nodiscard]] collect::ncu::Options ncu_options(const config::Config& config);
/// Metrics as ncu knows them: a name that is a metric group of conf/metrics becomes the counters
/// that the group is made of, each the first of its names that this ncu has (the first of all where
/// ncu's metrics are not known). Notes say what was replaced and what this ncu lacks. Other names
/// stay as they are; the plan checks them.
[[nodiscard]] std::vector<std::string> ncu_metrics(const std::vector<std::string>& names,
                                                   std::span<const model::MetricGroup> groups,
                                                   const collect::Abilities& ncu,
                                                   std::vector<std::string>& notes);
/// Program, folder, environment and time limit; ranges and kernels are left empty.
[[nodiscard]] collect::Request base_request(const config::Config& config,
                                            const std::filesystem::path& run);
/// Where the tool is looked for; `tool` is "nsys" or "ncu".
[[nodiscard]] collect::ToolSearch search_for(const config::Config& config, std::string_view tool);

}  // namespace rangescope::profile
