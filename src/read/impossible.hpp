// GPU work whose times cannot be true: data loss of a kind of its own, never a number.
//
// Such records exist: kernels on another clock after a profiler turned CUPTI off and on (PyTorch
// issue 192021), and times of zero from work that was not awaited. Three cases: it ends before it
// starts, it starts before the call that launched it, it lies outside of the time that was
// recorded.
//
// Work of a recording whose GPU clock is off by more than kClockError_ns is early throughout. Then
// the clock is at fault, and the work is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "model/session.hpp"

namespace rangescope::read {

/// Clocks of GPU and CPU differ by at most so much in a recording that is right.
inline constexpr std::int64_t kClockError_ns = 100'000;

/// Where the work of a file begins in a session that holds that of others too.
struct FirstWork {
  std::size_t kernels = 0, copies = 0, memsets = 0, graph_launches = 0;
};

/// The time in which work was recorded.
struct RecordedTime {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
};

/// Removes such work, and adds a loss for each of the three cases. After work is linked to its
/// calls. `where` stands before the details. O(n).
void drop_impossible_work(model::Session& session,
                          const FirstWork& first,
                          RecordedTime recorded,
                          const std::string& where);

}  // namespace rangescope::read
