// What packed bytes may become, wherever rangescope unpacks what may be a stranger's: reports,
// traces, recordings, digests. zstd makes 4,000 bytes of one and gzip 1,000; no recording of ours
// or of NVIDIA's comes near 100.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rangescope::base {

/// 256 MiB, or a hundred times as much as there is.
[[nodiscard]] constexpr std::uint64_t most_unpacked(std::uint64_t packed_bytes) noexcept {
  constexpr std::uint64_t kAlways = std::uint64_t{256} << 20, kRatio = 100;
  return std::max(kAlways, packed_bytes * kRatio);
}

}  // namespace rangescope::base
