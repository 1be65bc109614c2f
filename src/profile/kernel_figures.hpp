// Kernels that ncu measured, side by side: under the roofs of the GPU, and how each metric is
// distributed over them.
//
//   FOLDER/kernels.csv           a row for each kernel: time, limit, place in the roofline, metrics
//   FOLDER/kernel_roofline.svg   a dot for each kernel
//   FOLDER/METRIC.svg            how many kernels have which value
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "model/report.hpp"

namespace rangescope::profile {

/// Nothing where no kernel has counters. kIo with the path.
[[nodiscard]] base::Result<void> write_kernel_figures(const std::filesystem::path& folder,
                                                      const model::Report& report);

}  // namespace rangescope::profile
