#include "analyze/samples/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "analyze/samples/sample_row.hpp"
#include "analyze/samples/sample_work.hpp"
#include "analyze/statistics/nonnegative.hpp"
#include "analyze/tree/busy.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

// The clock of samples onto the session's, by what both say of when the device was active.
//
// Algorithm: the shift at which the samples' activity and the share of each sample in which our
// work ran correlate best (Pearson), first around what the clocks of the machine suggest, else over
// all shifts at which both overlap; coarse, then ever finer. On a window of at most 100,000
// samples, so that its cost has a bound: O(window) a shift, about a thousand shifts.

struct Alignment {
  std::int64_t offset_ns = 0;  ///< added to a sample's time it gives the session's
  double correlation = 0;  ///< of activity at that shift, -1..1; 0 where there was nothing to go by
  double residual_ns = 0;  ///< how far the first and the second half of the window disagree
  bool by_activity = false;  ///< else it is what the clocks suggest
};

using Interval = std::pair<std::int64_t, std::int64_t>;

// Samples that are compared, and of those, evenly spaced, the ones that a search of many shifts
// looks at.
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

/// The first interval from `b` on that ends after `at`: a step where that is near, O(log distance)
/// where it is far.
std::size_t next_busy(std::span<const Interval> busy, std::size_t b, std::int64_t at) {
  const auto before = [&](const Interval& i) { return i.second <= at; };
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
    if (std::isnan(y))
      continue;
    const double x = static_cast<double>(covered) / static_cast<double>(to - from);
    n += 1, sx += x, sy += y, sxx += x * x, syy += y * y, sxy += x * y;
  }
  const double vx = sxx - sx * sx / n, vy = syy - sy * sy / n;
  if (n < 8 || vx <= 1e-12 * n || vy <= 1e-12 * n)
    return 0;
  return (sxy - sx * sy / n) / std::sqrt(vx * vy);
}

struct Best {
  std::int64_t offset = 0;
  double value = -2;
};

/// The best of the shifts center - steps * step ... center + steps * step; the nearest to the
/// center among equals.
Best search(const Window& w, std::int64_t center, std::int64_t step, int steps) {
  Best best{center, correlation(w, center)};
  for (int i = 1; i <= steps; ++i) {
    for (const std::int64_t offset : {center + i * step, center - i * step}) {
      const double value = correlation(w, offset);
      if (value > best.value + 1e-12)
        best = {offset, value};
    }
  }
  return best;
}

Best refine(const Window& w, Best best, std::int64_t step, std::int64_t least) {
  for (step /= 4; step >= least; step /= 4)
    best = search(w, best.offset, step, 6);
  return best;
}

/// `busy`: when our work ran, in order, without overlap. `activity`: one a sample, 0..1 (NaN:
/// unknown).
Alignment align_samples(std::span<const std::int64_t> start_ns,
                        std::span<const std::int64_t> end_ns,
                        std::span<const float> activity,
                        std::span<const Interval> busy,
                        std::int64_t guess_ns) {
  Alignment out{guess_ns, 0, 0, false};
  if (start_ns.size() < 8 || busy.empty())
    return out;
  const std::int64_t length = std::max<std::int64_t>(
      (end_ns.back() - start_ns.front()) / static_cast<std::int64_t>(start_ns.size()), 1);
  // Samples around our work, as the guess has it: where edges are, and little of other processes.
  const auto window_around = [&](std::int64_t from_ns, std::int64_t to_ns) {
    const auto first = static_cast<std::size_t>(
        std::lower_bound(start_ns.begin(), start_ns.end(), from_ns) - start_ns.begin());
    const auto last = static_cast<std::size_t>(
        std::lower_bound(start_ns.begin(), start_ns.end(), to_ns) - start_ns.begin());
    const std::size_t from = std::min(first, start_ns.size() - 1);
    const std::size_t count = std::min(std::max(last, from + 1) - from, kWindow);
    return Window{start_ns.subspan(from, count),
                  end_ns.subspan(from, count),
                  activity.subspan(from, count),
                  busy};
  };
  const std::int64_t step = std::max<std::int64_t>(length / 2, 1000),
                     least = std::max<std::int64_t>(length / 512, 50);
  Window window;
  Best best;
  for (const std::int64_t reach : {std::max(kNear_ns, 2 * length), kFar_ns}) {
    if (best.value >= kGood)
      break;
    window = window_around(busy.front().first - guess_ns - 3 * reach,
                           busy.back().second - guess_ns + 3 * reach);
    best = refine(window,
                  search(thin(window),
                         guess_ns,
                         step,
                         static_cast<int>(std::min<std::int64_t>(reach / step, 1000))),
                  step,
                  least);
  }
  if (best.value < kGood) {
    // The clocks say nothing of use: every shift at which samples and work overlap, in at most
    // 2,000 steps.
    const std::int64_t low = busy.front().first - end_ns.back(),
                       high = busy.back().second - start_ns.front();
    const std::int64_t coarse = std::max((high - low) / 2000, step);
    window = window_around(start_ns.front(), end_ns.back());
    const Window sparse = thin(window);
    Best far =
        search(sparse, low + (high - low) / 2, coarse, static_cast<int>((high - low) / 2 / coarse));
    for (std::int64_t finer = coarse / 8; finer > step; finer /= 8)
      far = search(sparse, far.offset, finer, 16);
    far = refine(window, search(window, far.offset, step, 16), step, least);
    if (far.value > best.value + 0.1)
      best = far;
  }
  if (best.value < kGood)
    return out;
  // Samples longer than what they show have a blunt peak: the machine's clocks are right unless
  // activity shows otherwise.
  if (const double there = correlation(window, guess_ns);
      std::abs(best.offset - guess_ns) < length && there > best.value - kBlunt)
    best = {guess_ns, there};
  out = {best.offset, best.value, 0, true};
  const std::size_t half = window.start.size() / 2;
  const auto part = [&](std::size_t from, std::size_t count) {
    const Window w{window.start.subspan(from, count),
                   window.end.subspan(from, count),
                   window.activity.subspan(from, count),
                   busy};
    const Best own = refine(w, search(w, best.offset, step / 2, 8), step / 2, least);
    return own.value < kGood ? best.offset : own.offset;
  };
  out.residual_ns =
      std::abs(static_cast<double>(part(0, half) - part(half, window.start.size() - half)));
  return out;
}

using model::SampledMetric;
using model::SampleKind;
using model::SampleStream;
using model::Session;

constexpr std::size_t kMostKinds = 256;
constexpr std::size_t kMostAtOnce = 1024;  // pieces of work that one moment may see
constexpr double kBoundary_ns =
    300;  // that belong to either of two kernels that follow each other,
constexpr double kClockError = 0.002;  // and so much of a sample, by which its clock may be off

/// What ran in one sample: a piece and for how long.
struct Overlap {
  std::uint32_t kind, set;
  double ns;
  double work;  ///< the same in nanoseconds of a mean execution
};

/// Calls `each(sample, overlaps, busy_ns)` for every sample in order. O(samples + pieces +
/// overlaps).
template <class Each>
void sweep(const SampleStream& stream,
           std::int64_t offset,
           const std::vector<SampledPiece>& pieces,
           Each&& each) {
  std::vector<std::uint32_t> active;
  std::vector<Overlap> overlaps;
  std::size_t next = 0;
  for (std::size_t s = 0; s < stream.start_ns.size(); ++s) {
    const std::int64_t from = stream.start_ns[s] + offset, to = stream.end_ns[s] + offset;
    while (next < pieces.size() && pieces[next].start_ns < to) {
      if (pieces[next].end_ns > from && active.size() < kMostAtOnce)
        active.push_back(static_cast<std::uint32_t>(next));
      ++next;
    }
    overlaps.clear();
    double busy = 0;
    std::int64_t until = from;
    std::size_t kept = 0;
    for (const std::uint32_t p : active) {
      const SampledPiece& piece = pieces[p];
      if (piece.end_ns <= from)
        continue;
      const std::int64_t begin = std::max(from, piece.start_ns), end = std::min(to, piece.end_ns);
      if (end > begin) {
        const auto ns = static_cast<double>(end - begin);
        overlaps.push_back({piece.kind, piece.set, ns, ns * static_cast<double>(piece.pace)});
        if (end > until)
          busy += static_cast<double>(end - std::max(begin, until));
        until = std::max(until, end);
      }
      if (piece.end_ns > to)
        active[kept++] = p;
    }
    active.resize(kept);
    each(s, std::span<const Overlap>(overlaps), busy);
  }
}

/// Sums by a small number of indexes that a sample touches.
class Touched {
 public:
  explicit Touched(std::size_t size) : sums_(size, 0) {}
  void add(std::uint32_t index, double value) {
    if (sums_[index] == 0)
      list_.push_back(index);
    sums_[index] += value;
  }
  void clear() {
    for (const std::uint32_t index : list_)
      sums_[index] = 0;
    list_.clear();
  }
  [[nodiscard]] const std::vector<std::uint32_t>& list() const { return list_; }
  double operator[](std::uint32_t index) const { return sums_[index]; }

 private:
  std::vector<double> sums_;
  std::vector<std::uint32_t> list_;
};

/// One stream divided among the work of its card.
class Division {
 public:
  Division(const SampleStream& stream,
           const SampledWork& work,
           std::size_t sets,
           std::int64_t offset)
      : stream_(stream),
        work_(work),
        offset_(offset),
        idle_(static_cast<std::uint32_t>(work.kinds.size())),
        activity_(activity_column(stream)),
        of_set(stream.metrics.size(), std::vector<SamplePart>(sets + 1)),
        of_kind(stream.metrics.size(), std::vector<SamplePart>(work.kinds.size() + 1)),
        set_ns(sets + 1, 0),
        kind_ns(work.kinds.size() + 1, 0),
        set_total_ns(sets + 1, 0) {
    for (const SampledPiece& piece : work.pieces)
      set_total_ns[piece.set] += static_cast<double>(piece.end_ns - piece.start_ns);
  }

  void run() {
    fit();
    divide();
    boundaries();
  }

 private:
  const SampleStream& stream_;
  const SampledWork& work_;
  std::int64_t offset_;
  std::uint32_t idle_;
  std::size_t activity_;
  std::vector<std::vector<double>> rates_,
      rate_errors_;  ///< by metric, then kind; a unit a nanosecond

 public:
  std::vector<std::vector<SamplePart>> of_set,
      of_kind;  ///< by metric; the last kind is the idle device
  std::vector<double> set_ns,
      kind_ns;                       ///< sampled time of the work (overlapping work counts twice)
  std::vector<double> set_total_ns;  ///< all of its time
  std::vector<double> totals;        ///< by metric
  double busy_ns = 0, other_ns = 0;

 private:
  [[nodiscard]] double length(std::size_t s) const {
    return static_cast<double>(stream_.end_ns[s] - stream_.start_ns[s]);
  }
  [[nodiscard]] double amount(std::size_t m, std::size_t s) const {
    const double value = static_cast<double>(stream_.metrics[m].values[s]);
    return stream_.metrics[m].kind == SampleKind::kShare ? value * length(s) : value;
  }

  /// Is the device active in that sample? Where nothing of ours ran, somebody else is at work.
  [[nodiscard]] bool others(std::size_t s) const {
    return activity_ < stream_.metrics.size() &&
           stream_.metrics[activity_].values[s] > kOtherActive;
  }

  void fit() {
    const std::size_t n = work_.kinds.size() + 1, metrics = stream_.metrics.size();
    Gram gram(n);
    std::vector<std::vector<double>> projected(metrics, std::vector<double>(n, 0));
    std::vector<double> squares(metrics, 0), work_amount(metrics, 0);
    double work_overlap = 0, used = 0;
    Touched row(n);
    sweep(stream_,
          offset_,
          work_.pieces,
          [&](std::size_t s, std::span<const Overlap> overlaps, double busy) {
            bool whole = true;
            for (std::size_t m = 0; m < metrics; ++m)
              whole &= !adds(stream_.metrics[m].kind) || !std::isnan(amount(m, s));
            if (!whole || (overlaps.empty() && others(s)))
              return;  // another process's say nothing of the idle device
            row.clear();
            for (const Overlap& o : overlaps)
              row.add(o.kind, o.work);
            if (length(s) > busy)
              row.add(idle_, length(s) - busy);
            for (const std::uint32_t a : row.list())
              for (const std::uint32_t b : row.list())
                gram.at(a, b) += row[a] * row[b];
            double overlap = 0;
            for (const Overlap& o : overlaps)
              overlap += o.work;
            work_overlap += overlap;
            used += 1;
            for (std::size_t m = 0; m < metrics; ++m) {
              if (!adds(stream_.metrics[m].kind))
                continue;
              const double y = amount(m, s);
              squares[m] += y * y;
              if (overlap > 0)
                work_amount[m] += y;
              for (const std::uint32_t a : row.list())
                projected[m][a] += row[a] * y;
            }
          });
    // As much evidence as one full sample gives speaks for the mean rate: kinds of work that
    // samples hardly tell apart stay near it, and the equations can always be solved.
    const double one = std::max(static_cast<double>(stream_.interval_ns), 1.0),
                 ridge = 1e-4 * one * one;
    Gram solved = gram;
    for (std::size_t k = 0; k < n; ++k)
      solved.at(k, k) += ridge;
    rates_.assign(metrics, std::vector<double>(n, 0));
    rate_errors_ = rates_;
    for (std::size_t m = 0; m < metrics; ++m) {
      if (!adds(stream_.metrics[m].kind))
        continue;
      const double mean = work_overlap > 0 ? work_amount[m] / work_overlap : 0;
      std::vector<double> right = projected[m];
      for (std::size_t k = 0; k + 1 < n; ++k)
        right[k] += ridge * mean;
      const NonNegative fitted = solve_nonnegative(solved, right);
      double rest = squares[m];
      for (std::size_t a = 0; a < n; ++a) {
        rest -= 2 * fitted.x[a] * projected[m][a];
        for (std::size_t b = 0; b < n; ++b)
          rest += fitted.x[a] * gram.at(a, b) * fitted.x[b];
      }
      const double noise = std::max(rest, 0.0) / std::max(used - static_cast<double>(n), 1.0);
      rates_[m] = fitted.x;
      for (std::size_t k = 0; k < n; ++k)
        rate_errors_[m][k] = std::sqrt(noise * fitted.variance[k]);
    }
  }

  void divide() {
    const std::size_t metrics = stream_.metrics.size();
    totals.assign(metrics, 0);
    Touched sets(set_ns.size()), kinds(kind_ns.size());
    sweep(stream_,
          offset_,
          work_.pieces,
          [&](std::size_t s, std::span<const Overlap> overlaps, double busy) {
            const double idle = length(s) - busy;
            busy_ns += busy;
            for (const Overlap& o : overlaps)
              set_ns[o.set] += o.ns, kind_ns[o.kind] += o.ns;
            kind_ns[idle_] += idle;
            if (overlaps.empty() && others(s))
              other_ns += std::min<double>(stream_.metrics[activity_].values[s], 1) * length(s);
            for (std::size_t m = 0; m < metrics; ++m) {
              const double a = amount(m, s);
              if (std::isnan(a))
                continue;
              if (!adds(stream_.metrics[m].kind)) {
                describe(m, a, overlaps, idle);
                continue;
              }
              totals[m] += a;
              const std::vector<double>& rates = rates_[m];
              double expected = rates[idle_] * idle;
              for (const Overlap& o : overlaps)
                expected += rates[o.kind] * o.work;
              const bool blind =
                  expected <= 0;  // no rate tells whose it is: by time, and never the idle device's
              double whole = expected;
              if (blind) {
                whole = 0;
                for (const Overlap& o : overlaps)
                  whole += o.ns;
              }
              if (whole <= 0) {
                of_kind[m][idle_].amount += a;
                continue;
              }
              sets.clear();
              kinds.clear();
              for (const Overlap& o : overlaps) {
                const double part = (blind ? o.ns : rates[o.kind] * o.work) / whole;
                if (part <= 0)
                  continue;
                sets.add(o.set, part);
                kinds.add(o.kind, part);
              }
              if (!blind && idle > 0)
                of_kind[m][idle_].amount += a * rates[idle_] * idle / whole;
              const double residual = a - expected;
              const auto give = [&](std::vector<SamplePart>& to, const Touched& parts) {
                for (const std::uint32_t i : parts.list()) {
                  to[i].amount += a * parts[i];
                  to[i].variance += residual * residual * parts[i] * std::max(1 - parts[i], 0.0);
                }
              };
              give(of_set[m], sets);
              give(of_kind[m], kinds);
            }
          });
    for (std::size_t m = 0; m < metrics; ++m) {
      for (std::uint32_t k = 0; k < idle_; ++k) {
        const double error = rate_errors_[m][k] * kind_ns[k];
        of_kind[m][k].variance += error * error;
      }
    }
  }

  void describe(std::size_t m, double value, std::span<const Overlap> overlaps, double idle) {
    const auto give = [&](SamplePart& to, double ns) {
      to.amount += value * ns;
      to.weight += ns;
      to.largest = std::max(to.largest, value);
    };
    for (const Overlap& o : overlaps) {
      give(of_set[m][o.set], o.ns);
      give(of_kind[m][o.kind], o.ns);
    }
    if (idle > 0)
      give(of_kind[m][idle_], idle);
  }

  /// Where one piece of work follows another closely, either may have moved what was counted at the
  /// boundary.
  void boundaries() {
    const double unsure_ns =
        kBoundary_ns +
        (stream_.other_clock ? kClockError * static_cast<double>(stream_.interval_ns) : 0);
    for (std::size_t p = 0; p + 1 < work_.pieces.size(); ++p) {
      const SampledPiece &one = work_.pieces[p], &other = work_.pieces[p + 1];
      if (other.start_ns - one.end_ns > stream_.interval_ns || one.kind == other.kind)
        continue;
      for (std::size_t m = 0; m < stream_.metrics.size(); ++m) {
        if (!adds(stream_.metrics[m].kind))
          continue;
        const double moved = unsure_ns * std::abs(rates_[m][one.kind] - rates_[m][other.kind]);
        of_kind[m][one.kind].edges += moved;
        of_kind[m][other.kind].edges += moved;
        if (one.set == other.set)
          continue;
        of_set[m][one.set].edges += moved;
        of_set[m][other.set].edges += moved;
      }
    }
  }
};

using Rows = std::map<std::string, SampledRow>;

void put(const Rows& rows, double per, double busy_ns, std::map<std::string, model::Metric>& to) {
  for (const auto& [name, row] : rows)
    if (!to.contains(name))
      to.emplace(name, sampled_metric(row, per, busy_ns, "GPU work"));
}

class Reporter {
 public:
  Reporter(const Session& session,
           const Contexts& contexts,
           const Sets& sets,
           const KernelGroups& groups,
           model::Report& report)
      : session_(session),
        contexts_(contexts),
        sets_(sets),
        groups_(groups),
        report_(report),
        regions_(sets.regions),
        kernels_(groups.names.size()) {}

  void run() {
    std::size_t cards = 0;
    const std::vector<std::uint32_t> card_of = cards_of_streams(session_, cards);
    for (const SampleStream& stream : session_.samples) {
      if (const auto card = card_of_samples(stream, card_of, cards))
        add(stream, work_of_card(session_, contexts_, sets_, groups_, card_of, *card, kMostKinds));
    }
    for (std::size_t r = 0; r < report_.regions.size() && r < regions_.size(); ++r) {
      model::Region& region = report_.regions[r];
      if (region.gpu)
        put(regions_[r],
            static_cast<double>(region.occurrences),
            region.gpu->busy_ns,
            region.metrics);
    }
    std::map<std::string_view, std::uint32_t> name_of;
    for (std::uint32_t n = 0; n < groups_.names.size(); ++n)
      name_of.emplace(
          session_.strings.view(shown_name(session_.kernel_names[groups_.names[n].kernel_name])),
          n);
    for (model::KernelRow& row : report_.kernels) {
      const auto found = name_of.find(row.name);
      if (found != name_of.end())
        put(kernels_[found->second], static_cast<double>(row.calls), row.total_ns, row.metrics);
    }
  }

 private:
  /// The card that a stream samples; nothing where the program did not use it.
  [[nodiscard]] std::optional<std::uint32_t> card_of_samples(
      const SampleStream& stream,
      const std::vector<std::uint32_t>& card_of,
      std::size_t cards) const {
    bool told = false;
    for (std::size_t s = 0; s < session_.streams.size(); ++s) {
      const std::uint32_t d = session_.streams[s].device;
      if (d >= session_.devices.size())
        continue;
      const std::string_view uuid = session_.strings.view(session_.devices[d].uuid);
      told |= !uuid.empty();
      if (d == stream.device || (!uuid.empty() && uuid == stream.uuid))
        return card_of[s];
    }
    const bool any = !told || stream.uuid.empty();
    return any && cards == 1 ? std::optional<std::uint32_t>(0) : std::nullopt;
  }

  void add(const SampleStream& stream, const SampledWork& work) {
    if (stream.start_ns.empty() || stream.metrics.empty())
      return;
    model::SampledDevice device = describe_stream(stream, report_);
    const Alignment clock = aligned(stream, work, device);
    device.stream = static_cast<std::uint32_t>(&stream - session_.samples.data());
    device.offset_ns = clock.offset_ns;
    Division division(stream, work, sets_.size(), clock.offset_ns);
    division.run();
    describe(stream, division, device);
    for (std::size_t m = 0; m < stream.metrics.size(); ++m)
      collect(stream, division, work, m, device);
    report_.sampled.push_back(std::move(device));
  }

  Alignment aligned(const SampleStream& stream,
                    const SampledWork& work,
                    model::SampledDevice& device) {
    const std::size_t activity = activity_column(stream);
    Alignment clock{stream.offset_ns, 0, 0, false};
    if (!stream.other_clock) {
      device.clock = "the session's own";
    } else if (activity < stream.metrics.size()) {
      clock = align_samples(stream.start_ns,
                            stream.end_ns,
                            stream.metrics[activity].values,
                            work.kernels,
                            stream.offset_ns);
    }
    if (clock.by_activity)
      device.clock = fmt::format(
          "by activity, correlation {:.2f}, {:.1f} us from the machine's clocks, halves agree "
          "within {:.1f} us",
          clock.correlation,
          static_cast<double>(clock.offset_ns - stream.offset_ns) * 1e-3,
          clock.residual_ns * 1e-3);
    else if (stream.other_clock)
      device.clock = "the machine's clocks: too little ran to compare activity";
    if (clock.residual_ns > static_cast<double>(stream.interval_ns))
      report_.losses.push_back(
          {"sample_clock",
           0,
           fmt::format("The clock of the samples of {} drifted by {} against the timeline: "
                       "neighbouring ranges may share samples.",
                       stream.name,
                       base::format_ns(clock.residual_ns))});
    return clock;
  }

  void describe(const SampleStream& stream,
                const Division& division,
                model::SampledDevice& device) {
    device.busy_ns = division.busy_ns;
    device.other_ns = division.other_ns;
    if (division.other_ns > 0.01 * device.sampled_ns && division.other_ns > 10 * device.interval_ns)
      report_.losses.push_back(
          {"other_gpu_activity",
           0,
           fmt::format("{} was active for {} while none of this program's work ran: another "
                       "process used it. That time "
                       "belongs to "
                       "no range; the other process's share during this program's work is unknown.",
                       stream.name,
                       base::format_ns(division.other_ns))});
  }

  void collect(const SampleStream& stream,
               const Division& division,
               const SampledWork& work,
               std::size_t m,
               model::SampledDevice& device) {
    const SampledMetric& metric = stream.metrics[m];
    const auto row_in = [&](Rows& rows, const std::string& name) -> SampledRow& {
      SampledRow& row = rows[name];
      row.kind = metric.kind;
      row.unit = metric.unit;
      row.interval_ns = static_cast<double>(std::max<std::int64_t>(stream.interval_ns, 1));
      return row;
    };
    model::SampledSum sum{
        metric.name, metric.unit, metric.kind == SampleKind::kShare, division.totals[m], 0, 0, 0};
    for (std::uint32_t s = 0; s < division.set_total_ns.size(); ++s) {
      const bool outside = s == Sets::kUnattributed || s == Sets::kNoLaunch || s >= sets_.size();
      (outside ? sum.outside : sum.in_ranges) += division.of_set[m][s].amount;
    }
    sum.idle = division.of_kind[m].back().amount;
    if (adds(metric.kind))
      device.sums.push_back(std::move(sum));
    // The same without `rate` for each nanosecond of work.
    const auto add_rows = [&](const std::string& name, double rate) {
      const auto add = [&](SampledRow& row, SamplePart part, double sampled_ns, double total_ns) {
        part.amount -= rate * sampled_ns;
        row.part.add(part);
        row.sampled_ns += sampled_ns;
        row.total_ns += total_ns;
      };
      for (std::uint32_t s = 0; s < division.set_total_ns.size() && s < sets_.size(); ++s) {
        if (division.set_total_ns[s] <= 0)
          continue;
        for (const SetEntry& entry : sets_.of(s))
          add(row_in(regions_[entry.region], name),
              division.of_set[m][s],
              division.set_ns[s],
              division.set_total_ns[s]);
      }
      for (std::uint32_t k = 0; k < work.kinds.size(); ++k)
        if (work.kinds[k].name != kNone)
          add(row_in(kernels_[work.kinds[k].name], name),
              division.of_kind[m][k],
              division.kind_ns[k],
              work.kinds[k].total_ns);
    };
    add_rows(metric.name, 0);
    // Energy beyond what the device draws while it has nothing to do; work side by side shares
    // that.
    if (const double idle_ns = division.kind_ns.back();
        metric.unit == "J" && idle_ns >= kLeastSamples * static_cast<double>(stream.interval_ns)) {
      double work_ns = 0;
      for (std::uint32_t k = 0; k < work.kinds.size(); ++k)
        work_ns += division.kind_ns[k];
      if (work_ns > 0)
        add_rows(metric.name + "_above_idle",
                 division.of_kind[m].back().amount / idle_ns * division.busy_ns / work_ns);
    }
  }

  const Session& session_;
  const Contexts& contexts_;
  const Sets& sets_;
  const KernelGroups& groups_;
  model::Report& report_;
  std::vector<Rows> regions_, kernels_;
};

}  // namespace

void derive_samples(model::Session& session, std::span<const model::MetricGroup> groups) {
  for (SampleStream& stream : session.samples) {
    std::vector<SampledMetric> derived;
    std::vector<char> taken(stream.metrics.size(), 0);
    for (const model::MetricGroup& group : groups) {
      for (const model::GroupMetric& metric : group.metrics) {
        std::map<std::string_view, std::size_t> column_of;
        for (const std::string& name : metric.formula.names()) {
          const auto counter = std::find_if(
              group.counters.begin(), group.counters.end(), [&](const model::GroupCounter& c) {
                return c.alias == name;
              });
          for (std::size_t m = 0; counter != group.counters.end() && m < stream.metrics.size(); ++m)
            if (std::find(counter->any.begin(), counter->any.end(), stream.metrics[m].name) !=
                counter->any.end())
              column_of.emplace(name, m);
        }
        if (column_of.empty() || column_of.size() != metric.formula.names().size())
          continue;
        SampledMetric out;
        out.name = metric.name;
        out.unit = metric.unit;
        out.title = metric.column ? metric.title : std::string();
        out.kind = stream.metrics[column_of.begin()->second].kind;
        out.values.resize(stream.start_ns.size());
        for (std::size_t s = 0; s < out.values.size(); ++s) {
          const auto value =
              metric.formula.evaluate([&](std::string_view name) -> std::optional<double> {
                return static_cast<double>(stream.metrics[column_of.at(name)].values[s]);
              });
          out.values[s] =
              value ? static_cast<float>(*value) : std::numeric_limits<float>::quiet_NaN();
        }
        for (const auto& [name, m] : column_of)
          taken[m] = 1;
        derived.push_back(std::move(out));
      }
    }
    for (std::size_t m = 0; m < stream.metrics.size(); ++m)
      if (taken[m] == 0)
        derived.push_back(std::move(stream.metrics[m]));
    stream.metrics = std::move(derived);
  }
}

void add_samples(const Session& session,
                 const Contexts& contexts,
                 const Sets& sets,
                 const KernelGroups& groups,
                 model::Report& report) {
  if (!session.samples.empty())
    Reporter(session, contexts, sets, groups, report).run();
}

}  // namespace rangescope::analyze
