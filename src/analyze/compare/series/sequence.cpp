#include "analyze/compare/series/sequence.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace rangescope::analyze {
namespace {

constexpr std::size_t kFewestRanges = 3;
constexpr double kLeastShift = 0.01, kHalf = 0.5, kTwice = 2;

/// When the first and the last of its runs began.
struct Span {
  std::int64_t begin = 0, end = 0;
};
Span span_of(const model::Side& side) {
  Span span{side.runs.front().run.start_unix_ns, side.runs.front().run.start_unix_ns};
  for (const model::Digest& run : side.runs) {
    span.begin = std::min(span.begin, run.run.start_unix_ns);
    span.end = std::max(span.end, run.run.start_unix_ns);
  }
  return span;
}

bool were_in_sequence(const model::Side& first, const model::Side& other) {
  const Span a = span_of(first);
  const Span b = span_of(other);
  const bool is_known = a.begin > 0 && b.begin > 0;
  return is_known && (a.end < b.begin || b.end < a.begin);
}

/// Changes of the first value of each innermost range, as logarithms: those around them move with
/// them.
std::vector<double> shifts_of(const model::Comparison& comparison, std::size_t side) {
  std::vector<double> shifts;
  for (const model::ComparedRegion& region : comparison.regions) {
    if (!model::is_range(region) || !model::is_innermost(region, comparison))
      continue;
    if (region.values.empty() || region.values.front().unit != "ns")
      continue;
    const auto& ratio = region.values.front().changes[side - 1].ratio;
    if (ratio && *ratio > 0)
      shifts.push_back(std::log(*ratio));
  }
  return shifts;
}

bool is_alike(const std::vector<double>& shifts) {
  if (shifts.size() < kFewestRanges)
    return false;
  double mean = 0;
  for (const double shift : shifts)
    mean += shift / static_cast<double>(shifts.size());
  if (std::abs(mean) < kLeastShift)
    return false;
  return std::ranges::all_of(shifts, [&](double shift) {
    const double part = shift / mean;
    return part >= kHalf && part <= kTwice;
  });
}

}  // namespace

void add_sequence_notes(std::span<const model::Side> sides, model::Comparison& comparison) {
  for (std::size_t side = 1; side < sides.size(); ++side) {
    if (!were_in_sequence(sides[0], sides[side]))
      continue;
    const std::vector<double> shifts = shifts_of(comparison, side);
    if (!is_alike(shifts))
      continue;
    const auto [low, high] = std::ranges::minmax(shifts);
    comparison.notes.push_back(
        fmt::format("all {} ranges of {} moved alike ({:+.1f} to {:+.1f} %), and its runs were "
                    "made after or before those of {}, "
                    "not in turns: the machine may have changed instead of the program. rangescope "
                    "compare --measure 10 -- "
                    "COMMAND_A :: COMMAND_B runs both in turns",
                    shifts.size(),
                    sides[side].label,
                    std::expm1(low) * 100,
                    std::expm1(high) * 100,
                    sides[0].label));
  }
}

}  // namespace rangescope::analyze
