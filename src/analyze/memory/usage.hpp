// What an allocator had in use over time: a sum over its allocations, with the highest value of any
// stretch of time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/session.hpp"

namespace rangescope::analyze {

/// An allocation, or the negative of one.
struct MemoryChange {
  std::int64_t at_ns = 0;
  std::uint64_t bytes = 0;
};

/// One allocator's allocations, as a curve. Times are those of its events.
class MemoryUsage {
 public:
  /// O(n log n).
  MemoryUsage(const model::Session& session, std::uint32_t allocator);
  /// The same of changes in any order.
  explicit MemoryUsage(std::vector<MemoryChange> changes);

  [[nodiscard]] bool empty() const { return times_.empty(); }
  /// In use after the last event at or before `at_ns`.
  [[nodiscard]] double at(std::int64_t at_ns) const;
  /// The highest between two times, what is in use at the first included. O(log n).
  [[nodiscard]] double highest(std::int64_t from_ns, std::int64_t to_ns) const;
  [[nodiscard]] double peak() const;
  /// When the peak was first reached.
  [[nodiscard]] std::int64_t peak_at() const;
  /// Events before `at_ns`: a clock that only ticks when memory is allocated or freed.
  [[nodiscard]] std::size_t events_before(std::int64_t at_ns) const;

  [[nodiscard]] std::span<const std::int64_t> times() const { return times_; }
  [[nodiscard]] double after_event(std::size_t event) const {
    return static_cast<double>(in_use_[event]);
  }

 private:
  [[nodiscard]] std::int64_t highest_of(std::size_t first, std::size_t last) const;

  static constexpr std::size_t kBlock = 64;  ///< events for which the highest value is kept
  std::vector<std::int64_t> times_;
  std::vector<std::int64_t> in_use_;                      ///< after each event
  std::vector<std::vector<std::int64_t>> block_highest_;  ///< level k: of 2^k blocks from each on
};

}  // namespace rangescope::analyze
