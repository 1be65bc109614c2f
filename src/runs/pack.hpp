// A run directory as one file, and back: a POSIX tar (ustar) in one zstd frame, <run>.tar.zst, which `tar --zstd`
// reads.
//
// Streams: memory does not grow with the run. Unpacking takes regular files and folders below the run's own name only;
// absolute paths, `..`, links and devices are refused (kBadData), since the file may come from anywhere.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.hpp"

namespace rangescope::runs {

struct Packed {
  std::filesystem::path path;  ///< the archive, or the unpacked run
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  ///< of the files
  std::uint64_t packed_bytes = 0;
};

/// Packs `run` into `archive` (written beside and renamed). `with_reports` false leaves nsys's own reports out, which
/// hold the environment of processes, secrets included. kUsage for what is no run directory.
[[nodiscard]] base::Result<Packed> pack_run(const std::filesystem::path& run, const std::filesystem::path& archive,
                                            bool with_reports);
/// Unpacks into `root`/<name of the run>; kUsage when that exists already.
[[nodiscard]] base::Result<Packed> unpack_run(const std::filesystem::path& archive, const std::filesystem::path& root);

}  // namespace rangescope::runs
