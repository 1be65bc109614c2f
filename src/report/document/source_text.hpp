// The text of a source line that a compiler's line information names.
#pragma once

#include <string>

#include "model/stall.hpp"

namespace rangescope::report {

/// The line without its indentation. "" if the file is not on this machine, is newer than
/// `recorded_unix_ns` (0: unknown), has fewer lines or more than 4 MiB, or is not a source file: a
/// recording may name any file.
[[nodiscard]] std::string source_text(const model::StallLine& line, std::int64_t recorded_unix_ns);

}  // namespace rangescope::report
