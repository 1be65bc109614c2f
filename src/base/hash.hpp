// Hashes: a fast one for tables, and SHA-256 for files that must be proved unchanged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rangescope::base {

/// FNV-1a, 64 bit; stable across machines and versions.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes,
                                            std::uint64_t seed = 14695981039346656037ull) noexcept {
  for (const char c : bytes)
    seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return seed;
}

/// SHA-256 (FIPS 180-4) in lower-case hexadecimal.
[[nodiscard]] std::string sha256(std::string_view bytes);
/// The same of a file, streamed; kIo or kNoInput with the path.
[[nodiscard]] Result<std::string> sha256_file(const std::filesystem::path& path);

}  // namespace rangescope::base
