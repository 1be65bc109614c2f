#include "analyze/statistics/permutation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>

namespace rangescope::analyze {
namespace {

constexpr double kFloor = 0.001;
constexpr double kMostSteps =
    4e8;  // deals x values x units, so that thousands of regions do not take minutes

/// One value of all units in ascending order, and which unit each is.
struct Sorted {
  std::vector<double> values;
  std::vector<std::uint32_t> units;  ///< A: 0 ... na - 1, then B
  double floor = 0;
};

Sorted sorted(const TwoGroups& value) {
  std::vector<double> of_unit = value.a;
  of_unit.insert(of_unit.end(), value.b.begin(), value.b.end());
  const bool positive = std::ranges::all_of(of_unit, [](double x) { return x > 0; });
  double size = 0;
  for (double& x : of_unit) {
    if (positive)
      x = std::log(x);
    size += std::abs(x);
  }
  Sorted out;
  out.floor = positive ? kFloor : kFloor * size / static_cast<double>(of_unit.size());
  out.units.resize(of_unit.size());
  std::iota(out.units.begin(), out.units.end(), 0u);
  std::stable_sort(
      out.units.begin(), out.units.end(), [&](auto x, auto y) { return of_unit[x] < of_unit[y]; });
  for (const std::uint32_t unit : out.units)
    out.values.push_back(of_unit[unit]);
  return out;
}

/// Mean without the fifth at each end. `x` ascends.
double trimmed_mean(std::span<const double> x) {
  const std::size_t cut = x.size() / 5, kept = x.size() - 2 * cut;
  const std::span<const double> inner = x.subspan(cut, kept);
  return std::accumulate(inner.begin(), inner.end(), 0.0) / static_cast<double>(kept);
}

/// Sum of the distances of all values from `center`, of the trimmed ones too.
double distances(std::span<const double> x, double center) {
  double sum = 0;
  for (const double value : x)
    sum += std::abs(value - center);
  return sum;
}

/// Room for the two groups of a deal.
struct Groups {
  std::vector<double> a, b;
};

double statistic(const Sorted& value, const std::vector<char>& in_b, Groups& groups) {
  groups.a.clear();
  groups.b.clear();
  for (std::size_t i = 0; i < value.values.size(); ++i)
    (in_b[value.units[i]] ? groups.b : groups.a).push_back(value.values[i]);
  const double a = trimmed_mean(groups.a), b = trimmed_mean(groups.b);
  const auto na = static_cast<double>(groups.a.size()), nb = static_cast<double>(groups.b.size());
  const double deviation = (distances(groups.a, a) + distances(groups.b, b)) / (na + nb);
  const double scale = deviation * std::sqrt(1 / na + 1 / nb) + value.floor;
  return scale > 0 ? std::abs(b - a) / scale : 0;
}

/// The next subset of k of n in lexicographic order; false after the last one.
bool next_subset(std::vector<std::uint32_t>& subset, std::uint32_t n) {
  const auto k = static_cast<std::uint32_t>(subset.size());
  for (std::uint32_t i = k; i-- > 0;) {
    if (subset[i] < n - k + i) {
      ++subset[i];
      for (std::uint32_t j = i + 1; j < k; ++j)
        subset[j] = subset[j - 1] + 1;
      return true;
    }
  }
  return false;
}

/// A random subset: the first k of a Fisher-Yates shuffle.
void random_subset(std::vector<std::uint32_t>& subset,
                   std::vector<std::uint32_t>& order,
                   std::mt19937_64& random) {
  for (std::size_t i = 0; i < subset.size(); ++i) {
    std::swap(order[i], order[i + random() % (order.size() - i)]);
    subset[i] = order[i];
  }
}

/// Deals units to two groups, and counts for each value the deals in which the largest statistic
/// of all values not yet decided is as large as its own.
class Deals {
 public:
  Deals(std::span<const TwoGroups> values, std::size_t na, std::size_t nb)
      : na_(na), nb_(nb), in_b_(na + nb, 0), as_large_(values.size(), 0) {
    for (const TwoGroups& value : values)
      data_.push_back(sorted(value));
    std::fill(in_b_.begin() + static_cast<std::ptrdiff_t>(na), in_b_.end(), char{1});
    for (const Sorted& value : data_)
      observed_.push_back(statistic(value, in_b_, groups_));
    by_size_.resize(values.size());
    std::iota(by_size_.begin(), by_size_.end(), std::size_t{0});
    std::stable_sort(by_size_.begin(), by_size_.end(), [&](std::size_t x, std::size_t y) {
      return observed_[x] > observed_[y];
    });
  }

  void deal_in_every_way() {
    std::vector<std::uint32_t> subset = first_subset();
    do
      deal(subset);
    while (next_subset(subset, static_cast<std::uint32_t>(in_b_.size())));
  }

  /// What was seen is one of the deals (Phipson and Smyth, "Permutation p-values should never be
  /// zero", 2010).
  void deal_at_random(double count) {
    std::vector<std::uint32_t> subset = first_subset(), order(in_b_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::mt19937_64 random(20260102);
    dealt_ = 1;
    std::fill(as_large_.begin(), as_large_.end(), std::size_t{1});
    while (static_cast<double>(dealt_) < count) {
      random_subset(subset, order, random);
      deal(subset);
    }
  }

  /// The adjusted p of each value: never below that of a larger one.
  [[nodiscard]] std::vector<double> p() const {
    std::vector<double> p(data_.size());
    double before = 0;
    for (std::size_t rank = 0; rank < data_.size(); ++rank) {
      const double share = static_cast<double>(as_large_[rank]) / static_cast<double>(dealt_);
      before = std::max(before, share);
      p[by_size_[rank]] = before;
    }
    return p;
  }

 private:
  /// Of the units, as many as the smaller group has: that one is dealt.
  [[nodiscard]] std::vector<std::uint32_t> first_subset() const {
    std::vector<std::uint32_t> subset(std::min(na_, nb_));
    std::iota(subset.begin(), subset.end(), 0u);
    return subset;
  }

  void deal(const std::vector<std::uint32_t>& subset) {
    ++dealt_;
    std::fill(in_b_.begin(), in_b_.end(), static_cast<char>(nb_ > na_));
    for (const std::uint32_t unit : subset)
      in_b_[unit] = nb_ <= na_;
    double largest = -std::numeric_limits<double>::infinity();
    // Successive maxima, from the smallest value up.
    for (std::size_t rank = data_.size(); rank-- > 0;) {
      const std::size_t j = by_size_[rank];
      largest = std::max(largest, statistic(data_[j], in_b_, groups_));
      // Sums in another order of addition differ in their last bits.
      if (largest >= observed_[j] - 1e-9 * std::abs(observed_[j]))
        ++as_large_[rank];
    }
  }

  std::size_t na_, nb_;
  std::vector<Sorted> data_;
  std::vector<char> in_b_;  ///< by unit
  Groups groups_;
  std::vector<double> observed_;
  std::vector<std::size_t> by_size_;   ///< values, the largest statistic first
  std::vector<std::size_t> as_large_;  ///< deals, by place in by_size_
  std::size_t dealt_ = 0;
};

}  // namespace

double deals(std::size_t na, std::size_t nb) {
  double count = 1;
  for (std::size_t i = 1; i <= std::min(na, nb); ++i) {
    count = count * static_cast<double>(na + nb - i + 1) / static_cast<double>(i);
    if (count > 1e18)
      return 1e18;
  }
  return std::round(count);
}

double smallest_p(std::size_t na, std::size_t nb) {
  // With groups of one size, exchanging the groups gives the same |t|.
  return (na == nb ? 2 : 1) / deals(na, nb);
}

std::vector<double> permutation_test(std::span<const TwoGroups> values, std::size_t most) {
  if (values.empty())
    return {};
  const std::size_t na = values[0].a.size(), nb = values[0].b.size();
  Deals dealt(values, na, nb);
  const double steps_of_a_deal = static_cast<double>(values.size()) * static_cast<double>(na + nb);
  const double affordable = kMostSteps / steps_of_a_deal;
  const double limit = std::clamp(affordable, 500.0, static_cast<double>(most));
  if (deals(na, nb) <= limit)
    dealt.deal_in_every_way();
  else
    dealt.deal_at_random(limit);
  return dealt.p();
}

std::optional<RatioInterval> ratio_interval(const TwoGroups& value, double wanted) {
  const std::size_t na = value.a.size(), nb = value.b.size();
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  if (na == 0 || nb == 0 || !std::all_of(value.a.begin(), value.a.end(), positive) ||
      !std::all_of(value.b.begin(), value.b.end(), positive))
    return std::nullopt;
  std::vector<double> ratios;
  ratios.reserve(na * nb);
  for (const double a : value.a) {
    for (const double b : value.b)
      ratios.push_back(b / a);
  }
  std::sort(ratios.begin(), ratios.end());

  // count[u]: in how many orders of the na + nb units U is u (Mann and Whitney's recursion, as a
  // product of polynomials: the Gaussian binomial coefficient). Where that is large, the normal
  // approximation.
  const std::size_t pairs = na * nb;
  std::size_t cut = 0;
  double outside = 0;  // chance of U < cut
  if (na + nb <= 60) {
    std::vector<double> count(pairs + 1, 0.0);
    count[0] = 1;
    for (std::size_t i = 1; i <= nb; ++i) {
      for (std::size_t u = pairs; u >= na + i; --u)
        count[u] -= count[u - na - i];  // times (1 - q^(na + i))
      for (std::size_t u = i; u <= pairs; ++u)
        count[u] += count[u - i];  // divided by (1 - q^i)
    }
    const double orders = deals(na, nb);
    while (cut < pairs / 2 && outside + count[cut] / orders <= (1 - wanted) / 2)
      outside += count[cut++] / orders;
    if (cut == 0) {
      outside = count[0] / orders;
      cut = 1;
    }
  } else {
    const double a = static_cast<double>(na), b = static_cast<double>(nb);
    const double deviation = std::sqrt(a * b * (a + b + 1) / 12);
    cut = static_cast<std::size_t>(std::max(1.0, std::floor(a * b / 2 - 1.96 * deviation)));
    outside = (1 - wanted) / 2;
  }
  return RatioInterval{ratios[cut - 1], ratios[pairs - cut], 1 - 2 * outside};
}

}  // namespace rangescope::analyze
