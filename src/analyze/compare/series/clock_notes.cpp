#include "analyze/compare/series/clock_notes.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "analyze/statistics/spread.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

constexpr double kLeastClock = 0.02;      // clocks that differ by less are alike
constexpr double kLeastThrottling = 0.1;  // share of time

std::optional<double> median_over_runs(const std::vector<const model::DigestRegion*>& runs,
                                       const char* tag) {
  std::vector<double> values;
  for (const model::DigestRegion* run : runs) {
    if (run == nullptr)
      continue;
    const auto found = run->values.find(tag);
    if (found != run->values.end())
      values.push_back(found->second);
  }
  if (values.empty())
    return std::nullopt;
  return median_of(values);
}

/// A state of the GPU during a region, in the first side and in another.
struct GpuState {
  double first = 0, other = 0;
};

/// Nothing where a side does not know it.
std::optional<GpuState> gpu_state(const MatchedRegion& region, std::size_t side, const char* tag) {
  const auto first = median_over_runs(region.of[0], tag);
  const auto other = median_over_runs(region.of[side], tag);
  if (!first || !other)
    return std::nullopt;
  return GpuState{*first, *other};
}

/// Do times that follow this clock alone explain half of `change` (a logarithm) or more?
bool explains_change(const GpuState& clock, double change) {
  if (clock.first <= 0 || clock.other <= 0)
    return false;
  const double effect = std::log(clock.first / clock.other);
  const bool is_large = std::abs(effect) >= kLeastClock && std::abs(effect) >= std::abs(change) / 2;
  const bool has_same_direction = effect * change > 0;
  return is_large && has_same_direction;
}

/// The significant change of a region's times, as a logarithm; 0: none.
double significant_change(const model::ComparedRegion& region, std::size_t side) {
  for (const model::ComparedValue& value : region.values) {
    const model::Change& change = value.changes[side - 1];
    const bool has_ratio = change.ratio && *change.ratio > 0;
    if (value.unit == "ns" && model::is_significant(change) && has_ratio)
      return std::log(*change.ratio);
  }
  return 0;
}

/// "SM clock 1.410 GHz instead of 1.980 GHz", and whether clocks were throttled; "" where nothing
/// explains the change.
std::string clocks_text(const MatchedRegion& region, std::size_t side, double change) {
  struct Clock {
    const char *tag, *name;
  };
  std::vector<std::string> texts;
  for (const Clock& clock :
       {Clock{"metrics.sm_clock", "SM clock"}, Clock{"metrics.memory_clock", "memory clock"}}) {
    const auto hertz = gpu_state(region, side, clock.tag);
    if (!hertz || !explains_change(*hertz, change))
      continue;
    texts.push_back(fmt::format("{} {} instead of {}",
                                clock.name,
                                base::format_si(hertz->other, "Hz"),
                                base::format_si(hertz->first, "Hz")));
  }
  if (const auto throttled = gpu_state(region, side, "metrics.clock_limited")) {
    const double increase = throttled->other - throttled->first;
    if (std::abs(increase) >= kLeastThrottling && increase * change > 0)
      texts.push_back(
          fmt::format("clocks throttled by power or heat for {} of the time instead of {}",
                      base::format_share(throttled->other),
                      base::format_share(throttled->first)));
  }
  return base::join(texts, ", ");
}

/// The line of one side, which names the region that changed most; "" where clocks explain nothing.
std::string clock_note(std::span<const MatchedRegion* const> regions,
                       const model::Comparison& comparison,
                       std::size_t side) {
  std::string note;
  double largest_ns = 0;
  std::size_t explained = 0;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const model::ComparedRegion& region = comparison.regions[r];
    const double change = significant_change(region, side);
    if (change == 0)
      continue;
    const std::string clocks = clocks_text(*regions[r], side, change);
    if (clocks.empty())
      continue;
    ++explained;
    const double difference = std::abs(region.values.front().changes[side - 1].difference);
    const double total_ns = difference * region.occurrences[0].value_or(1);
    if (total_ns < largest_ns)
      continue;
    largest_ns = total_ns;
    note = fmt::format("{} ran at other clocks than {}: in '{}', which took {:+.1f} %, {}",
                       comparison.sides[side].label,
                       comparison.sides[0].label,
                       base::printable(base::join(region.path, " > ")),
                       std::expm1(change) * 100,
                       clocks);
  }
  if (note.empty())
    return note;
  if (explained > 1)
    note += "; the same holds for " + base::counted(explained - 1, "more region");
  return note + "; this alone may explain the change";
}

}  // namespace

std::vector<std::string> clock_notes(std::span<const MatchedRegion* const> regions,
                                     const model::Comparison& comparison) {
  std::vector<std::string> notes;
  for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
    std::string note = clock_note(regions, comparison, side);
    if (!note.empty())
      notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace rangescope::analyze
