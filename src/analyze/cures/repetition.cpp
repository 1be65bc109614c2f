#include "analyze/cures/repetition.hpp"

#include <algorithm>

namespace rangescope::analyze::cures {
namespace {

bool are_alike(const Recording& recording, Id work, Id other) {
  const Kind kind = recording.operation(work).kind;
  if (kind != recording.operation(other).kind) return false;
  if (kind == Kind::kKernel) return recording.name_of(work) == recording.name_of(other);
  if (kind == Kind::kCopy) return recording.copy(work).kind == recording.copy(other).kind;
  return true;
}

std::size_t repeated_length(const Recording& recording, std::span<const Id> works,
                            std::size_t pattern) {
  std::size_t length = std::min(pattern, works.size());
  while (length < works.size() && are_alike(recording, works[length], works[length - pattern]))
    ++length;
  return length - length % pattern;
}

Repetition longest_from_first(const Recording& recording, std::span<const Id> works) {
  Repetition longest{works.first(0), 1};
  for (std::size_t pattern = 1; pattern <= kLongestPattern; ++pattern) {
    const std::size_t length = repeated_length(recording, works, pattern);
    const bool is_enough = length >= kFewestRepeatedWorks && length >= kFewestRepetitions * pattern;
    if (is_enough && length > longest.works.size()) longest = {works.first(length), pattern};
  }
  return longest;
}

}  // namespace

std::vector<Repetition> repetitions_in(const Recording& recording, std::span<const Id> works) {
  std::vector<Repetition> repetitions;
  for (std::size_t first = 0; first + kFewestRepeatedWorks <= works.size();) {
    const Repetition repetition = longest_from_first(recording, works.subspan(first));
    if (!repetition.works.empty()) repetitions.push_back(repetition);
    first += std::max<std::size_t>(1, repetition.works.size());
  }
  return repetitions;
}

}  // namespace rangescope::analyze::cures
