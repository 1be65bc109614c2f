// A run directory as one file, and back: a POSIX tar (ustar) in one zstd frame, <run>.tar.zst, which `tar --zstd`
// reads.
//
// Streams: memory does not grow with the run. An archive may come from anywhere, so unpacking takes regular files and
// folders below the run's own name only: absolute paths, empty components, `..`, links, devices, a name twice and what
// unpacks to too much are refused (kBadData). Everything goes into a new hidden folder of mode 0700, which gets the
// run's name at the end and is removed when anything is wrong; nothing that exists is ever opened or replaced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

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

/// What an archive may become.
struct UnpackLimits {
  std::uint64_t bytes = UINT64_MAX, members = UINT64_MAX;
};
/// Unpacks into `root`/<name of the run>; kUsage when that exists already. Without `limits`: 256 MiB or a hundred times
/// the archive, and 100,000 files and folders.
[[nodiscard]] base::Result<Packed> unpack_run(const std::filesystem::path& archive, const std::filesystem::path& root,
                                              std::optional<UnpackLimits> limits = {});

/// Removes a run that `archive` holds, once all of it came out of there as it was written; kBadData else.
[[nodiscard]] base::Result<void> replace_run(const std::filesystem::path& run, const std::filesystem::path& archive);

}  // namespace rangescope::runs
