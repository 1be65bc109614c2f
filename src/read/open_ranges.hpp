// Which push/pop ranges of a thread were open at a time: one sweep over them for times that only
// grow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "model/session.hpp"

namespace rangescope::read {

class OpenRanges {
 public:
  /// For each thread in `threads` (keys of a map), of the domains that `wanted` is true of. One
  /// pass over the session's ranges, which need not be in the order of their times; those that are
  /// added later are not seen.
  template <class Threads, class Wanted>
  [[nodiscard]] static std::map<std::uint32_t, OpenRanges> of(const model::Session& session,
                                                              const Threads& threads,
                                                              const Wanted& wanted) {
    std::map<std::uint32_t, OpenRanges> sweeps;
    for (const auto& [thread, any] : threads)
      sweeps.emplace(thread, OpenRanges(session));
    for (std::uint32_t i = 0; i < session.ranges.size(); ++i) {
      if (session.ranges[i].kind != model::RangeKind::kPushPop || !wanted(session.ranges[i].domain))
        continue;
      if (const auto sweep = sweeps.find(session.ranges[i].thread); sweep != sweeps.end())
        sweep->second.ranges_.push_back(i);
    }
    const auto start = [&](std::uint32_t range) { return session.ranges[range].start_ns; };
    for (auto& [thread, sweep] : sweeps)  // modules are behind all ranges of the program
      if (!std::ranges::is_sorted(sweep.ranges_, {}, start))
        std::ranges::stable_sort(sweep.ranges_, {}, start);
    return sweeps;
  }
  template <class Threads>
  [[nodiscard]] static std::map<std::uint32_t, OpenRanges> of(const model::Session& session,
                                                              const Threads& threads) {
    return of(session, threads, [](std::uint32_t) { return true; });
  }

  /// Takes those that began by `begin_ns` and are open until `end_ns`; true where they may be
  /// others than before.
  bool move_to(std::int64_t begin_ns, std::int64_t end_ns) {
    const std::size_t before = next_;
    const std::vector<model::Range>& ranges = session_->ranges;
    for (; next_ < ranges_.size() && ranges[ranges_[next_]].start_ns <= begin_ns; ++next_)
      open_.push_back(ranges_[next_]);
    const auto has_ended = [&](std::uint32_t range) { return ranges[range].end_ns < end_ns; };
    const std::size_t closed = std::erase_if(open_, has_ended);
    return closed > 0 || next_ != before;
  }
  /// Indexes into Session::ranges, bottom to top.
  [[nodiscard]] const std::vector<std::uint32_t>& open() const { return open_; }

 private:
  explicit OpenRanges(const model::Session& session) : session_(&session) {}

  const model::Session* session_;
  std::vector<std::uint32_t> ranges_, open_;
  std::size_t next_ = 0;
};

}  // namespace rangescope::read
