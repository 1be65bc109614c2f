// What a run directory must not keep: the environments of programs in an export of nsys, and
// secrets among the texts of memory snapshots, which the program writes by itself.
#pragma once

#include <filesystem>

#include "base/redact.hpp"
#include "base/result.hpp"

namespace rangescope::profile {

/// nsys exports the whole environment of the program and of other processes, secrets included (seen
/// with 2022.4.2, 2023.4.4 and 2025.3.1: TARGET_INFO_SYSTEM_ENV, META_DATA_CAPTURE, and blocks of
/// NAME=value among the strings). They are overwritten in place. The errors of SQLite, with the
/// place; then the file must not be kept.
[[nodiscard]] base::Result<void> redact_nsys_export(const std::filesystem::path& sqlite);

/// Redacts the texts of a memory snapshot; all else stays byte for byte. Whether there was anything
/// to redact. On an error the file must not be kept.
[[nodiscard]] base::Result<bool> redact_snapshot(const std::filesystem::path& snapshot_file,
                                                 const base::Redactor& redactor);

/// The snapshots below a folder of native captures. One that cannot be redacted is removed, with a
/// warning.
void redact_snapshots(const std::filesystem::path& captures, const base::Redactor& redactor);

}  // namespace rangescope::profile
