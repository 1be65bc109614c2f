#include "analyze/samples/sample_clock.hpp"

#include <algorithm>
#include <cmath>

namespace rangescope::analyze {
namespace {

using BusyInterval = std::pair<std::int64_t, std::int64_t>;

// Samples that are compared, and of those, evenly spaced, the ones that a search of many shifts
// looks at.
constexpr std::size_t kWindow = 100'000, kSearched = 16'384;
// How far the clocks of a machine are trusted: fully, and hardly.
constexpr std::int64_t kNear_ns = 1'000'000, kFar_ns = 20'000'000;
constexpr double kGood = 0.5;    // a correlation that nothing but the right shift reaches
constexpr double kBlunt = 0.01;  // of correlation: no difference

struct Window {
  ActivitySamples samples;
  std::span<const BusyInterval> busy;
  std::size_t stride = 1;

  [[nodiscard]] std::size_t size() const { return samples.start_ns.size(); }
  [[nodiscard]] Window part(std::size_t first, std::size_t count) const {
    return {{samples.start_ns.subspan(first, count),
             samples.end_ns.subspan(first, count),
             samples.activity.subspan(first, count)},
            busy};
  }
  /// With a stride that leaves kSearched samples at most.
  [[nodiscard]] Window thinned() const {
    return {samples, busy, (size() + kSearched - 1) / kSearched};
  }
};

/// The first interval from `b` on that ends after `start`: a step where that is near, O(log
/// distance) where it is far.
std::size_t next_busy(std::span<const BusyInterval> busy, std::size_t b, std::int64_t start) {
  const auto before = [&](const BusyInterval& i) { return i.second <= start; };
  std::size_t step = 1;
  for (; b + step < busy.size() && before(busy[b + step]); step *= 2)
    b += step;
  const std::size_t end = std::min(b + step, busy.size());
  return static_cast<std::size_t>(
      std::partition_point(busy.begin() + static_cast<std::ptrdiff_t>(b),
                           busy.begin() + static_cast<std::ptrdiff_t>(end),
                           before) -
      busy.begin());
}

/// Sums of two series.
struct CorrelationSums {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double a, double b) {
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }

  /// Pearson's; 0 where a series hardly varies.
  [[nodiscard]] double correlation() const {
    const double variance_x = xx - x * x / n;
    const double variance_y = yy - y * y / n;
    if (n < 8 || variance_x <= 1e-12 * n || variance_y <= 1e-12 * n)
      return 0;
    return (xy - x * y / n) / std::sqrt(variance_x * variance_y);
  }
};

/// Correlation of activity and of the time in which work ran, with samples moved by `offset`.
double correlation(const Window& window, std::int64_t offset) {
  const auto& [start_ns, end_ns, activity] = window.samples;
  CorrelationSums sums;
  std::size_t b = 0;
  for (std::size_t i = 0; i < window.size(); i += window.stride) {
    const std::int64_t start = start_ns[i] + offset;
    const std::int64_t end = end_ns[i] + offset;
    b = next_busy(window.busy, b, start);
    std::int64_t covered = 0;
    for (std::size_t k = b; k < window.busy.size() && window.busy[k].first < end; ++k)
      covered += std::min(end, window.busy[k].second) - std::max(start, window.busy[k].first);
    if (!std::isnan(activity[i]))
      sums.add(static_cast<double>(covered) / static_cast<double>(end - start), activity[i]);
  }
  return sums.correlation();
}

struct BestShift {
  std::int64_t offset = 0;
  double correlation = -2;
};

/// The best of the shifts center - steps * step ... center + steps * step; the nearest to the
/// center among equals.
BestShift search_around(const Window& window, std::int64_t center, std::int64_t step, int steps) {
  BestShift best{center, correlation(window, center)};
  for (int i = 1; i <= steps; ++i) {
    for (const std::int64_t offset : {center + i * step, center - i * step}) {
      const double value = correlation(window, offset);
      if (value > best.correlation + 1e-12)
        best = {offset, value};
    }
  }
  return best;
}

/// Searches around `best` with ever finer steps.
BestShift refine(const Window& window, BestShift best, std::int64_t step, std::int64_t finest) {
  for (step /= 4; step >= finest; step /= 4)
    best = search_around(window, best.offset, step, 6);
  return best;
}

/// The search for the shift of one device's samples.
class ClockSearch {
 public:
  ClockSearch(const ActivitySamples& samples,
              std::span<const BusyInterval> busy,
              std::int64_t guess_ns)
      : all_{samples, busy}, busy_(busy), guess_ns_(guess_ns) {
    const std::int64_t sampled_ns = samples.end_ns.back() - samples.start_ns.front();
    sample_ns_ = std::max<std::int64_t>(sampled_ns / static_cast<std::int64_t>(all_.size()), 1);
    step_ = std::max<std::int64_t>(sample_ns_ / 2, 1000);
    finest_ = std::max<std::int64_t>(sample_ns_ / 512, 50);
  }

  Alignment run() {
    search_near_guess();
    if (best_.correlation < kGood)
      search_everywhere();
    if (best_.correlation < kGood)
      return {guess_ns_, 0, 0, false};
    prefer_guess();
    return {best_.offset, best_.correlation, residual_ns(), true};
  }

 private:
  /// The samples that begin in this time, at least one and at most kWindow.
  [[nodiscard]] Window window_between(std::int64_t from_ns, std::int64_t to_ns) const {
    const auto& start_ns = all_.samples.start_ns;
    const auto index_of = [&](std::int64_t time_ns) {
      return static_cast<std::size_t>(std::lower_bound(start_ns.begin(), start_ns.end(), time_ns) -
                                      start_ns.begin());
    };
    const std::size_t first = std::min(index_of(from_ns), start_ns.size() - 1);
    const std::size_t last = std::max(index_of(to_ns), first + 1);
    return all_.part(first, std::min(last - first, kWindow));
  }

  /// Looks at samples around our work, as the guess has it: where edges are, and little of other
  /// processes.
  void search_near_guess() {
    for (const std::int64_t reach : {std::max(kNear_ns, 2 * sample_ns_), kFar_ns}) {
      if (best_.correlation >= kGood)
        return;
      window_ = window_between(busy_.front().first - guess_ns_ - 3 * reach,
                               busy_.back().second - guess_ns_ + 3 * reach);
      const int steps = static_cast<int>(std::min<std::int64_t>(reach / step_, 1000));
      const BestShift coarse = search_around(window_.thinned(), guess_ns_, step_, steps);
      best_ = refine(window_, coarse, step_, finest_);
    }
  }

  /// The clocks say nothing of use: tries every shift at which samples and work overlap, in at most
  /// 2,000 steps.
  void search_everywhere() {
    const std::int64_t low = busy_.front().first - all_.samples.end_ns.back();
    const std::int64_t high = busy_.back().second - all_.samples.start_ns.front();
    const std::int64_t coarse_step = std::max((high - low) / 2000, step_);
    window_ = window_between(all_.samples.start_ns.front(), all_.samples.end_ns.back());
    const Window sparse = window_.thinned();
    const int steps = static_cast<int>((high - low) / 2 / coarse_step);
    BestShift far = search_around(sparse, low + (high - low) / 2, coarse_step, steps);
    for (std::int64_t finer = coarse_step / 8; finer > step_; finer /= 8)
      far = search_around(sparse, far.offset, finer, 16);
    far = refine(window_, search_around(window_, far.offset, step_, 16), step_, finest_);
    if (far.correlation > best_.correlation + 0.1)
      best_ = far;
  }

  /// Samples longer than what they show have a blunt peak: the machine's clocks are right unless
  /// activity shows otherwise.
  void prefer_guess() {
    const double at_guess = correlation(window_, guess_ns_);
    const bool is_near = std::abs(best_.offset - guess_ns_) < sample_ns_;
    if (is_near && at_guess > best_.correlation - kBlunt)
      best_ = {guess_ns_, at_guess};
  }

  [[nodiscard]] double residual_ns() const {
    const std::size_t half = window_.size() / 2;
    const std::int64_t first = offset_of(window_.part(0, half));
    const std::int64_t second = offset_of(window_.part(half, window_.size() - half));
    return std::abs(static_cast<double>(first - second));
  }

  /// The best shift of that part alone, if it has a good one.
  [[nodiscard]] std::int64_t offset_of(const Window& part) const {
    const BestShift coarse = search_around(part, best_.offset, step_ / 2, 8);
    const BestShift shift = refine(part, coarse, step_ / 2, finest_);
    if (shift.correlation < kGood)
      return best_.offset;
    return shift.offset;
  }

  Window all_;
  std::span<const BusyInterval> busy_;
  std::int64_t guess_ns_;
  std::int64_t sample_ns_ = 1;  ///< mean
  std::int64_t step_ = 0, finest_ = 0;
  Window window_;  ///< the last one that was searched
  BestShift best_;
};

}  // namespace

Alignment align_samples(const ActivitySamples& samples,
                        std::span<const BusyInterval> busy,
                        std::int64_t guess_ns) {
  if (samples.start_ns.size() < 8 || busy.empty())
    return {guess_ns, 0, 0, false};
  return ClockSearch(samples, busy, guess_ns).run();
}

}  // namespace rangescope::analyze
