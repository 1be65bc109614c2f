// A pickle with other texts, and all else as it was, byte for byte.
//
// A text stands behind its length, and protocol 4 puts the length of a frame before up to 64 KiB of
// opcodes: both follow where a text becomes longer or shorter. A text whose new length does not fit
// its opcode gets the opcode with four bytes of length.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rangescope::read::snapshot {

/// What a text is replaced by; nothing where it stays.
using ReplaceText = std::function<std::optional<std::string>(std::string_view text)>;

/// Nothing where all texts stay. Each different text is asked for once. kBadData with the offset of
/// what is no data opcode or breaks off. O(bytes); memory: the different texts, and the result.
[[nodiscard]] base::Result<std::optional<std::string>> with_texts(std::string_view pickle,
                                                                  const std::string& name,
                                                                  const ReplaceText& replace);

}  // namespace rangescope::read::snapshot
