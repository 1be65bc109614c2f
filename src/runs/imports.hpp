// import.json: where the files of an imported run came from, so that a number can be traced to the
// file it was read in.
//
//   { "schema": "rangescope.import/1", "files": [ { "file": "nsys/a.sqlite", "original":
//   "nsys/a.nsys-rep",
//     "from": "/home/me/a.nsys-rep", "bytes": N, "sha256": "...", "modified_unix_ns": N, "format":
//     "nsys-rep", "tool": "Nsight Systems 2025.3.1", "version": "3.20.2", "redacted": true } ] }
//
// `file` is what a report of the run reads; `original` is the given file, where `file` was made
// from it. Size and hash are those of the given file. A run is an imported one when this file is
// there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rangescope::runs {

struct Import {
  std::string file;        ///< path within the run: a file, or a folder of native captures
  std::string original;    ///< path within the run of the given file, "" where `file` is that
  std::string given_path;  ///< absolute path as it was given
  std::uint64_t bytes = 0;
  std::string sha256;                 ///< "" for a folder: the manifest has those of its files
  std::int64_t modified_unix_ns = 0;  ///< when the given file was last written
  std::string format, tool, version;  ///< as in model::Source
  bool redacted = false;              ///< environments were overwritten in `file`
};

[[nodiscard]] base::Result<void> write_imports(const std::filesystem::path& run,
                                               const std::vector<Import>& imports);
/// Empty for a run that was not imported; kBadData for a damaged file.
[[nodiscard]] base::Result<std::vector<Import>> read_imports(const std::filesystem::path& run);

}  // namespace rangescope::runs
