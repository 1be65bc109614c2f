#include "analyze/compare/compare_clocks.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "analyze/statistics/spread.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

constexpr double kLeastClock = 0.02;      // clocks that differ by less are alike
constexpr double kLeastThrottling = 0.1;  // share of time

std::optional<double> median_over_runs(const std::vector<const model::DigestRegion*>& runs, const char* tag) {
  std::vector<double> values;
  for (const model::DigestRegion* run : runs) {
    if (run == nullptr) continue;
    if (const auto found = run->values.find(tag); found != run->values.end()) values.push_back(found->second);
  }
  if (values.empty()) return std::nullopt;
  return median_of(values);
}

/// One state of the GPU in the first side and in another.
struct Pair {
  std::optional<double> first, other;
  [[nodiscard]] bool known() const { return first && other; }
  /// Times change by so much if they follow this clock alone, as a logarithm.
  [[nodiscard]] double effect() const { return known() && *first > 0 && *other > 0 ? std::log(*first / *other) : 0; }
};

Pair pair_of(const MatchedRegion& region, std::size_t side, const char* tag) {
  return {median_over_runs(region.of[0], tag), median_over_runs(region.of[side], tag)};
}

/// What stands out of a region's times, as a logarithm; 0: nothing.
double changed(const model::ComparedRegion& region, std::size_t side) {
  for (const model::ComparedValue& value : region.values) {
    const model::Change& change = value.changes[side - 1];
    const bool out = change.standing == model::Standing::kMore || change.standing == model::Standing::kLess;
    if (value.unit == "ns" && out && change.ratio && *change.ratio > 0) return std::log(*change.ratio);
  }
  return 0;
}

}  // namespace

std::vector<std::string> clock_notes(std::span<const MatchedRegion* const> regions,
                                     const model::Comparison& comparison) {
  std::vector<std::string> out;
  for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
    std::string line;
    double most = 0;
    std::size_t explained = 0;
    for (std::size_t r = 0; r < regions.size(); ++r) {
      const double change = changed(comparison.regions[r], side);
      if (change == 0) continue;
      std::string told;
      for (const auto& [tag, name] :
           {std::pair{"metrics.sm_clock", "SM clock"}, {"metrics.memory_clock", "memory clock"}}) {
        const Pair clock = pair_of(*regions[r], side, tag);
        const double effect = clock.effect();
        if (std::abs(effect) < kLeastClock || effect * change < 0 || std::abs(effect) < std::abs(change) / 2) continue;
        told += fmt::format("{}{} {} instead of {}", told.empty() ? "" : ", ", name,
                            base::format_si(*clock.other, "Hz"), base::format_si(*clock.first, "Hz"));
      }
      const Pair limited = pair_of(*regions[r], side, "metrics.clock_limited");
      const double longer = limited.known() ? *limited.other - *limited.first : 0;
      if (std::abs(longer) >= kLeastThrottling && longer * change > 0) {
        told += fmt::format("{}clocks held down by power or heat for {} of the time instead of {}",
                            told.empty() ? "" : ", ", base::format_share(*limited.other),
                            base::format_share(*limited.first));
      }
      if (told.empty()) continue;
      ++explained;
      const double weight = std::abs(comparison.regions[r].values.front().changes[side - 1].difference) *
                            comparison.regions[r].occurrences[0].value_or(1);
      if (weight < most) continue;
      most = weight;
      line =
          fmt::format("{} ran at other clocks than {}: in '{}', which took {:+.1f} %, {}", comparison.sides[side].label,
                      comparison.sides[0].label, base::printable(base::join(comparison.regions[r].path, " > ")),
                      std::expm1(change) * 100, told);
    }
    if (line.empty()) continue;
    if (explained > 1) line += fmt::format("; the same holds for {}", base::counted(explained - 1, "more region"));
    out.push_back(line + "; this alone may explain the change");
  }
  return out;
}

}  // namespace rangescope::analyze
