#include "analyze/statistics/stretches.hpp"

#include <algorithm>

namespace rangescope::analyze {

void Stretches::finish() {
  std::sort(list_.begin(), list_.end(), [](const Part& a, const Part& b) { return a.start < b.start; });
  std::size_t kept = 0;
  for (const Part& part : list_) {
    if (kept > 0 && part.start <= list_[kept - 1].end)
      list_[kept - 1].end = std::max(list_[kept - 1].end, part.end);
    else
      list_[kept++] = part;
  }
  list_.resize(kept);
  std::int64_t sum = 0;
  for (Part& part : list_) {
    part.before = sum;
    sum += part.end - part.start;
  }
}

std::vector<std::pair<std::int64_t, std::int64_t>> Stretches::parts(std::int64_t start, std::int64_t end) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  auto part = std::upper_bound(list_.begin(), list_.end(), start,
                               [](std::int64_t value, const Part& each) { return value < each.end; });
  for (; part != list_.end() && part->start < end; ++part)
    out.emplace_back(std::max(part->start, start) - start, std::min(part->end, end) - start);
  return out;
}

std::int64_t Stretches::until(std::int64_t at) const {
  auto after = std::upper_bound(list_.begin(), list_.end(), at,
                                [](std::int64_t value, const Part& part) { return value < part.start; });
  if (after == list_.begin()) return 0;
  --after;
  return after->before + std::min(at, after->end) - after->start;
}

}  // namespace rangescope::analyze
