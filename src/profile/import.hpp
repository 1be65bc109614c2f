// Files that other tools left, taken into a run directory.
//
// They are copied, never moved or changed; copies of nsys' exports lose the environments that nsys
// writes into them (profile/redact.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "read/reader.hpp"

namespace rangescope::profile {

/// Makes a run of them: its folder. Everything is read before anything is made, so that a file that
/// cannot be read leaves no run. kUsage for a run and for a file twice; the readers' errors.
[[nodiscard]] base::Result<std::filesystem::path> import_files(
    const std::vector<std::string>& inputs,
    const std::filesystem::path& root,
    const std::vector<std::string>& arguments,
    const read::Options& reading);

}  // namespace rangescope::profile
