// Least squares with no negative unknowns, from the normal equations.
//
// Algorithm: block principal pivoting (Kim and Park, "Fast nonnegative matrix factorization", SIAM
// J. Sci. Comput. 33, 2011): solve for the unknowns that are positive, exchange all that came out
// wrong at once, and one at a time where that does not settle. Each round is one Cholesky
// factorization, O(n^3); a handful of rounds.
#pragma once

#include <cstddef>
#include <vector>

namespace rangescope::analyze {

/// The symmetric matrix X'X, row by row.
struct Gram {
  explicit Gram(std::size_t unknowns) : n(unknowns), values(unknowns * unknowns, 0) {}
  double& at(std::size_t row, std::size_t column) { return values[row * n + column]; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const {
    return values[row * n + column];
  }
  std::size_t n;
  std::vector<double> values;
};

struct NonNegative {
  std::vector<double> x;
  std::vector<double> variance;  ///< diagonal of the inverse over the unknowns that are positive;
                                 ///< of others as alone
};

/// The x >= 0 that minimizes x'Ax - 2b'x; `gram` must be positive definite (add a ridge).
[[nodiscard]] NonNegative solve_nonnegative(const Gram& gram, const std::vector<double>& b);

}  // namespace rangescope::analyze
