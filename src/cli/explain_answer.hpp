// `rangescope doctor --explain`: what is wrong with a command line of ncu or nsys, and the line that was meant.
#pragma once

#include <string>

namespace rangescope::cli {

/// Nothing on the line is run; the tool that it names is asked what it can do, where it is installed. Prints the
/// findings and, as the last line, the corrected command; the exit code.
[[nodiscard]] int explain_answer(const std::string& command, bool json);

}  // namespace rangescope::cli
