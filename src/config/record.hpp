// What a run directory keeps of a configuration: config.yaml, the resolved values, and inputs.yaml,
// what they were made of (files, groups, and who set each key). Secrets are redacted
// (base/redact.hpp).
#pragma once

#include <string>

#include "config/compose.hpp"

namespace rangescope::config {

[[nodiscard]] std::string recorded_values(const Config& config);
[[nodiscard]] std::string recorded_inputs(const Config& config);

}  // namespace rangescope::config
