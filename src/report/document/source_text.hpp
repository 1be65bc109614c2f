// The text of a source line that a compiler's line information names.
#pragma once

#include <string>

#include "model/stall.hpp"

namespace rangescope::report {

/// The line without its indentation. "" where the file is not on this machine, is newer than
/// `made_unix_ns` (0: not known), has fewer lines or more than 4 MiB, or is no source of C++ or
/// CUDA: a recording names any file it likes.
[[nodiscard]] std::string source_text(const model::StallLine& line, std::int64_t made_unix_ns);

}  // namespace rangescope::report
