// One header of a POSIX tar (ustar): 512 bytes, name 100, mode 8, uid 8, gid 8, size 12 octal, mtime 12, checksum 8,
// type 1, link 100, "ustar\0" "00", ..., prefix 155 at 345. File bytes follow, padded to 512; two zero blocks end it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace rangescope::runs::ustar {

inline constexpr std::size_t kBlock = 512;
using Header = std::array<char, kBlock>;

struct Member {
  std::string name;  ///< as it stands there: not checked, not even for '..'
  std::uint64_t size = 0;
  char type = '0';  ///< '0' or '\0' a file, '5' a folder
};

/// kIo for a name that does not fit (more than 255 bytes, or a component of more than 100).
[[nodiscard]] base::Result<Header> write(const Member& member);
/// Nothing where the bytes are no header, by their checksum.
[[nodiscard]] std::optional<Member> read(const Header& header);

}  // namespace rangescope::runs::ustar
