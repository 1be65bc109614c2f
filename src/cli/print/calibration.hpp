// What `rangescope metrics calibrate` prints, and the file of conf/device that it keeps.
#pragma once

#include <string>

#include "collect/native/calibrate.hpp"
#include "model/peaks.hpp"

namespace rangescope::cli {

/// What was measured beside the data sheet's values; `sheet` may be null.
[[nodiscard]] std::string calibration_table(const collect::native::Calibration& c, const model::Peaks* sheet);
/// As conf/device has it; rates that were not measured are the data sheet's.
[[nodiscard]] std::string calibration_yaml(const collect::native::Calibration& c, const model::Peaks* sheet);

/// "nvidia-h200.yaml" of "NVIDIA H200".
[[nodiscard]] std::string calibration_file(const std::string& device);

}  // namespace rangescope::cli
