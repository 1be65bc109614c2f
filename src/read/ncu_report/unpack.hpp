// Whole-file zstd, as .ncu-repz uses it: streamed, bounded, and never trusting the size that a frame claims.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rangescope::read::ncu_report {

/// Most bytes that unpack() makes of one file; more is refused with the place.
inline constexpr std::size_t kMostUnpacked = std::size_t{4} << 30;

/// Most compressed bytes of one zstd block.
inline constexpr std::size_t kMostBlock = std::size_t{128} << 10;

struct Unpacked {
  std::string bytes;
  bool torn = false;  ///< the stream ended in the middle of a frame: `bytes` is what came before
};

[[nodiscard]] bool is_zstd(std::string_view head);
/// At most the first `most` bytes; fewer when the stream is short, torn or damaged.
[[nodiscard]] std::string unpack_head(std::string_view bytes, std::size_t most);
/// All of it (one frame or several end to end). kBadData at the compressed offset where it is damaged or too large.
[[nodiscard]] base::Result<Unpacked> unpack(std::string_view bytes, const std::string& path,
                                            std::size_t most = kMostUnpacked);

}  // namespace rangescope::read::ncu_report
