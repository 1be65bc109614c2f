// From the composed configuration to the options of the collectors that drive nsys and ncu.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "collect/collector.hpp"
#include "collect/ncu/ncu.hpp"
#include "collect/nsys/nsys.hpp"
#include "collect/tools.hpp"
#include "config/compose.hpp"

namespace rangescope::cli {

[[nodiscard]] collect::nsys::Options nsys_options(const config::Config& config);
[[nodiscard]] collect::ncu::Options ncu_options(const config::Config& config);
/// Program, folder, environment and time limit; expressions are left empty.
[[nodiscard]] collect::Request base_request(const config::Config& config, const std::filesystem::path& run);
/// Where the tool is looked for; `tool` is "nsys" or "ncu".
[[nodiscard]] collect::ToolSearch search_for(const config::Config& config, std::string_view tool);

}  // namespace rangescope::cli
