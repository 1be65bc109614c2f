// Whether a stack of push/pop ranges matches an expression of Nsight Compute's NVTX filter
// (grammar: model/range_expression).
//
// The injected library and the command line both need it. Each compares names in its own way: the
// library compares bytes, or uses POSIX expressions, in place; the command line uses RE2.
//
// A nondeterministic automaton, run from the top of the stack to its bottom, with one bit for each
// name of the expression: O(names * depth) comparisons and no memory, so that it may run inside a
// callback. A literal name matches only its topmost occurrence, as in ncu ('A/+' does not match the
// stack A, A; 'A/*/A' matches a single A). A regular expression matches any occurrence. Truth
// tables of ncu 2022.3.0 and 2024.1.1: tests/golden/nvtx-grammar.
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

/// `kind(i)`: the kind of element i. `same(i, j)`: whether the literal names i and j are equal.
/// `matches(i, p)`: whether name i matches the range at position p of the stack, 0 at the bottom.
template <class Kind, class Same, class Matches>
bool stack_matches(
    const RangeShape& shape, std::size_t depth, Kind kind, Same same, Matches matches) {
  std::size_t count = shape.elements;
  while (count > 0 && kind(count - 1) != RangeElement::kName)
    --count;
  if (count == 0 || shape.elements > kMaxRangeElements || depth == 0)
    return false;
  const bool one_above = count < shape.elements && kind(shape.elements - 1) == RangeElement::kOne;
  const auto bit = [](std::size_t element) { return std::uint64_t{1} << element; };
  // Bits of names that match there, with the rest of the expression above.
  std::uint64_t above = 0;
  std::uint64_t two_above = 0;
  std::uint64_t anywhere_above = 0;
  std::uint64_t met = 0;  // literal names whose topmost occurrence was passed
  for (std::size_t p = depth; p-- > 0;) {
    std::uint64_t matching = 0;
    for (std::size_t i = count, next = count; i-- > 0;) {
      if (kind(i) != RangeElement::kName)
        continue;
      const std::size_t follower = next;
      next = i;
      if (i == 0 && shape.bottom && p != 0)
        continue;
      if (i + 1 == count && shape.top && p + 1 != depth)
        continue;
      bool rest_matches = false;
      if (follower == count) {
        rest_matches = !one_above || p + 2 == depth;
      } else if (follower == i + 1) {
        rest_matches = (above & bit(follower)) != 0;
      } else if (kind(i + 1) == RangeElement::kOne) {
        rest_matches = (two_above & bit(follower)) != 0;
      } else {
        rest_matches = (anywhere_above & bit(follower)) != 0 ||
                       ((matching & bit(follower)) != 0 && !shape.regex && same(i, follower));
      }
      const bool is_ruled_out = shape.regex ? !rest_matches : (met & bit(i)) != 0;
      if (is_ruled_out || !matches(i, p))
        continue;
      met |= bit(i);
      if (!rest_matches)
        continue;
      matching |= bit(i);
      if (i == 0)
        return true;
    }
    two_above = above;
    above = matching;
    anywhere_above |= matching;
  }
  return false;
}

/// Whether the expression begins to match with the range on top of the stack. For `decode/` that is
/// only decode itself.
template <class Matches>
bool begins_to_match(std::size_t depth, Matches matches) {
  return depth > 0 && matches(depth) && !matches(depth - 1);
}

}  // namespace rangescope::wire
