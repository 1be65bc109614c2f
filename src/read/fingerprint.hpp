// A number by which two files of the same recording are recognized, whatever they are called and
// however they are packed.
#pragma once

#include <cstdint>

#include "model/session.hpp"

namespace rangescope::read {

/// Of a session without events and results.
inline constexpr std::uint64_t kNoFingerprint = 0;

/// Of the processes, and of the times and names of all that was recorded. O(n).
[[nodiscard]] std::uint64_t fingerprint(const model::Session& session);

}  // namespace rangescope::read
