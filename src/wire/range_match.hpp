// Does a stack of push/pop ranges match an expression of Nsight Compute's NVTX filter (grammar:
// model/range_expression)?
//
// The injected library and the command line ask this of the same expressions. What a name is, and
// when two are equal, they say themselves: the library compares bytes or POSIX expressions in
// place, the command line uses RE2.
//
// A nondeterministic automaton read from the top of the stack to its bottom, one bit a name of the
// expression: O(names
// * depth) comparisons, no memory, so that it may run inside a callback. A literal name stands for
// its topmost occurrence only, as in ncu ('A/+' does not match the stack A, A; 'A/*/A' matches a
// single A); a regular expression stands for any that fits. Truth tables of ncu 2022.3.0 and
// 2024.1.1: tests/golden/nvtx-grammar.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rangescope::wire {

/// Names and gaps of one expression: no more than the bits of the automaton.
inline constexpr std::size_t kMaxRangeElements = 64;

enum class RangeElement : std::uint8_t { kName, kAny, kOne };  ///< a name, `*`, `+`

struct RangeShape {
  std::size_t elements = 0;
  bool bottom = false, top = false;  ///< `[` and `]`
  bool regex = false;
};

/// `kind(i)`: what element i is. `same(i, j)`: are the literal names i and j equal? `matches(i,
/// p)`: does name i match the range at position p of the stack, 0 at the bottom?
template <class Kind, class Same, class Matches>
bool stack_matches(const RangeShape& shape, std::size_t depth, Kind kind, Same same,
                   Matches matches) {
  std::size_t count = shape.elements;
  while (count > 0 && kind(count - 1) != RangeElement::kName) --count;
  if (count == 0 || shape.elements > kMaxRangeElements || depth == 0) return false;
  const bool one_above = count < shape.elements && kind(shape.elements - 1) == RangeElement::kOne;
  const auto bit = [](std::size_t element) { return std::uint64_t{1} << element; };
  std::uint64_t above = 0, two_above = 0,
                anywhere_above = 0;  // names from which the rest of the expression matches
  std::uint64_t met = 0;             // literal names whose topmost occurrence was passed
  for (std::size_t p = depth; p-- > 0;) {
    std::uint64_t here = 0;
    for (std::size_t i = count, next = count; i-- > 0;) {
      if (kind(i) != RangeElement::kName) continue;
      const std::size_t follower = next;
      next = i;
      if (i == 0 && shape.bottom && p != 0) continue;
      if (i + 1 == count && shape.top && p + 1 != depth) continue;
      bool fits = false;
      if (follower == count) {
        fits = !one_above || p + 2 == depth;
      } else if (follower == i + 1) {
        fits = (above & bit(follower)) != 0;
      } else if (kind(i + 1) == RangeElement::kOne) {
        fits = (two_above & bit(follower)) != 0;
      } else {
        fits = (anywhere_above & bit(follower)) != 0 ||
               ((here & bit(follower)) != 0 && !shape.regex && same(i, follower));
      }
      if (shape.regex ? !fits || !matches(i, p) : (met & bit(i)) != 0 || !matches(i, p)) continue;
      met |= bit(i);
      if (!fits) continue;
      here |= bit(i);
      if (i == 0) return true;
    }
    two_above = above;
    above = here;
    anywhere_above |= here;
  }
  return false;
}

/// Does the expression begin to match with the range on top of the stack? Below `decode/` only
/// decode itself does.
template <class Matches>
bool begins_to_match(std::size_t depth, Matches matches) {
  return depth > 0 && matches(depth) && !matches(depth - 1);
}

}  // namespace rangescope::wire
