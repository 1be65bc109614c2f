// A digest as a file: docs/formats/digest.md. What is read may come from anybody: everything is checked.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "digest/digest.hpp"

namespace rangescope::digest {

inline constexpr std::string_view kFileName = "digest.rsd";  ///< in a run directory
inline constexpr std::size_t kMostFile = 64 << 20;

/// The file's bytes, the same for equal digests whatever merges they came from.
[[nodiscard]] base::Result<std::string> encode(Digest digest, int level = 6);
/// Into `out`, whose memory is used again. kBadData with the offset; another version is that too.
[[nodiscard]] base::Result<void> decode(std::string_view bytes, const std::string& where, Digest& out);

/// Atomically.
[[nodiscard]] base::Result<void> write(const std::filesystem::path& file, Digest digest);
/// kNoInput, kBadData.
[[nodiscard]] base::Result<void> read(const std::filesystem::path& file, Digest& out);

}  // namespace rangescope::digest
