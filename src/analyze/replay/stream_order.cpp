#include "analyze/replay/stream_order.hpp"

#include <algorithm>
#include <utility>

namespace rangescope::analyze::replay {
namespace {

/// A work, and one that it follows.
using Pair = std::pair<Id, Id>;

std::vector<std::vector<Id>> works_by_stream(const std::vector<Work>& works) {
  std::vector<std::vector<Id>> by_stream;
  for (Id work = 0; work < works.size(); ++work) {
    const Id stream = works[work].stream;
    if (stream >= by_stream.size())
      by_stream.resize(stream + 1);
    by_stream[stream].push_back(work);
  }
  return by_stream;
}

void order_stream(const std::vector<Work>& works,
                  const std::vector<Id>& by_start,
                  std::vector<Pair>& pairs) {
  std::vector<Id> by_end = by_start;
  const auto end_of = [&](Id work) { return works[work].end_ns; };
  if (!std::ranges::is_sorted(by_end, {}, end_of))
    std::ranges::stable_sort(by_end, {}, end_of);

  std::size_t ended = 0;
  Id previous = model::kNone, last_ended = model::kNone;
  for (const Id work : by_start) {
    const std::size_t ended_before = ended;
    bool follows_previous = previous == model::kNone || works[work].in_graph;
    while (ended < by_end.size() && by_end[ended] < work &&
           end_of(by_end[ended]) <= works[work].start_ns) {
      last_ended = by_end[ended++];
      pairs.emplace_back(work, last_ended);
      follows_previous |= last_ended == previous;
    }
    if (ended == ended_before && last_ended != model::kNone)
      pairs.emplace_back(work, last_ended);
    follows_previous |= last_ended == previous;
    if (!follows_previous)
      pairs.emplace_back(work, previous);
    previous = work;
  }
}

}  // namespace

StreamOrder::StreamOrder(const std::vector<Work>& works)
    : first_(works.size() + 1), end_before_(works.size(), kNothing) {
  std::vector<Pair> pairs;
  pairs.reserve(works.size());
  for (const auto& by_start : works_by_stream(works))
    order_stream(works, by_start, pairs);

  for (const auto& [work, follows] : pairs) {
    ++first_[work + 1];
    end_before_[work] = std::max(end_before_[work], works[follows].end_ns);
  }
  for (std::size_t work = 0; work < works.size(); ++work)
    first_[work + 1] += first_[work];
  before_.resize(pairs.size());
  std::vector<Id> next(first_.begin(), first_.end() - 1);
  for (const auto& [work, follows] : pairs)
    before_[next[work]++] = follows;
}

std::span<const Id> StreamOrder::before(Id work) const {
  return std::span(before_).subspan(first_[work], first_[work + 1] - first_[work]);
}

}  // namespace rangescope::analyze::replay
