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
// Deals x values x units, so that thousands of regions do not take minutes.
constexpr double kMostSteps = 4e8;

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
  out.floor = kFloor;
  if (!positive)
    out.floor = kFloor * size / static_cast<double>(of_unit.size());
  out.units.resize(of_unit.size());
  std::iota(out.units.begin(), out.units.end(), 0u);
  const auto value_of_unit = [&](std::uint32_t unit) { return of_unit[unit]; };
  std::ranges::stable_sort(out.units, {}, value_of_unit);
  for (const std::uint32_t unit : out.units)
    out.values.push_back(of_unit[unit]);
  return out;
}

/// Mean without the fifth at each end. `x` ascends.
double trimmed_mean(std::span<const double> x) {
  const std::size_t cut = x.size() / 5;
  const std::size_t kept = x.size() - 2 * cut;
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
  for (std::size_t i = 0; i < value.values.size(); ++i) {
    if (in_b[value.units[i]])
      groups.b.push_back(value.values[i]);
    else
      groups.a.push_back(value.values[i]);
  }
  const double mean_a = trimmed_mean(groups.a);
  const double mean_b = trimmed_mean(groups.b);
  const auto size_a = static_cast<double>(groups.a.size());
  const auto size_b = static_cast<double>(groups.b.size());
  const double sum_of_distances = distances(groups.a, mean_a) + distances(groups.b, mean_b);
  const double deviation = sum_of_distances / (size_a + size_b);
  const double scale = deviation * std::sqrt(1 / size_a + 1 / size_b) + value.floor;
  if (scale > 0)
    return std::abs(mean_b - mean_a) / scale;
  return 0;
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
    const auto first_in_b = in_b_.begin() + static_cast<std::ptrdiff_t>(na);
    std::fill(first_in_b, in_b_.end(), char{1});
    for (const Sorted& value : data_)
      observed_.push_back(statistic(value, in_b_, groups_));
    by_size_.resize(values.size());
    std::iota(by_size_.begin(), by_size_.end(), std::size_t{0});
    const auto is_larger = [&](std::size_t x, std::size_t y) {
      return observed_[x] > observed_[y];
    };
    std::ranges::stable_sort(by_size_, is_larger);
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
    std::vector<std::uint32_t> subset = first_subset();
    std::vector<std::uint32_t> order(in_b_.size());
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
  double as_large = 1;
  if (na == nb)
    as_large = 2;  // exchanging groups of one size gives the same |t|
  return as_large / deals(na, nb);
}

std::vector<double> permutation_test(std::span<const TwoGroups> values, std::size_t most) {
  if (values.empty())
    return {};
  const std::size_t na = values[0].a.size();
  const std::size_t nb = values[0].b.size();
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

namespace {

/// Where the ascending ratios of all pairs are cut at each end, and the chance of U < `pairs`.
struct Cut {
  std::size_t pairs = 0;
  double outside = 0;
};

/// In how many orders of the na + nb units U is u, by u: Mann and Whitney's recursion, as a product
/// of polynomials (the Gaussian binomial coefficient). O(na nb^2).
std::vector<double> orders_by_u(std::size_t na, std::size_t nb) {
  const std::size_t pairs = na * nb;
  std::vector<double> orders(pairs + 1, 0.0);
  orders[0] = 1;
  for (std::size_t i = 1; i <= nb; ++i) {
    for (std::size_t u = pairs; u >= na + i; --u)
      orders[u] -= orders[u - na - i];  // times (1 - q^(na + i))
    for (std::size_t u = i; u <= pairs; ++u)
      orders[u] += orders[u - i];  // divided by (1 - q^i)
  }
  return orders;
}

Cut exact_cut(std::size_t na, std::size_t nb, double wanted) {
  const std::vector<double> orders = orders_by_u(na, nb);
  const double all_orders = deals(na, nb);
  const double wanted_outside = (1 - wanted) / 2;
  Cut cut;
  while (cut.pairs < na * nb / 2) {
    const double chance = orders[cut.pairs] / all_orders;
    if (cut.outside + chance > wanted_outside)
      break;
    cut.outside += chance;
    ++cut.pairs;
  }
  if (cut.pairs == 0) {
    cut.outside = orders[0] / all_orders;
    cut.pairs = 1;
  }
  return cut;
}

/// By the normal approximation of U, for many units.
Cut approximate_cut(std::size_t na, std::size_t nb, double wanted) {
  const auto a = static_cast<double>(na);
  const auto b = static_cast<double>(nb);
  const double deviation = std::sqrt(a * b * (a + b + 1) / 12);
  const double pairs = std::floor(a * b / 2 - 1.96 * deviation);
  return {static_cast<std::size_t>(std::max(1.0, pairs)), (1 - wanted) / 2};
}

bool are_positive(const std::vector<double>& values) {
  return std::ranges::all_of(values,
                             [](double value) { return value > 0 && std::isfinite(value); });
}

}  // namespace

std::optional<RatioInterval> ratio_interval(const TwoGroups& value, double wanted) {
  const std::size_t na = value.a.size();
  const std::size_t nb = value.b.size();
  if (na == 0 || nb == 0 || !are_positive(value.a) || !are_positive(value.b))
    return std::nullopt;
  std::vector<double> ratios;
  ratios.reserve(na * nb);
  for (const double a : value.a) {
    for (const double b : value.b)
      ratios.push_back(b / a);
  }
  std::sort(ratios.begin(), ratios.end());
  constexpr std::size_t kManyUnits = 60;
  Cut cut;
  if (na + nb <= kManyUnits)
    cut = exact_cut(na, nb, wanted);
  else
    cut = approximate_cut(na, nb, wanted);
  return RatioInterval{
      ratios[cut.pairs - 1], ratios[ratios.size() - cut.pairs], 1 - 2 * cut.outside};
}

}  // namespace rangescope::analyze
