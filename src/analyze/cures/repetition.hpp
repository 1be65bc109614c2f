// The same few works over and over within an instance: a Python loop over tensors or samples.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analyze/cures/recording.hpp"

namespace rangescope::analyze::cures {

/// GPU work in a row of which each `pattern` is like the one before it.
struct Repetition {
  std::span<const Id> works;  ///< a multiple of `pattern`
  std::size_t pattern = 1;
};

/// What counts as a loop.
inline constexpr std::size_t kLongestPattern = 16;
inline constexpr std::size_t kFewestRepeatedWorks = 16;
inline constexpr std::size_t kFewestRepetitions = 8;
/// Of a kernel that a loop launches by the dozen: more would be worth a kernel of its own.
inline constexpr double kSmallKernel_ns = 50'000;

/// From left to right, at each place the longest; of equals the one with the shortest pattern.
/// Kernels are alike by their names, copies by their direction. O(n * kLongestPattern) for n works.
[[nodiscard]] std::vector<Repetition> repetitions_in(const Recording& recording,
                                                     std::span<const Id> works);

}  // namespace rangescope::analyze::cures
