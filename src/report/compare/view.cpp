#include "report/compare/view.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::Change;
using model::ComparedValue;
using model::Standing;

std::string percent(double ratio) {
  const double change = (ratio - 1) * 100;
  if (std::abs(change) < 0.05) return "0.0";
  return fmt::format("{:+.{}f}", change, std::abs(change) < 100 ? 1 : 0);
}

std::string number(double value, const std::string& unit) {
  if (unit == "count" && value != std::floor(value)) return fmt::format("{:.4g}", value);
  return format_value(value, unit);
}

}  // namespace

std::string side_letter(std::size_t side) {
  std::string text(1, static_cast<char>('A' + side % 26));
  return side < 26 ? text : text + std::to_string(side / 26);
}

std::string side_sentence(const model::Comparison& comparison, std::size_t side) {
  const model::ComparedSide& one = comparison.sides[side];
  std::string text = side_letter(side) + " = " + base::printable(one.label);
  if (one.runs > 1) text += ": " + base::counted(one.runs, "run");
  if (!one.command.empty()) text += (one.runs > 1 ? " of " : ": ") + base::printable(base::shell_quote(one.command));
  return text;
}

std::string comparison_sentence(const model::Comparison& comparison) {
  const model::ComparedRegion* most = nullptr;
  std::size_t at = 0, of_side = 0, better = 0, worse = 0, noise = 0, untested = 0;
  double largest = -1;
  for (const model::ComparedRegion& region : comparison.regions) {
    for (std::size_t v = 0; v < region.values.size(); ++v) {
      for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
        const Change& change = region.values[v].changes[side - 1];
        worse += change.standing == Standing::kMore ? 1 : 0;
        better += change.standing == Standing::kLess ? 1 : 0;
        noise += change.standing == Standing::kNoise ? 1 : 0;
        untested += change.standing == Standing::kUntested ? 1 : 0;
        const bool stands = change.standing == Standing::kMore || change.standing == Standing::kLess;
        // Values of one region are in different units: the first one of a region, mostly wall time, speaks for it.
        const double size = change.ratio ? std::abs(std::log(std::max(*change.ratio, 1e-9))) : 0;
        if (!stands || size <= largest) continue;
        largest = size;
        most = &region;
        at = v;
        of_side = side;
      }
    }
  }
  const std::string sides = base::counted(comparison.regions.size(), "region");
  if (most == nullptr) {
    if (noise == 0) return "Nothing could be tested in " + sides + ": too few runs or occurrences to know their noise.";
    return fmt::format("Nothing stands out of the noise: {} in {}.", base::counted(noise, "value"), sides) +
           (untested > 0 ? fmt::format(" {} could not be tested.", untested) : "");
  }
  const ComparedValue& value = most->values[at];
  const std::string subject = comparison.sides.size() > 2 ? side_letter(of_side) + ": " : "";
  std::string text = fmt::format("{}{} is {}: {} from {} to {} ({}).", subject, region_label(*most),
                                 standing_text(value, of_side), base::printable(value.tag), side_value(value, 0),
                                 side_value(value, of_side), change_text(value, of_side));
  const std::size_t others = worse + better - 1;
  text += others == 0 ? " No other value stands out of the noise."
                      : fmt::format(" In all {} rose and {} fell beyond the noise, {} did not.",
                                    base::counted(worse, "value"), better, noise);
  return text;
}

std::string side_value(const ComparedValue& value, std::size_t side) {
  return value.values[side] ? number(*value.values[side], value.unit) : "-";
}

std::string counts_text(const std::vector<std::optional<double>>& counts) {
  const bool same = std::all_of(counts.begin(), counts.end(), [&](const auto& count) { return count == counts[0]; });
  std::string text;
  for (const auto& count : counts) {
    text += (text.empty() ? "" : ", ") + (count ? number(*count, "count") : "-");
    if (same) break;
  }
  return text;
}

std::string change_text(const ComparedValue& value, std::size_t side) {
  const Change& change = value.changes[side - 1];
  if (!value.values[0] || !value.values[side]) return "-";
  if (change.difference == 0) return "0.0 %";
  if (!change.ratio) return (change.difference >= 0 ? "+" : "-") + number(std::abs(change.difference), value.unit);
  if (*change.ratio >= 10) return fmt::format("x {:.3g}", *change.ratio);
  return percent(*change.ratio) + " %";
}

std::string between_text(const Change& change) {
  if (!change.low || !change.high) return "";
  std::string text = percent(*change.low) + " ... " + percent(*change.high) + " %";
  if (change.confidence < 0.949) text += fmt::format(" ({:.0f} %)", change.confidence * 100);
  return text;
}

std::string standing_text(const ComparedValue& value, std::size_t side) {
  const Change& change = value.changes[side - 1];
  if (!value.values[0]) return "new";
  if (!value.values[side]) return "gone";
  switch (change.standing) {
    case Standing::kUntested: return "untested";
    case Standing::kNoise: return change.difference == 0 ? "same" : "noise";
    case Standing::kMore: return value.unit == "ns" ? "slower" : "more";
    case Standing::kLess: return value.unit == "ns" ? "faster" : "less";
  }
  return "";
}

std::string p_text(const Change& change) {
  if (!change.p) return "";
  return *change.p < 0.001 ? "< 0.001" : fmt::format("{:.3f}", *change.p);
}

std::string value_heading(const ComparedValue& value) {
  std::string text = base::printable(value.tag);
  if (value.per_occurrence) text += ", per instance";
  if (const model::Measure* measure = model::find_measure(value.tag))
    text += " (" + std::string(measure->formula) + ")";
  return text;
}

std::span<const model::ComparedFunction> functions_of(const model::ComparedRegion& region, const std::string& cpu) {
  constexpr std::size_t kMost = 10;
  return std::span(region.functions)
      .first(cpu.empty() ? std::min(kMost, region.functions.size()) : region.functions.size());
}

const model::ComparedRegion* functions_shown(const model::Comparison& comparison, const std::string& cpu) {
  const auto stands = [](const model::ComparedFunction& function) {
    return std::any_of(function.self.changes.begin(), function.self.changes.end(), [](const Change& change) {
      return change.standing == Standing::kMore || change.standing == Standing::kLess;
    });
  };
  const model::ComparedRegion* by_name = nullptr;
  for (const model::ComparedRegion& region : comparison.regions) {
    if (region.functions.empty()) continue;
    if (cpu.empty() ? stands(region.functions.front()) : model::path_text("", region.path) == cpu) return &region;
    if (by_name == nullptr && !cpu.empty() && region.path.back() == cpu) by_name = &region;
  }
  return by_name;
}

const model::ComparedRegion* chains_shown(const model::Comparison& comparison, const std::string& cpu) {
  const model::ComparedRegion* region = functions_shown(comparison, cpu);
  if (region != nullptr || !cpu.empty()) return region;
  std::int64_t most = 0;
  for (const model::ComparedRegion& each : comparison.regions) {
    if (each.functions.empty() || (region != nullptr && each.path.size() > region->path.size())) continue;
    std::int64_t samples = 0;
    for (const model::ComparedChain& chain : each.chains) samples += chain.samples.front();
    if (region != nullptr && each.path.size() == region->path.size() && samples <= most) continue;
    region = &each;
    most = samples;
  }
  return region;
}

bool is_within(const model::ComparedRegion& region, const model::ComparedRegion& whole) {
  return region.domain == whole.domain && region.kind == whole.kind && region.path.size() >= whole.path.size() &&
         std::equal(whole.path.begin(), whole.path.end(), region.path.begin());
}

std::string shares_text(const std::vector<std::optional<double>>& shares) {
  std::vector<std::string> texts;
  for (const auto& share : shares) texts.push_back(share ? base::format_share(*share) : "-");
  return base::join(texts, ", ");
}

std::string functions_heading(const model::ComparedRegion& region) {
  return "functions of " + region_label(region) + ", self time per instance";
}

std::string difference_sentence(const model::EnvironmentDifference& difference) {
  std::string text = difference.what + ": ";
  for (std::size_t side = 0; side < difference.values.size(); ++side) {
    const std::string& value = difference.values[side];
    text += (side == 0 ? "" : ", ") + side_letter(side) + " " +
            (value.empty() ? "does not say" : base::elide(base::printable(value), 100));
  }
  return text;
}

std::string rename_sentence(const model::RenameOffer& offer) {
  return fmt::format("perhaps renamed in {}: {} is now {} ({}); to take them as one: --rename {}",
                     side_letter(offer.side), base::printable(offer.from), base::printable(offer.to), offer.reason,
                     base::shell_quote(base::printable(offer.from + "=" + offer.to)));
}

std::vector<std::string> untested_sentences(const model::Comparison& comparison) {
  std::map<std::string, std::size_t> reasons;
  for (const model::ComparedRegion& region : comparison.regions) {
    for (const ComparedValue& value : region.values) {
      for (const Change& change : value.changes) {
        if (change.standing == Standing::kUntested && !change.why.empty()) ++reasons[change.why];
      }
    }
  }
  std::vector<std::string> out;
  for (const auto& [why, times] : reasons)
    out.push_back(fmt::format("untested: {} ({})", base::printable(why), base::counted(times, "value")));
  return out;
}

std::string region_label(const model::ComparedRegion& region) {
  std::string text = base::printable(model::path_text(region.domain, region.path));
  if (region.kind == model::RangeKind::kStartEnd) text += " [start/end]";
  if (!region.renamed_from.empty()) text += " (was " + base::printable(region.renamed_from) + ")";
  return text;
}

std::string missing_sentence(const model::ComparedRegion& region) {
  std::string sides;
  for (std::size_t side = 0; side < region.occurrences.size(); ++side) {
    if (region.occurrences[side]) sides += (sides.empty() ? "" : ", ") + side_letter(side);
  }
  std::string text = "only in " + sides + ": " + region_label(region);
  for (std::size_t side = 0; side < region.occurrences.size(); ++side) {
    if (!region.occurrences[side]) continue;
    text += ", occurrences " + number(*region.occurrences[side], "count");
    for (const ComparedValue& value : region.values) {
      if (value.values[side]) text += ", " + value.title + " " + side_value(value, side);
    }
    break;
  }
  return text;
}

}  // namespace rangescope::report
