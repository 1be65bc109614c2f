#include "analyze/cures/repetition.hpp"

#include <algorithm>

namespace rangescope::analyze::cures {
namespace {

std::size_t repeated_length(const Recording& recording,
                            std::span<const Id> kernels,
                            std::size_t pattern) {
  std::size_t length = std::min(pattern, kernels.size());
  while (length < kernels.size() &&
         recording.name_of(kernels[length]) == recording.name_of(kernels[length - pattern]))
    ++length;
  return length - length % pattern;
}

Repetition longest_from_first(const Recording& recording, std::span<const Id> kernels) {
  Repetition longest{kernels.first(0), 1};
  for (std::size_t pattern = 1; pattern <= kLongestPattern; ++pattern) {
    const std::size_t length = repeated_length(recording, kernels, pattern);
    const bool is_enough =
        length >= kFewestRepeatedKernels && length >= kFewestRepetitions * pattern;
    if (is_enough && length > longest.kernels.size())
      longest = {kernels.first(length), pattern};
  }
  return longest;
}

}  // namespace

std::vector<Repetition> repetitions_in(const Recording& recording, std::span<const Id> kernels) {
  std::vector<Repetition> repetitions;
  for (std::size_t first = 0; first + kFewestRepeatedKernels <= kernels.size();) {
    const Repetition repetition = longest_from_first(recording, kernels.subspan(first));
    if (!repetition.kernels.empty())
      repetitions.push_back(repetition);
    first += std::max<std::size_t>(1, repetition.kernels.size());
  }
  return repetitions;
}

}  // namespace rangescope::analyze::cures
