#include "report/compare/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "model/range_expression.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using base::Tone;
using model::Change;
using model::ComparedValue;
using model::Comparison;
using model::GateCheck;
using model::GateVerdict;
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

const model::ComparedRegion* functions_shown(const model::Comparison& comparison,
                                             const std::string& cpu) {
  const auto stands = [](const model::ComparedFunction& function) {
    return std::ranges::any_of(function.self.changes, model::is_significant);
  };
  const model::ComparedRegion* by_name = nullptr;
  for (const model::ComparedRegion& region : comparison.regions) {
    if (region.functions.empty()) continue;
    if (cpu.empty() ? stands(region.functions.front()) : model::path_text("", region.path) == cpu)
      return &region;
    if (by_name == nullptr && !cpu.empty() && region.path.back() == cpu) by_name = &region;
  }
  return by_name;
}

const model::ComparedRegion* chains_shown(const model::Comparison& comparison,
                                          const std::string& cpu) {
  const model::ComparedRegion* region = functions_shown(comparison, cpu);
  if (region != nullptr || !cpu.empty()) return region;
  std::int64_t most = 0;
  for (const model::ComparedRegion& each : comparison.regions) {
    if (each.functions.empty() || (region != nullptr && each.path.size() > region->path.size()))
      continue;
    std::int64_t samples = 0;
    for (const model::ComparedChain& chain : each.chains) samples += chain.samples.front();
    if (region != nullptr && each.path.size() == region->path.size() && samples <= most) continue;
    region = &each;
    most = samples;
  }
  return region;
}

std::string region_label(const model::ComparedRegion& region) {
  std::string text = base::printable(model::path_text(region.domain, region.path));
  if (region.kind == model::RangeKind::kStartEnd) text += model::kStartEndMark;
  if (!region.renamed_from.empty()) text += " (was " + base::printable(region.renamed_from) + ")";
  return text;
}

std::string side_value(const ComparedValue& value, std::size_t side) {
  return value.values[side] ? number(*value.values[side], value.unit) : "-";
}

std::string change_text(const ComparedValue& value, std::size_t side) {
  const Change& change = value.changes[side - 1];
  if (!value.values[0] || !value.values[side]) return "-";
  if (change.difference == 0) return "0.0 %";
  if (!change.ratio)
    return (change.difference >= 0 ? "+" : "-") + number(std::abs(change.difference), value.unit);
  if (*change.ratio >= 10) return fmt::format("x {:.3g}", *change.ratio);
  return percent(*change.ratio) + " %";
}

std::string standing_text(const ComparedValue& value, std::size_t side) {
  const Change& change = value.changes[side - 1];
  if (!value.values[0]) return value.values[side] ? "new" : "untested";
  if (!value.values[side]) return "gone";
  switch (change.standing) {
    case Standing::kUntested: return "untested";
    case Standing::kNoise: return change.difference == 0 ? "same" : "noise";
    case Standing::kMore: return value.unit == "ns" ? "slower" : "more";
    case Standing::kLess: return value.unit == "ns" ? "faster" : "less";
  }
  return "";
}

namespace {

/// "A = before: 5 runs of ./llm --layers 2"
std::string side_sentence(const model::Comparison& comparison, std::size_t side) {
  const model::ComparedSide& one = comparison.sides[side];
  std::string text = side_letter(side) + " = " + base::printable(one.label);
  if (one.runs > 1) text += ": " + base::counted(one.runs, "run");
  if (!one.command.empty())
    text += (one.runs > 1 ? " of " : ": ") + base::printable(base::shell_quote(one.command));
  return text;
}

/// "252", or "252, 126" where the sides differ; "-" where a side does not have the region.
std::string counts_text(const std::vector<std::optional<double>>& counts) {
  const bool same = std::all_of(counts.begin(), counts.end(),
                                [&](const auto& count) { return count == counts[0]; });
  std::string text;
  for (const auto& count : counts) {
    text += (text.empty() ? "" : ", ") + (count ? number(*count, "count") : "-");
    if (same) break;
  }
  return text;
}

/// "+5.1 ... +11.2 %", "" without an interval; "(90 %)" behind it where fewer runs than needed for
/// 95 % were there.
std::string between_text(const Change& change) {
  if (!change.low || !change.high) return "";
  std::string text = percent(*change.low) + " ... " + percent(*change.high) + " %";
  if (change.confidence < 0.949) text += fmt::format(" ({:.0f} %)", change.confidence * 100);
  return text;
}

/// "0.004", "< 0.001"
std::string p_text(const Change& change) {
  if (!change.p) return "";
  return *change.p < 0.001 ? "< 0.001" : fmt::format("{:.3f}", *change.p);
}

/// "wall_ns.median: median occurrence" or "gpu.busy_ns, per occurrence: ..."
std::string value_heading(const ComparedValue& value) {
  std::string text = base::printable(value.tag);
  if (value.per_occurrence) text += ", per instance";
  if (const model::Measure* measure = model::find_measure(value.tag))
    text += " (" + std::string(measure->formula) + ")";
  return text;
}

/// "12 %, 45 %" of wall time, a side each.
std::string shares_text(const std::vector<std::optional<double>>& shares) {
  std::vector<std::string> texts;
  for (const auto& share : shares) texts.push_back(share ? base::format_share(*share) : "-");
  return base::join(texts, ", ");
}

/// "GPU: A 'x', B 'y'"
std::string difference_sentence(const model::EnvironmentDifference& difference) {
  std::string text = difference.what + ": ";
  for (std::size_t side = 0; side < difference.values.size(); ++side) {
    const std::string& value = difference.values[side];
    text += (side == 0 ? "" : ", ") + side_letter(side) + " " +
            (value.empty() ? "unknown" : base::elide(base::printable(value), 100));
  }
  return text;
}

std::string rename_sentence(const model::RenameOffer& offer) {
  return fmt::format("possibly renamed in {}: {} is now {} ({}); to join them: --rename {}",
                     side_letter(offer.side), base::printable(offer.from),
                     base::printable(offer.to), offer.reason,
                     base::shell_quote(base::printable(offer.from + "=" + offer.to)));
}

/// Why values could not be tested, each reason once with how often.
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
    out.push_back(
        fmt::format("untested: {} ({})", base::printable(why), base::counted(times, "value")));
  return out;
}

/// "only A: x", for regions that are not on all sides.
std::string missing_sentence(const model::ComparedRegion& region) {
  std::string sides;
  for (std::size_t side = 0; side < region.occurrences.size(); ++side) {
    if (region.occurrences[side]) sides += (sides.empty() ? "" : ", ") + side_letter(side);
  }
  std::string text = "only in " + sides + ": " + region_label(region);
  for (std::size_t side = 0; side < region.occurrences.size(); ++side) {
    if (!region.occurrences[side]) continue;
    text += ", instances " + number(*region.occurrences[side], "count");
    for (const ComparedValue& value : region.values) {
      if (value.values[side]) text += ", " + value.title + " " + side_value(value, side);
    }
    break;
  }
  return text;
}

Tone tone_of(const std::string& standing) {
  if (standing == "slower" || standing == "more") return Tone::kBad;
  if (standing == "faster" || standing == "less") return Tone::kGood;
  return standing == "noise" || standing == "same" || standing == "untested" ? Tone::kDim
                                                                             : Tone::kPlain;
}

std::string_view whisker_class(const Change& change) {
  return change.standing == Standing::kMore   ? "more"
         : change.standing == Standing::kLess ? "less"
                                              : "noise";
}

/// Ratio and interval as a line about "no change", on a logarithmic scale up to `most`: for HTML.
std::string whisker(const Change& change, double most) {
  if (!change.ratio || *change.ratio <= 0) return "";
  constexpr double kWidth = 120, kHeight = 16;
  const auto x = [&](double ratio) {
    return kWidth / 2 + std::clamp(std::log(ratio) / most, -1.0, 1.0) * (kWidth / 2 - 4);
  };
  std::string svg = fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" aria-hidden=\"true\"><line "
      "x1=\"{2}\" x2=\"{2}\" "
      "y1=\"0\" y2=\"{1}\"/>",
      kWidth, kHeight, kWidth / 2);
  const std::string_view style = whisker_class(change);
  if (change.low && *change.low > 0)
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"8\" y2=\"8\" stroke-width=\"2\"/>",
        style, x(*change.low), x(*change.high));
  return svg + fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"8\" r=\"4\"/></svg>", style,
                           x(*change.ratio));
}

struct Row {
  std::string label, counts;
  const ComparedValue* value;
};

/// The scale of the whiskers: the largest change shown, at most a factor of four.
double scale(const std::vector<Row>& rows) {
  double most = std::log(1.02);
  for (const Row& row : rows)
    for (const Change& change : row.value->changes)
      for (const auto& ratio : {change.ratio, change.low, change.high})
        if (ratio && *ratio > 0) most = std::max(most, std::abs(std::log(*ratio)));
  return std::min(most, std::log(4.0));
}

Grid grid_of(const Comparison& comparison, const char* first, const char* second,
             const std::vector<Row>& rows) {
  Grid grid({{first, false, true}, {second, true, false, 2}});
  grid.least = 40;
  for (std::size_t side = 0; side < comparison.sides.size(); ++side)
    grid.columns.push_back({side_letter(side), true, false, side == 0 ? 4 : 5});
  for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
    const std::string letter = comparison.sides.size() > 2 ? " " + side_letter(side) : "";
    grid.columns.insert(grid.columns.end(), {{"change" + letter},
                                             {"between" + letter, true, false, 3},
                                             {"p" + letter, true, false, 1},
                                             {"verdict" + letter, false}});
  }
  const double most = scale(rows);
  for (const Row& row : rows) {
    std::vector<GridCell> cells = {{row.label}, {row.counts}};
    for (std::size_t side = 0; side < row.value->values.size(); ++side)
      cells.push_back({side_value(*row.value, side)});
    for (std::size_t side = 1; side < row.value->values.size(); ++side) {
      const Change& change = row.value->changes[side - 1];
      const std::string standing = standing_text(*row.value, side);
      const Tone tone = tone_of(standing);
      cells.push_back(
          {change_text(*row.value, side), tone == Tone::kDim ? Tone::kDim : Tone::kPlain});
      cells.push_back({between_text(change), Tone::kDim, 0, "", whisker(change, most)});
      cells.push_back({p_text(change), Tone::kDim});
      cells.push_back({standing, tone, 0, change.why});
    }
    grid.add(std::move(cells));
  }
  return grid;
}

/// What is different around the runs, and what a reader of the numbers should know.
void add_surroundings(Section& section, const Comparison& comparison) {
  for (std::size_t side = 0; side < comparison.sides.size(); ++side)
    section.add({.text = side_sentence(comparison, side), .shape = Line::kItem});
  for (const model::EnvironmentDifference& difference : comparison.environment)
    section.add({"different " + difference_sentence(difference), Line::kItem,
                 difference.heavy ? Tone::kWarn : Tone::kPlain});
  for (const std::string& note : comparison.notes)
    section.add({note, Line::kItem, Tone::kWarn, "note"});
}

using model::ComparedPrediction;

/// "predicted 203 ± 8 ms instead of 414.0 ms, realised 198.0 ms: 8 element-wise kernels ..."
std::string sentence_of(const Comparison& comparison, const ComparedPrediction& prediction) {
  const double half_ns = (prediction.high_ns - prediction.low_ns) / 2;
  std::string text = prediction.is_bound ? "predicted at least " : "predicted ";
  text += base::format_ns_interval(prediction.predicted_ns, half_ns);
  text += " instead of " + base::format_ns(prediction.before_ns);
  const bool has_several = comparison.sides.size() > 2;
  const std::string side = has_several ? " in " + side_letter(prediction.side) : "";
  if (prediction.realised_ns) {
    text += ", realised" + side + " " + base::format_ns(*prediction.realised_ns);
  } else {
    text += "; the range is not" + (has_several ? side : " in " + side_letter(prediction.side));
  }
  return text + ": " + base::printable(prediction.text);
}

void add_predictions(Document& page, const Comparison& comparison) {
  if (comparison.predictions.empty()) return;
  Section& section = page.begin("Predicted and realised, per instance", false);
  for (const ComparedPrediction& prediction : comparison.predictions)
    section.add({.text = sentence_of(comparison, prediction),
                 .shape = Line::kItem,
                 .name = base::printable(prediction.path)});
}

void add_missing(Document& page, const Comparison& comparison, std::size_t most) {
  Section& section = page.begin("Not on all sides");
  const std::size_t shown = std::min(most, comparison.missing.size());
  for (std::size_t i = 0; i < shown; ++i)
    section.add({.text = missing_sentence(comparison.missing[i]), .shape = Line::kItem});
  if (comparison.missing.size() > shown)
    section.add({"(" + base::counted(comparison.missing.size() - shown, "more region") +
                     " not on all sides)",
                 Line::kItem, Tone::kDim});
  for (const model::RenameOffer& offer : comparison.renames)
    section.add({rename_sentence(offer), Line::kItem, Tone::kWarn});
}

std::size_t count(const model::Gate& gate, GateVerdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(
      gate.checks, verdict, [](const GateCheck& check) { return check.verdict; }));
}

}  // namespace

Document comparison_document(const Comparison& comparison, const Style& style) {
  Document page;
  Section& head = page.begin("Comparison");
  head.add({.text = comparison_headline(comparison), .tone = Tone::kBold});
  add_surroundings(head, comparison);
  add_predictions(page, comparison);
  const std::size_t most =
      style.top == 0 ? comparison.regions.size() : std::min(style.top, comparison.regions.size());
  const std::size_t values =
      comparison.regions.empty() ? 0 : comparison.regions.front().values.size();
  for (std::size_t v = 0; v < values; ++v) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < most; ++i) {
      const model::ComparedRegion& region = comparison.regions[i];
      if (!model::is_compared(region, region.values[v])) continue;
      rows.push_back({region_label(region), counts_text(region.occurrences), &region.values[v]});
    }
    Grid grid = grid_of(comparison, "range", "count", rows);
    if (comparison.regions.size() > most)
      grid.more =
          base::counted(comparison.regions.size() - most, "more region") + " changed less: --top";
    page.begin(value_heading(comparison.regions.front().values[v]), false).add(std::move(grid));
  }
  constexpr std::size_t kMostMissing = 12;
  add_missing(page, comparison, kMostMissing);
  if (const model::ComparedRegion* region = functions_shown(comparison, style.cpu)) {
    std::vector<Row> rows;
    constexpr std::size_t kMostFunctions = 10;  // where nobody asked for them
    for (const model::ComparedFunction& function : region->functions)
      if (!style.cpu.empty() || rows.size() < kMostFunctions)
        rows.push_back({function.name, shares_text(function.share), &function.self});
    page.begin("functions of " + region_label(*region) + ", self time per instance", false)
        .add(grid_of(comparison, "function", "of wall time", rows));
  }
  std::vector<Row> kernels;
  for (std::size_t i = 0; i < std::min(style.top_kernels, comparison.kernels.size()); ++i) {
    const model::ComparedKernel& kernel = comparison.kernels[i];
    kernels.push_back({kernel.name + (kernel.folded ? " (folded)" : ""), counts_text(kernel.calls),
                       &kernel.per_call});
  }
  if (!kernels.empty()) {
    Grid grid = grid_of(comparison, "kernel", "count", kernels);
    if (comparison.kernels.size() > kernels.size())
      grid.more = base::counted(comparison.kernels.size() - kernels.size(), "more kernel") +
                  ": --top-kernels";
    page.begin("kernels, time per call", false).add(std::move(grid));
  }
  Section& foot = page.begin("Tests");
  for (const std::string& text : untested_sentences(comparison))
    foot.add({text, Line::kItem, Tone::kDim});
  if (comparison.tests > 0)
    foot.add({base::counted(comparison.tests, "value") + " tested: " + comparison.method,
              Line::kItem, Tone::kDim});
  return page;
}

std::string gate_headline(const model::Gate& gate) {
  const std::string limit = fmt::format("{:g} %", gate.max_regression * 100);
  const std::size_t bad = count(gate, GateVerdict::kRegressed),
                    open = count(gate, GateVerdict::kUndecided);
  std::string text = bad > 0
                         ? fmt::format("{} of {} regressed (limit {})", bad,
                                       base::counted(gate.checks.size(), "value"), limit)
                         : fmt::format("no regression in {} (limit {})",
                                       base::counted(gate.checks.size() - open, "value"), limit);
  if (gate.verdict == GateVerdict::kUndecided) text = "undecided: " + text;
  std::size_t hidden = 0, runs = 0;
  for (const GateCheck& check : gate.checks) {
    if (check.verdict != GateVerdict::kUndecided) continue;
    hidden += check.runs_to_decide ? 1 : 0;
    runs = std::max(runs, check.runs_to_decide.value_or(0));
  }
  if (open > hidden) text += fmt::format("; {} could not be judged", open - hidden);
  if (hidden > 0)
    text += fmt::format("; {0} undecided: about {1} runs per side decide (profile --repeat {1})",
                        hidden, runs);
  return text;
}

std::string gate_label(const model::Gate& gate, const GateCheck& check) {
  const model::ComparedRegion& region = region_of(gate, check);
  const std::string label = region_label(region);
  if (!check.function) return label;
  return base::printable(region.functions[*check.function].name) + " in " + label;
}

namespace {

/// The rule, where it fails what was measured below the limit; "" where it does not.
std::string rule_sentence(const model::Gate& gate) {
  const auto is_below = [&](const GateCheck& check) {
    const auto& ratio = value_of(gate, check).changes[0].ratio;
    return check.verdict == GateVerdict::kRegressed && ratio && *ratio < 1 + gate.max_regression;
  };
  const auto below = std::ranges::count_if(gate.checks, is_below);
  if (below == 0) return {};
  const std::string limit = fmt::format("{:g} %", gate.max_regression * 100);
  return fmt::format(
      "{} below {} failed, too: an increase that is statistically significant fails when its "
      "interval reaches the limit, so that one of exactly {} is always found; more runs make the "
      "interval narrower",
      base::counted(static_cast<std::size_t>(below), "value"), limit, limit);
}

}  // namespace

Document gate_document(const model::Gate& gate) {
  Document page;
  page.level = 3;
  const bool bad = gate.verdict == GateVerdict::kRegressed,
             doubt = gate.verdict == GateVerdict::kUndecided;
  Section& head = page.begin(fmt::format("{} rangescope: {}",
                                         bad     ? "❌"
                                         : doubt ? "⚠️"
                                                 : "✅",
                                         gate_headline(gate)));
  add_surroundings(head, gate.comparison);
  for (const GateVerdict verdict :
       {GateVerdict::kRegressed, GateVerdict::kUndecided, GateVerdict::kPassed}) {
    constexpr std::size_t kShown = 20;  // of checks that did not regress
    const Tone tone = verdict == GateVerdict::kRegressed ? Tone::kBad
                      : verdict == GateVerdict::kPassed  ? Tone::kGood
                                                         : Tone::kDim;
    Grid grid({{"verdict", false},
               {"range", false, true},
               {"value", false, false, 3},
               {"baseline", true, false, 1},
               {"now", true, false, 2},
               {"change"},
               {"between", true, false, 1},
               {"p", true, false, 1}});
    std::size_t all = 0;
    for (const GateCheck& check : gate.checks) {
      if (check.verdict != verdict) continue;
      if (++all > kShown && verdict != GateVerdict::kRegressed) continue;
      const ComparedValue& value = value_of(gate, check);
      grid.add({{std::string(model::gate_verdict_name(verdict)), tone},
                {gate_label(gate, check)},
                {value.tag},
                {side_value(value, 0)},
                {side_value(value, 1)},
                {change_text(value, 1), tone},
                {between_text(value.changes[0]), Tone::kDim, 0, check.text},
                {p_text(value.changes[0]), Tone::kDim}});
    }
    if (all == 0) continue;
    if (all > grid.rows.size()) grid.more = base::counted(all - grid.rows.size(), "more value");
    Section& section = page.begin(base::counted(all, "value") + " " +
                                  std::string(model::gate_verdict_name(verdict)));
    section.folded = verdict != GateVerdict::kRegressed;
    section.add(std::move(grid));
  }
  add_missing(page, gate.comparison, gate.comparison.missing.size());
  Section& foot = page.begin("Answer");
  for (const std::string& text : untested_sentences(gate.comparison))
    foot.add({text, Line::kItem, Tone::kDim});
  const std::string rule = rule_sentence(gate);
  if (!rule.empty()) foot.add({rule, Line::kItem, Tone::kWarn});
  foot.add({gate_headline(gate), Line::kItem,
            bad     ? Tone::kBad
            : doubt ? Tone::kWarn
                    : Tone::kGood});
  return page;
}

}  // namespace rangescope::report
