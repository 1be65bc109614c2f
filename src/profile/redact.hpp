// What a run directory must not keep of an export of nsys: the environments of programs.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace rangescope::profile {

/// nsys exports the whole environment of the program and of other processes, secrets included (seen with 2022.4.2,
/// 2023.4.4 and 2025.3.1: TARGET_INFO_SYSTEM_ENV, META_DATA_CAPTURE, and blocks of NAME=value among the strings). They
/// are overwritten in place.
/// The errors of SQLite, with the place; then the file must not be kept.
[[nodiscard]] base::Result<void> redact_nsys_export(const std::filesystem::path& sqlite);

}  // namespace rangescope::profile
