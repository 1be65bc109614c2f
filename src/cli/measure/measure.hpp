// `compare --measure N -- A :: B`: commands that are profiled in turns, so that what the machine
// does meanwhile falls on all of them alike.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rangescope::cli {

/// Profiles each of the commands, which "::" separates in `words`, `turns` times: A B, B A, A B ...
/// What the programs print is dropped, except errors. The folders of the runs, one per command, in
/// a new folder below `root`. kUsage for fewer than two commands, kNotComparable where one failed,
/// with what it was.
[[nodiscard]] base::Result<std::vector<std::string>> measure_in_turns(
    const std::vector<std::string>& words, std::size_t turns, const std::string& root);

}  // namespace rangescope::cli
