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
  std::vector<double> all = value.a;
  all.insert(all.end(), value.b.begin(), value.b.end());
  const bool positive = std::all_of(all.begin(), all.end(), [](double x) { return x > 0; });
  double size = 0;
  for (double& x : all) {
    if (positive)
      x = std::log(x);
    size += std::abs(x);
  }
  Sorted out;
  out.floor = positive ? kFloor : kFloor * size / static_cast<double>(all.size());
  out.units.resize(all.size());
  std::iota(out.units.begin(), out.units.end(), 0u);
  std::stable_sort(
      out.units.begin(), out.units.end(), [&](auto x, auto y) { return all[x] < all[y]; });
  for (const std::uint32_t unit : out.units)
    out.values.push_back(all[unit]);
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
  const std::size_t m = values.size();
  std::vector<double> p(m, 1.0);
  if (m == 0)
    return p;
  const std::size_t na = values[0].a.size(), nb = values[0].b.size(), n = na + nb;
  std::vector<Sorted> data;
  data.reserve(m);
  for (const TwoGroups& value : values)
    data.push_back(sorted(value));

  Groups groups;
  std::vector<char> in_b(n, 0);
  std::fill(in_b.begin() + static_cast<std::ptrdiff_t>(na), in_b.end(), char{1});
  std::vector<double> observed(m);
  for (std::size_t j = 0; j < m; ++j)
    observed[j] = statistic(data[j], in_b, groups);
  std::vector<std::size_t> by_size(m);
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t x, std::size_t y) {
    return observed[x] > observed[y];
  });

  // The smaller group is dealt.
  const std::size_t k = std::min(na, nb);
  const double all_deals = deals(na, nb);
  const double affordable = kMostSteps / (static_cast<double>(m) * static_cast<double>(n));
  const double limit = std::clamp(affordable, 500.0, static_cast<double>(most));
  const bool exact = all_deals <= limit;
  std::vector<std::uint32_t> subset(k), order(n);
  std::iota(subset.begin(), subset.end(), 0u);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(20260102);
  std::vector<std::size_t> as_large(m, 0);
  std::size_t dealt = 0;
  const auto deal = [&] {
    ++dealt;
    std::fill(in_b.begin(), in_b.end(), static_cast<char>(nb > na));
    for (const std::uint32_t unit : subset)
      in_b[unit] = nb <= na;
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t rank = m; rank-- > 0;) {  // successive maxima, from the smallest value up
      const std::size_t j = by_size[rank];
      largest = std::max(largest, statistic(data[j], in_b, groups));
      // Sums in another order of addition differ in their last bits.
      if (largest >= observed[j] - 1e-9 * std::abs(observed[j]))
        ++as_large[rank];
    }
  };
  if (exact) {
    do
      deal();
    while (next_subset(subset, static_cast<std::uint32_t>(n)));
  } else {
    // What was seen is one of the deals (Phipson and Smyth, "Permutation p-values should never be
    // zero", 2010).
    dealt = 1;
    std::fill(as_large.begin(), as_large.end(), std::size_t{1});
    while (static_cast<double>(dealt) < limit) {
      random_subset(subset, order, random);
      deal();
    }
  }
  double before = 0;
  for (std::size_t rank = 0; rank < m; ++rank) {
    before = std::max(before, static_cast<double>(as_large[rank]) / static_cast<double>(dealt));
    p[by_size[rank]] = before;
  }
  return p;
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
    const double all = deals(na, nb);
    while (cut < pairs / 2 && outside + count[cut] / all <= (1 - wanted) / 2)
      outside += count[cut++] / all;
    if (cut == 0) {
      outside = count[0] / all;
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
