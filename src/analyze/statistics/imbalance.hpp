#pragma once

namespace rangescope::analyze {

/// How far the largest of several parts is above their mean.
[[nodiscard]] inline double imbalance_of(double largest, double mean) {
  return mean > 0 ? largest / mean - 1 : 0;
}

}  // namespace rangescope::analyze
