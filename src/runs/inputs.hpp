// The data that a program reads, named in workload.inputs and workload.subset: checked before the run, and recorded in
// env.json, so that two runs that saw different data can be told apart.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "base/result.hpp"

namespace rangescope::runs {

/// "input.PATH" -> what it is. A file of at most 64 MiB: its bytes and SHA-256; a larger one: bytes and time. A folder:
/// files, bytes and the SHA-256 of their names, sizes and times (at most 100,000 files). kNoInput where one is not
/// there or cannot be read. O(bytes of the small files).
[[nodiscard]] base::Result<std::map<std::string, std::string>> look_at_inputs(std::span<const std::string> paths,
                                                                              const std::filesystem::path& cwd);

}  // namespace rangescope::runs
