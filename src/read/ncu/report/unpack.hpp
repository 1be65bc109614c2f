// Whole-file zstd, as .ncu-repz uses it: streamed, bounded, and never trusting the size that a
// frame claims.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rangescope::read::ncu_report {

/// Most compressed bytes of one zstd block.
inline constexpr std::size_t kMostBlock = std::size_t{128} << 10;

struct Unpacked {
  std::string bytes;
  bool torn = false;  ///< the stream ended in the middle of a frame: `bytes` is what came before
};

[[nodiscard]] bool is_zstd(std::string_view head);
/// At most the first `limit` bytes; fewer when the stream is short, torn or damaged.
[[nodiscard]] std::string unpack_head(std::string_view bytes, std::size_t limit);
/// All of it (one frame or several end to end). kBadData at the compressed offset where it is
/// damaged, or has made more than `limit` bytes (0: base::most_unpacked).
[[nodiscard]] base::Result<Unpacked> unpack(std::string_view bytes,
                                            const std::string& path,
                                            std::size_t limit = 0);

}  // namespace rangescope::read::ncu_report
