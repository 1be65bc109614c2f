#include "analyze/statistics/stretches.hpp"

#include <algorithm>

namespace rangescope::analyze {

void unite(Spans& spans) {
  if (!std::ranges::is_sorted(spans))
    std::sort(spans.begin(), spans.end());
  std::size_t last = 0;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first <= spans[last].second)
      spans[last].second = std::max(spans[last].second, spans[i].second);
    else
      spans[++last] = spans[i];
  }
  if (!spans.empty())
    spans.resize(last + 1);
}

void Stretches::finish() {
  std::ranges::sort(list_, {}, &Part::start);
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

Spans Stretches::parts(std::int64_t start, std::int64_t end) const {
  Spans out;
  auto part =
      std::upper_bound(list_.begin(), list_.end(), start, [](std::int64_t value, const Part& each) {
        return value < each.end;
      });
  for (; part != list_.end() && part->start < end; ++part)
    out.emplace_back(std::max(part->start, start) - start, std::min(part->end, end) - start);
  return out;
}

std::int64_t Stretches::until(std::int64_t at) const {
  auto after =
      std::upper_bound(list_.begin(), list_.end(), at, [](std::int64_t value, const Part& part) {
        return value < part.start;
      });
  if (after == list_.begin())
    return 0;
  --after;
  return after->before + std::min(at, after->end) - after->start;
}

}  // namespace rangescope::analyze
