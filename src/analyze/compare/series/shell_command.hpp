// The program behind a shell that only starts it.
#pragma once

#include <string>
#include <vector>

namespace rangescope::analyze {

/// `bash -c './app 1'` is `./app 1`, where the shell does nothing but start it.
[[nodiscard]] std::vector<std::string> command_without_shell(
    const std::vector<std::string>& command);

}  // namespace rangescope::analyze
