// The same few kernels over and over within an instance: a loop over tensors.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analyze/cures/recording.hpp"

namespace rangescope::analyze::cures {

/// Kernels in a row whose names repeat.
struct Repetition {
  std::span<const Id> kernels;  ///< a multiple of `pattern`
  std::size_t pattern = 1;
};

/// What counts as a loop.
inline constexpr std::size_t kLongestPattern = 16;
inline constexpr std::size_t kFewestRepeatedKernels = 16;
inline constexpr std::size_t kFewestRepetitions = 8;
/// Of a kernel that a loop launches by the dozen: more would be worth a kernel of its own.
inline constexpr double kSmallKernel_ns = 50'000;

/// From left to right, at each place the longest; of equals the one with the shortest pattern.
/// O(n * kLongestPattern) for n kernels.
[[nodiscard]] std::vector<Repetition> repetitions_in(const Recording& recording,
                                                     std::span<const Id> kernels);

}  // namespace rangescope::analyze::cures
