// One native capture file into a session: records to ranges, marks and names. Linear in the file's
// size.
//
// Damage becomes losses and never fails: a torn or truncated tail is cut, an unknown record
// skipped, a record that contradicts its own size ends its chunk. What follows a damaged place of a
// stream is still read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/result.hpp"
#include "model/session.hpp"
#include "read/native/chunks.hpp"
#include "read/native/losses.hpp"
#include "read/native/thin.hpp"

namespace rangescope::read::native {

/// How the ranges of large captures are thinned (read/native/thin.hpp).
struct Thinning {
  std::size_t listed = 0;
  std::map<std::uint32_t, Moments> moments;  ///< by pid
  Release release = {};                      ///< of what was walked over
};

/// Adds a process with all that `file` holds; with `thinning` if given. kBadData when it is no
/// capture, or one of a newer major version. The process's index is session.processes.size() before
/// the call.
[[nodiscard]] base::Result<void> read_trace(std::span<const std::byte> file,
                                            const std::string& where,
                                            model::Session& session,
                                            Losses& losses,
                                            const Thinning* thinning = nullptr);

/// Within a thread, ranges must be in the order in which they were pushed; a tid that the system
/// gave out twice can break it. Sorts by start time only when that is so.
void order_ranges(model::Session& session);

}  // namespace rangescope::read::native
