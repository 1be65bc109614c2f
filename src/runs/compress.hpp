// Raw recordings of nsys and ncu in old runs, compressed where they lie: .ncu-rep becomes
// .ncu-repz, which is the same in one zstd frame and is read as it is (ncu 2026.3 does too);
// .nsys-rep, .qdrep and .qdstrm become NAME.zst, which `zstd -d` unpacks; reports are made of the
// SQLite export in the same folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/result.hpp"

namespace rangescope::runs {

struct Compressed {
  std::uint64_t files = 0, bytes = 0, packed_bytes = 0;
};

/// Compresses one finished run of this user. A file goes only when it matches the manifest and the
/// compressed one unpacks to it; the manifest then has the new file. Others stay. O(bytes), memory
/// that of one file's mapping.
[[nodiscard]] base::Result<Compressed> compress_run(const std::filesystem::path& run);

/// "older-than 7d". kUsage with the form.
[[nodiscard]] base::Result<std::chrono::seconds> parse_compress(std::string_view text);

}  // namespace rangescope::runs
