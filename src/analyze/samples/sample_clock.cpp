#include "analyze/samples/sample_clock.hpp"

#include <algorithm>
#include <cmath>

namespace rangescope::analyze {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

// Samples that are compared, and of those, evenly spaced, the ones that a search of many shifts looks at.
constexpr std::size_t kWindow = 100'000, kSearched = 16'384;
// How far the clocks of a machine are trusted: fully, and hardly.
constexpr std::int64_t kNear_ns = 1'000'000, kFar_ns = 20'000'000;
constexpr double kGood = 0.5;    // a correlation that nothing but the right shift reaches
constexpr double kBlunt = 0.01;  // of correlation: no difference

struct Window {
  std::span<const std::int64_t> start, end;
  std::span<const float> activity;
  std::span<const Interval> busy;
  std::size_t stride = 1;
};

Window thin(Window w) {
  w.stride = (w.start.size() + kSearched - 1) / kSearched;
  return w;
}

/// The first interval from `b` on that ends after `at`: a step where that is near, O(log distance) where it is far.
std::size_t next_busy(std::span<const Interval> busy, std::size_t b, std::int64_t at) {
  const auto before = [&](const Interval& i) { return i.second <= at; };
  std::size_t step = 1;
  for (; b + step < busy.size() && before(busy[b + step]); step *= 2) b += step;
  const std::size_t end = std::min(b + step, busy.size());
  return static_cast<std::size_t>(std::partition_point(busy.begin() + static_cast<std::ptrdiff_t>(b),
                                                       busy.begin() + static_cast<std::ptrdiff_t>(end), before) -
                                  busy.begin());
}

/// Correlation of activity and of the time in which work ran, with samples moved by `offset`.
double correlation(const Window& w, std::int64_t offset) {
  double n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  std::size_t b = 0;
  for (std::size_t i = 0; i < w.start.size(); i += w.stride) {
    const std::int64_t from = w.start[i] + offset, to = w.end[i] + offset;
    b = next_busy(w.busy, b, from);
    std::int64_t covered = 0;
    for (std::size_t k = b; k < w.busy.size() && w.busy[k].first < to; ++k)
      covered += std::min(to, w.busy[k].second) - std::max(from, w.busy[k].first);
    const double y = w.activity[i];
    if (std::isnan(y)) continue;
    const double x = static_cast<double>(covered) / static_cast<double>(to - from);
    n += 1, sx += x, sy += y, sxx += x * x, syy += y * y, sxy += x * y;
  }
  const double vx = sxx - sx * sx / n, vy = syy - sy * sy / n;
  if (n < 8 || vx <= 1e-12 * n || vy <= 1e-12 * n) return 0;
  return (sxy - sx * sy / n) / std::sqrt(vx * vy);
}

struct Best {
  std::int64_t offset = 0;
  double value = -2;
};

/// The best of the shifts center - steps * step ... center + steps * step; the nearest to the center among equals.
Best search(const Window& w, std::int64_t center, std::int64_t step, int steps) {
  Best best{center, correlation(w, center)};
  for (int i = 1; i <= steps; ++i) {
    for (const std::int64_t offset : {center + i * step, center - i * step}) {
      const double value = correlation(w, offset);
      if (value > best.value + 1e-12) best = {offset, value};
    }
  }
  return best;
}

Best refine(const Window& w, Best best, std::int64_t step, std::int64_t least) {
  for (step /= 4; step >= least; step /= 4) best = search(w, best.offset, step, 6);
  return best;
}

}  // namespace

Alignment align_samples(std::span<const std::int64_t> start_ns, std::span<const std::int64_t> end_ns,
                        std::span<const float> activity, std::span<const Interval> busy, std::int64_t guess_ns) {
  Alignment out{guess_ns, 0, 0, false};
  if (start_ns.size() < 8 || busy.empty()) return out;
  const std::int64_t length =
      std::max<std::int64_t>((end_ns.back() - start_ns.front()) / static_cast<std::int64_t>(start_ns.size()), 1);
  // Samples around our work, as the guess has it: where edges are, and little of other processes.
  const auto window_around = [&](std::int64_t from_ns, std::int64_t to_ns) {
    const auto first =
        static_cast<std::size_t>(std::lower_bound(start_ns.begin(), start_ns.end(), from_ns) - start_ns.begin());
    const auto last =
        static_cast<std::size_t>(std::lower_bound(start_ns.begin(), start_ns.end(), to_ns) - start_ns.begin());
    const std::size_t from = std::min(first, start_ns.size() - 1);
    const std::size_t count = std::min(std::max(last, from + 1) - from, kWindow);
    return Window{start_ns.subspan(from, count), end_ns.subspan(from, count), activity.subspan(from, count), busy};
  };
  const std::int64_t step = std::max<std::int64_t>(length / 2, 1000), least = std::max<std::int64_t>(length / 512, 50);
  Window window;
  Best best;
  for (const std::int64_t reach : {std::max(kNear_ns, 2 * length), kFar_ns}) {
    if (best.value >= kGood) break;
    window = window_around(busy.front().first - guess_ns - 3 * reach, busy.back().second - guess_ns + 3 * reach);
    best = refine(window,
                  search(thin(window), guess_ns, step, static_cast<int>(std::min<std::int64_t>(reach / step, 1000))),
                  step, least);
  }
  if (best.value < kGood) {
    // The clocks say nothing of use: every shift at which samples and work overlap, in at most 2,000 steps.
    const std::int64_t low = busy.front().first - end_ns.back(), high = busy.back().second - start_ns.front();
    const std::int64_t coarse = std::max((high - low) / 2000, step);
    window = window_around(start_ns.front(), end_ns.back());
    const Window sparse = thin(window);
    Best far = search(sparse, low + (high - low) / 2, coarse, static_cast<int>((high - low) / 2 / coarse));
    for (std::int64_t finer = coarse / 8; finer > step; finer /= 8) far = search(sparse, far.offset, finer, 16);
    far = refine(window, search(window, far.offset, step, 16), step, least);
    if (far.value > best.value + 0.1) best = far;
  }
  if (best.value < kGood) return out;
  // Samples longer than what they show have a blunt peak: the machine's clocks are right unless activity says
  // otherwise.
  if (const double there = correlation(window, guess_ns);
      std::abs(best.offset - guess_ns) < length && there > best.value - kBlunt)
    best = {guess_ns, there};
  out = {best.offset, best.value, 0, true};
  const std::size_t half = window.start.size() / 2;
  const auto part = [&](std::size_t from, std::size_t count) {
    const Window w{window.start.subspan(from, count), window.end.subspan(from, count),
                   window.activity.subspan(from, count), busy};
    const Best own = refine(w, search(w, best.offset, step / 2, 8), step / 2, least);
    return own.value < kGood ? best.offset : own.offset;
  };
  out.residual_ns = std::abs(static_cast<double>(part(0, half) - part(half, window.start.size() - half)));
  return out;
}

}  // namespace rangescope::analyze
