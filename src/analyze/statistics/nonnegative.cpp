#include "analyze/statistics/nonnegative.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>

namespace rangescope::analyze {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using Index = Eigen::Index;

constexpr int kMostRounds = 500, kFullExchanges = 5;

std::size_t unsigned_index(Index index) {
  return static_cast<std::size_t>(index);
}

/// Unknowns that are marked, in order.
std::vector<Index> marked(const std::vector<char>& marks) {
  std::vector<Index> indexes;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (marks[i] != 0)
      indexes.push_back(static_cast<Index>(i));
  return indexes;
}

/// Sets the chosen elements of `out`.
void set_chosen(const std::vector<Index>& chosen, const Vector& values, std::vector<double>& out) {
  for (std::size_t i = 0; i < chosen.size(); ++i)
    out[unsigned_index(chosen[i])] = values[static_cast<Index>(i)];
}

/// Wrong are positive unknowns that came out negative, and zeros that want to grow.
std::vector<std::size_t> wrong_unknowns(const std::vector<char>& passive,
                                        const std::vector<double>& x,
                                        const Vector& slope,
                                        const std::vector<double>& b) {
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double scale = 1e-9 * (std::abs(b[i]) + 1e-300);
    const bool is_passive = passive[i] != 0;
    const bool is_wrong = is_passive ? x[i] < 0 : slope[static_cast<Index>(i)] < -scale;
    if (is_wrong)
      wrong.push_back(i);
  }
  return wrong;
}

}  // namespace

NonNegative solve_nonnegative(const Gram& gram, const std::vector<double>& b) {
  const std::size_t n = gram.n;
  const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> a(
      gram.values.data(), static_cast<Index>(n), static_cast<Index>(n));
  std::vector<char> passive(n, 1);
  NonNegative out{std::vector<double>(n, 0), std::vector<double>(n, 0)};
  std::vector<Index> chosen;
  Eigen::LLT<Matrix> factor;
  std::size_t fewest = n + 1;
  int full = kFullExchanges;
  const Eigen::Map<const Vector> right_side(b.data(), static_cast<Index>(n));
  const Eigen::Map<const Vector> unknowns(out.x.data(), static_cast<Index>(n));
  for (int round = 0; round < kMostRounds; ++round) {
    chosen = marked(passive);
    const Vector chosen_right_side = right_side(chosen);
    factor.compute(a(chosen, chosen));
    const Vector solved = factor.solve(chosen_right_side);
    std::fill(out.x.begin(), out.x.end(), 0);
    set_chosen(chosen, solved, out.x);
    const Vector slope = a * unknowns - right_side;
    std::vector<std::size_t> wrong = wrong_unknowns(passive, out.x, slope, b);
    if (wrong.empty())
      break;
    if (wrong.size() < fewest) {
      fewest = wrong.size();
      full = kFullExchanges;
    } else if (--full < 0) {
      wrong = {wrong.back()};  // the one with the largest index: this always ends (Murty)
    }
    for (const std::size_t i : wrong)
      passive[i] = static_cast<char>(passive[i] == 0);
  }
  for (double& x : out.x)
    x = std::max(x, 0.0);
  const auto size = static_cast<Index>(chosen.size());
  const Matrix inverse = factor.solve(Matrix::Identity(size, size));
  for (std::size_t i = 0; i < n; ++i)
    out.variance[i] = 1 / gram.at(i, i);
  set_chosen(chosen, inverse.diagonal(), out.variance);
  return out;
}

}  // namespace rangescope::analyze
