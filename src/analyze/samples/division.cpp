#include "analyze/samples/division.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "analyze/statistics/nonnegative.hpp"

namespace rangescope::analyze {
namespace {

using model::SampleKind;
using model::SampleStream;

constexpr std::size_t kMostAtOnce = 1024;  // pieces of work that one moment may see
// Either of two kernels that follow each other may own this much of the boundary ...
constexpr double kBoundary_ns = 300;
constexpr double kClockError = 0.002;  // ... and this share of a sample if its clock is another one

/// What ran in one sample: a piece and for how long.
struct Overlap {
  std::uint32_t kind, set;
  double ns;
  double work;  ///< the same in nanoseconds of a mean execution
};

/// What ran in a sample.
struct SampleContent {
  std::size_t sample = 0;
  std::span<const Overlap> overlaps;
  double busy_ns = 0;  ///< without what ran at the same time
};

/// Calls `each(content)` for every sample in order. O(samples + pieces + overlaps).
template <class Each>
void for_each_sample(const SampleStream& stream,
                     std::int64_t offset,
                     const std::vector<SampledPiece>& pieces,
                     Each&& each) {
  std::vector<std::uint32_t> active;
  std::vector<Overlap> overlaps;
  std::size_t next = 0;
  for (std::size_t s = 0; s < stream.start_ns.size(); ++s) {
    const std::int64_t start = stream.start_ns[s] + offset;
    const std::int64_t end = stream.end_ns[s] + offset;
    while (next < pieces.size() && pieces[next].start_ns < end) {
      if (pieces[next].end_ns > start && active.size() < kMostAtOnce)
        active.push_back(static_cast<std::uint32_t>(next));
      ++next;
    }
    overlaps.clear();
    double busy_ns = 0;
    std::int64_t busy_until = start;
    std::size_t kept = 0;
    for (const std::uint32_t p : active) {
      const SampledPiece& piece = pieces[p];
      if (piece.end_ns <= start)
        continue;
      const std::int64_t inside_start = std::max(start, piece.start_ns);
      const std::int64_t inside_end = std::min(end, piece.end_ns);
      if (inside_end > inside_start) {
        const auto ns = static_cast<double>(inside_end - inside_start);
        overlaps.push_back({piece.kind, piece.set, ns, ns * static_cast<double>(piece.pace)});
        if (inside_end > busy_until)
          busy_ns += static_cast<double>(inside_end - std::max(inside_start, busy_until));
        busy_until = std::max(busy_until, inside_end);
      }
      if (piece.end_ns > end)
        active[kept++] = p;
    }
    active.resize(kept);
    each(SampleContent{s, overlaps, busy_ns});
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

/// Rates of one metric by kind, in units a nanosecond, and their errors.
struct Rates {
  std::vector<double> rate, error;
};

/// The least-squares problem: what the kinds' rates are, from how long each ran in each sample.
class RateFit {
 public:
  RateFit(std::size_t kinds, std::size_t metrics)
      : gram_(kinds),
        metrics_(metrics, {std::vector<double>(kinds, 0)}),
        row_(kinds),
        kinds_(kinds) {}

  /// Starts a sample. `idle`: the kind of the idle device.
  void start_sample(const SampleContent& content, std::uint32_t idle, double length_ns) {
    row_.clear();
    for (const Overlap& overlap : content.overlaps)
      row_.add(overlap.kind, overlap.work);
    if (length_ns > content.busy_ns)
      row_.add(idle, length_ns - content.busy_ns);
    for (const std::uint32_t a : row_.list())
      for (const std::uint32_t b : row_.list())
        gram_.at(a, b) += row_[a] * row_[b];
    sample_work_ = 0;
    for (const Overlap& overlap : content.overlaps)
      sample_work_ += overlap.work;
    all_work_ += sample_work_;
    samples_ += 1;
  }

  /// Adds the amount of a metric in that sample.
  void add_amount(std::size_t m, double amount) {
    Sums& sums = metrics_[m];
    sums.squares += amount * amount;
    if (sample_work_ > 0)
      sums.with_work += amount;
    for (const std::uint32_t kind : row_.list())
      sums.projected[kind] += row_[kind] * amount;
  }

  /// As much evidence as one full sample gives speaks for the mean rate: kinds of work that
  /// samples hardly separate stay near it, and the equations can always be solved.
  [[nodiscard]] Rates solve(std::size_t m, double interval_ns) const {
    const Sums& sums = metrics_[m];
    const double ridge = 1e-4 * interval_ns * interval_ns;
    Gram gram = gram_;
    for (std::size_t k = 0; k < kinds_; ++k)
      gram.at(k, k) += ridge;
    const double mean_rate = all_work_ > 0 ? sums.with_work / all_work_ : 0;
    std::vector<double> right = sums.projected;
    for (std::size_t k = 0; k + 1 < kinds_; ++k)
      right[k] += ridge * mean_rate;
    const NonNegative fitted = solve_nonnegative(gram, right);
    const double unexplained = std::max(residual_squares(sums, fitted.x), 0.0);
    const double noise = unexplained / std::max(samples_ - static_cast<double>(kinds_), 1.0);
    Rates rates{fitted.x, {}};
    for (std::size_t k = 0; k < kinds_; ++k)
      rates.error.push_back(std::sqrt(noise * fitted.variance[k]));
    return rates;
  }

 private:
  /// Of one metric.
  struct Sums {
    std::vector<double> projected;  ///< by kind: time times amount
    double squares = 0;
    double with_work = 0;  ///< amount in samples with work
  };

  [[nodiscard]] double residual_squares(const Sums& sums, const std::vector<double>& rates) const {
    double rest = sums.squares;
    for (std::size_t a = 0; a < kinds_; ++a) {
      rest -= 2 * rates[a] * sums.projected[a];
      for (std::size_t b = 0; b < kinds_; ++b)
        rest += rates[a] * gram_.at(a, b) * rates[b];
    }
    return rest;
  }

  Gram gram_;
  std::vector<Sums> metrics_;
  Touched row_;  ///< time of each kind in the sample that was started
  std::size_t kinds_;
  double sample_work_ = 0, all_work_ = 0, samples_ = 0;
};

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
        activity_(activity_column(stream)) {
    const std::size_t kinds = work.kinds.size() + 1;
    const std::size_t metrics = stream.metrics.size();
    out_.of_set.assign(metrics, std::vector<SamplePart>(sets + 1));
    out_.of_kind.assign(metrics, std::vector<SamplePart>(kinds));
    out_.set_ns.assign(sets + 1, 0);
    out_.kind_ns.assign(kinds, 0);
    out_.set_total_ns.assign(sets + 1, 0);
    out_.totals.assign(metrics, 0);
    for (const SampledPiece& piece : work.pieces)
      out_.set_total_ns[piece.set] += static_cast<double>(piece.end_ns - piece.start_ns);
  }

  DividedSamples run() {
    fit();
    divide();
    add_boundaries();
    return std::move(out_);
  }

 private:
  [[nodiscard]] double length(std::size_t s) const {
    return static_cast<double>(stream_.end_ns[s] - stream_.start_ns[s]);
  }
  [[nodiscard]] double amount(std::size_t m, std::size_t s) const {
    const double value = static_cast<double>(stream_.metrics[m].values[s]);
    return stream_.metrics[m].kind == SampleKind::kShare ? value * length(s) : value;
  }

  /// Nothing of ours ran, and the device was active: another process used it.
  [[nodiscard]] bool is_of_others(const SampleContent& content) const {
    if (!content.overlaps.empty() || activity_ >= stream_.metrics.size())
      return false;
    return stream_.metrics[activity_].values[content.sample] > kOtherActive;
  }

  /// Is every value of that sample known that adds up?
  [[nodiscard]] bool is_complete(std::size_t s) const {
    for (std::size_t m = 0; m < stream_.metrics.size(); ++m)
      if (adds(stream_.metrics[m].kind) && std::isnan(amount(m, s)))
        return false;
    return true;
  }

  void fit() {
    const std::size_t kinds = work_.kinds.size() + 1;
    const std::size_t metrics = stream_.metrics.size();
    RateFit fit(kinds, metrics);
    for_each_sample(stream_, offset_, work_.pieces, [&](const SampleContent& content) {
      const std::size_t s = content.sample;
      // Samples of another process say nothing of the idle device.
      if (!is_complete(s) || is_of_others(content))
        return;
      fit.start_sample(content, idle_, length(s));
      for (std::size_t m = 0; m < metrics; ++m)
        if (adds(stream_.metrics[m].kind))
          fit.add_amount(m, amount(m, s));
    });
    const Rates no_rates{std::vector<double>(kinds, 0), std::vector<double>(kinds, 0)};
    const double interval_ns = std::max(static_cast<double>(stream_.interval_ns), 1.0);
    for (std::size_t m = 0; m < metrics; ++m)
      rates_.push_back(adds(stream_.metrics[m].kind) ? fit.solve(m, interval_ns) : no_rates);
  }

  /// Shares of the sets and kinds in what a sample counted.
  struct Shares {
    Touched sets, kinds;
  };

  void divide() {
    const std::size_t metrics = stream_.metrics.size();
    Shares shares{Touched(out_.set_ns.size()), Touched(out_.kind_ns.size())};
    for_each_sample(stream_, offset_, work_.pieces, [&](const SampleContent& content) {
      add_times(content);
      for (std::size_t m = 0; m < metrics; ++m) {
        const double value = amount(m, content.sample);
        if (std::isnan(value))
          continue;
        if (adds(stream_.metrics[m].kind))
          divide_amount(m, value, content, shares);
        else
          add_state(m, value, content);
      }
    });
    for (std::size_t m = 0; m < metrics; ++m) {
      for (std::uint32_t k = 0; k < idle_; ++k) {
        const double error = rates_[m].error[k] * out_.kind_ns[k];
        out_.of_kind[m][k].variance += error * error;
      }
    }
  }

  [[nodiscard]] double idle_ns(const SampleContent& content) const {
    return length(content.sample) - content.busy_ns;
  }

  void add_times(const SampleContent& content) {
    out_.busy_ns += content.busy_ns;
    for (const Overlap& overlap : content.overlaps) {
      out_.set_ns[overlap.set] += overlap.ns;
      out_.kind_ns[overlap.kind] += overlap.ns;
    }
    out_.kind_ns[idle_] += idle_ns(content);
    if (is_of_others(content)) {
      const double activity = stream_.metrics[activity_].values[content.sample];
      out_.other_ns += std::min<double>(activity, 1) * length(content.sample);
    }
  }

  /// Divides what a sample counted in proportion to rate times overlap.
  void divide_amount(std::size_t m, double value, const SampleContent& content, Shares& shares) {
    out_.totals[m] += value;
    const std::vector<double>& rates = rates_[m].rate;
    const double idle = idle_ns(content);
    double expected = rates[idle_] * idle, work_ns = 0;
    for (const Overlap& overlap : content.overlaps) {
      expected += rates[overlap.kind] * overlap.work;
      work_ns += overlap.ns;
    }
    // Where no rate says whose it is: by time, and nothing for the idle device.
    const bool by_time = expected <= 0;
    const double divisor = by_time ? work_ns : expected;
    if (divisor <= 0) {
      out_.of_kind[m][idle_].amount += value;
      return;
    }
    shares.sets.clear();
    shares.kinds.clear();
    for (const Overlap& overlap : content.overlaps) {
      const double weight = by_time ? overlap.ns : rates[overlap.kind] * overlap.work;
      const double share = weight / divisor;
      if (share <= 0)
        continue;
      shares.sets.add(overlap.set, share);
      shares.kinds.add(overlap.kind, share);
    }
    if (!by_time && idle > 0)
      out_.of_kind[m][idle_].amount += value * rates[idle_] * idle / divisor;
    add_shares(shares.sets, value, value - expected, out_.of_set[m]);
    add_shares(shares.kinds, value, value - expected, out_.of_kind[m]);
  }

  /// `residual`: what the rates do not explain of the value.
  static void add_shares(const Touched& shares,
                         double value,
                         double residual,
                         std::vector<SamplePart>& parts) {
    for (const std::uint32_t i : shares.list()) {
      parts[i].amount += value * shares[i];
      parts[i].variance += residual * residual * shares[i] * std::max(1 - shares[i], 0.0);
    }
  }

  /// Adds a value that does not add up to all that ran meanwhile, weighted by time.
  void add_state(std::size_t m, double value, const SampleContent& content) {
    const auto add = [&](SamplePart& part, double ns) {
      part.amount += value * ns;
      part.weight += ns;
      part.largest = std::max(part.largest, value);
    };
    for (const Overlap& overlap : content.overlaps) {
      add(out_.of_set[m][overlap.set], overlap.ns);
      add(out_.of_kind[m][overlap.kind], overlap.ns);
    }
    const double idle = idle_ns(content);
    if (idle > 0)
      add(out_.of_kind[m][idle_], idle);
  }

  /// Where one piece of work follows another closely, either may have moved what was counted at the
  /// boundary.
  void add_boundaries() {
    double unsure_ns = kBoundary_ns;
    if (stream_.other_clock)
      unsure_ns += kClockError * static_cast<double>(stream_.interval_ns);
    for (std::size_t p = 0; p + 1 < work_.pieces.size(); ++p) {
      const SampledPiece& piece = work_.pieces[p];
      const SampledPiece& next = work_.pieces[p + 1];
      if (next.start_ns - piece.end_ns > stream_.interval_ns || piece.kind == next.kind)
        continue;
      for (std::size_t m = 0; m < stream_.metrics.size(); ++m)
        if (adds(stream_.metrics[m].kind))
          add_boundary(m, piece, next, unsure_ns);
    }
  }

  void add_boundary(std::size_t m,
                    const SampledPiece& piece,
                    const SampledPiece& next,
                    double unsure_ns) {
    const std::vector<double>& rates = rates_[m].rate;
    const double moved = unsure_ns * std::abs(rates[piece.kind] - rates[next.kind]);
    out_.of_kind[m][piece.kind].edges += moved;
    out_.of_kind[m][next.kind].edges += moved;
    if (piece.set == next.set)
      return;
    out_.of_set[m][piece.set].edges += moved;
    out_.of_set[m][next.set].edges += moved;
  }

  const SampleStream& stream_;
  const SampledWork& work_;
  std::int64_t offset_;
  std::uint32_t idle_;  ///< the kind of the idle device
  std::size_t activity_;
  std::vector<Rates> rates_;  ///< by metric
  DividedSamples out_;
};

}  // namespace

DividedSamples divide_samples(const SampleStream& stream,
                              const SampledWork& work,
                              std::size_t sets,
                              std::int64_t offset_ns) {
  return Division(stream, work, sets, offset_ns).run();
}

}  // namespace rangescope::analyze
