// Disjoint stretches of time, and how much of them lies within another: a sort and prefix sums,
// then O(log n) a question.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace rangescope::analyze {

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;  ///< start and end
/// Puts them in order; those that adjoin or overlap become one.
void unite(Spans& spans);

/// The union of all stretches added; finish() comes between the last add() and the first question.
class Stretches {
 public:
  void add(std::int64_t start, std::int64_t end) {
    if (end <= start)
      return;
    if (!list_.empty() && start >= list_.back().start && start <= list_.back().end)
      list_.back().end = std::max(list_.back().end, end);
    else
      list_.push_back({start, end, 0});
  }
  void finish();
  /// How much of [start, end) they cover.
  [[nodiscard]] std::int64_t within(std::int64_t start, std::int64_t end) const {
    return end <= start ? 0 : until(end) - until(start);
  }
  /// What of [start, end) they cover, as offsets from `start`. O(log n + parts).
  [[nodiscard]] Spans parts(std::int64_t start, std::int64_t end) const;
  [[nodiscard]] bool holds(std::int64_t at) const { return within(at, at + 1) > 0; }
  [[nodiscard]] bool empty() const { return list_.empty(); }

 private:
  struct Part {
    std::int64_t start, end, before;  ///< before: length of those that come earlier
  };
  [[nodiscard]] std::int64_t until(std::int64_t at) const;
  std::vector<Part> list_;
};

}  // namespace rangescope::analyze
