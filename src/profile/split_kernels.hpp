// A folder for each kernel that ncu measured, with a table a section, for scripts that expect one kernel a folder:
//
//   OUT/<kernel>/<section>.csv   ID,Metric Name,Metric Unit,Metric Value of every result of the kernel, in base units
//   OUT/<kernel>/durations.svg   how long its calls took on the timeline, where a stage recorded one
//   OUT/roofline.svg             the regions under the roofs of the GPU
//
// Kernels and sections are named as ncu's details page names them, with what a file name should not hold replaced.
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/result.hpp"
#include "profile/analyzed.hpp"

namespace rangescope::profile {

/// Writes them; how many kernels. kIo with the path. O(results + kernels on the timeline).
[[nodiscard]] base::Result<std::size_t> split_kernels(const std::filesystem::path& out, const Analyzed& analyzed);

}  // namespace rangescope::profile
