#include "report/compare/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/compare/view.hpp"

namespace rangescope::report {
namespace {

using base::Tone;
using model::Change;
using model::ComparedValue;
using model::Comparison;
using model::GateCheck;
using model::GateVerdict;

Tone tone_of(const std::string& standing) {
  if (standing == "slower" || standing == "more") return Tone::kBad;
  if (standing == "faster" || standing == "less") return Tone::kGood;
  return standing == "noise" || standing == "same" || standing == "untested" ? Tone::kDim : Tone::kPlain;
}

std::string_view whisker_class(const Change& change) {
  return change.standing == model::Standing::kMore   ? "more"
         : change.standing == model::Standing::kLess ? "less"
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
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" aria-hidden=\"true\"><line x1=\"{2}\" x2=\"{2}\" "
      "y1=\"0\" y2=\"{1}\"/>",
      kWidth, kHeight, kWidth / 2);
  const std::string_view style = whisker_class(change);
  if (change.low && *change.low > 0)
    svg += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"8\" y2=\"8\" stroke-width=\"2\"/>", style,
                       x(*change.low), x(*change.high));
  return svg + fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"8\" r=\"4\"/></svg>", style, x(*change.ratio));
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

Grid grid_of(const Comparison& comparison, const char* first, const char* second, const std::vector<Row>& rows) {
  Grid grid({{first, false, true, 0}, {second, true, false, 2}});
  grid.least = 40;
  for (std::size_t side = 0; side < comparison.sides.size(); ++side)
    grid.columns.push_back({side_letter(side), true, false, side == 0 ? 4 : 5});
  for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
    const std::string letter = comparison.sides.size() > 2 ? " " + side_letter(side) : "";
    grid.columns.insert(grid.columns.end(), {{"change" + letter, true, false, 0},
                                             {"between" + letter, true, false, 3},
                                             {"p" + letter, true, false, 1},
                                             {"verdict" + letter, false, false, 0}});
  }
  const double most = scale(rows);
  for (const Row& row : rows) {
    std::vector<GridCell> cells = {{row.label}, {row.counts}};
    for (std::size_t side = 0; side < row.value->values.size(); ++side) cells.push_back({side_value(*row.value, side)});
    for (std::size_t side = 1; side < row.value->values.size(); ++side) {
      const Change& change = row.value->changes[side - 1];
      const std::string standing = standing_text(*row.value, side);
      const Tone tone = tone_of(standing);
      cells.push_back({change_text(*row.value, side), tone == Tone::kDim ? Tone::kDim : Tone::kPlain});
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
    section.add(
        {"different " + difference_sentence(difference), Line::kItem, difference.heavy ? Tone::kWarn : Tone::kPlain});
  for (const std::string& note : comparison.notes) section.add({note, Line::kItem, Tone::kWarn, "note"});
}

void add_missing(Document& page, const Comparison& comparison, std::size_t most) {
  Section& section = page.begin("Not on all sides");
  const std::size_t shown = std::min(most, comparison.missing.size());
  for (std::size_t i = 0; i < shown; ++i)
    section.add({.text = missing_sentence(comparison.missing[i]), .shape = Line::kItem});
  if (comparison.missing.size() > shown)
    section.add({"(" + base::counted(comparison.missing.size() - shown, "more region") + " not on all sides)",
                 Line::kItem, Tone::kDim});
  for (const model::RenameOffer& offer : comparison.renames)
    section.add({rename_sentence(offer), Line::kItem, Tone::kWarn});
}

std::size_t count(const model::Gate& gate, GateVerdict verdict) {
  return static_cast<std::size_t>(
      std::ranges::count(gate.checks, verdict, [](const GateCheck& check) { return check.verdict; }));
}

}  // namespace

Document comparison_document(const Comparison& comparison, const Style& style) {
  Document page;
  Section& head = page.begin("Comparison");
  head.add({.text = comparison_sentence(comparison), .tone = Tone::kBold});
  add_surroundings(head, comparison);
  const std::size_t most = style.top == 0 ? comparison.regions.size() : std::min(style.top, comparison.regions.size());
  const std::size_t values = comparison.regions.empty() ? 0 : comparison.regions.front().values.size();
  for (std::size_t v = 0; v < values; ++v) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < most; ++i) {
      const model::ComparedRegion& region = comparison.regions[i];
      rows.push_back({region_label(region), counts_text(region.occurrences), &region.values[v]});
    }
    Grid grid = grid_of(comparison, "range", "count", rows);
    if (comparison.regions.size() > most)
      grid.more = base::counted(comparison.regions.size() - most, "more region") + " changed less: --top";
    page.begin(value_heading(comparison.regions.front().values[v]), false).add(std::move(grid));
  }
  constexpr std::size_t kMostMissing = 12;
  add_missing(page, comparison, kMostMissing);
  if (const model::ComparedRegion* region = functions_shown(comparison, style.cpu)) {
    std::vector<Row> rows;
    for (const model::ComparedFunction& function : functions_of(*region, style.cpu))
      rows.push_back({function.name, shares_text(function.share), &function.self});
    page.begin(functions_heading(*region), false).add(grid_of(comparison, "function", "of wall time", rows));
  }
  std::vector<Row> kernels;
  for (std::size_t i = 0; i < std::min(style.top_kernels, comparison.kernels.size()); ++i) {
    const model::ComparedKernel& kernel = comparison.kernels[i];
    kernels.push_back({kernel.name + (kernel.folded ? " (folded)" : ""), counts_text(kernel.calls), &kernel.per_call});
  }
  if (!kernels.empty()) {
    Grid grid = grid_of(comparison, "kernel", "count", kernels);
    if (comparison.kernels.size() > kernels.size())
      grid.more = base::counted(comparison.kernels.size() - kernels.size(), "more kernel") + ": --top-kernels";
    page.begin("kernels, time per call", false).add(std::move(grid));
  }
  Section& foot = page.begin("Tests");
  for (const std::string& text : untested_sentences(comparison)) foot.add({text, Line::kItem, Tone::kDim});
  if (comparison.tests > 0)
    foot.add({base::counted(comparison.tests, "value") + " tested: " + comparison.method, Line::kItem, Tone::kDim});
  return page;
}

std::string gate_headline(const model::Gate& gate) {
  const std::string limit = fmt::format("{:g} %", gate.max_regression * 100);
  const std::size_t bad = count(gate, GateVerdict::kRegressed), open = count(gate, GateVerdict::kUndecided);
  std::string text =
      bad > 0 ? fmt::format("{} of {} regressed (limit {})", bad, base::counted(gate.checks.size(), "value"), limit)
              : fmt::format("no regression in {} (limit {})", base::counted(gate.checks.size() - open, "value"), limit);
  if (gate.verdict == GateVerdict::kUndecided) text = "undecided: " + text;
  std::size_t hidden = 0, runs = 0;
  for (const GateCheck& check : gate.checks) {
    if (check.verdict != GateVerdict::kUndecided) continue;
    hidden += check.runs_to_decide ? 1 : 0;
    runs = std::max(runs, check.runs_to_decide.value_or(0));
  }
  if (open > hidden) text += fmt::format("; {} could not be judged", open - hidden);
  if (hidden > 0)
    text += fmt::format("; {} undecided: about {} runs a side decide (profile --repeat auto makes as many as it takes)",
                        hidden, runs);
  return text;
}

Document gate_document(const model::Gate& gate) {
  Document page;
  page.level = 3;
  const bool bad = gate.verdict == GateVerdict::kRegressed, doubt = gate.verdict == GateVerdict::kUndecided;
  Section& head = page.begin(fmt::format("{} rangescope: {}", bad ? "❌" : doubt ? "⚠️" : "✅", gate_headline(gate)));
  add_surroundings(head, gate.comparison);
  for (const GateVerdict verdict : {GateVerdict::kRegressed, GateVerdict::kUndecided, GateVerdict::kPassed}) {
    constexpr std::size_t kShown = 20;  // of checks that did not regress
    const Tone tone = verdict == GateVerdict::kRegressed ? Tone::kBad
                      : verdict == GateVerdict::kPassed  ? Tone::kGood
                                                         : Tone::kDim;
    Grid grid({{"verdict", false, false, 0},
               {"range", false, true, 0},
               {"value", false, false, 3},
               {"baseline", true, false, 1},
               {"now", true, false, 2},
               {"change", true, false, 0},
               {"between", true, false, 1},
               {"p", true, false, 1}});
    std::size_t all = 0;
    for (const GateCheck& check : gate.checks) {
      if (check.verdict != verdict) continue;
      if (++all > kShown && verdict != GateVerdict::kRegressed) continue;
      const model::ComparedRegion& region = gate.comparison.regions[check.region];
      const ComparedValue& value = region.values[check.value];
      grid.add({{std::string(model::gate_verdict_name(verdict)), tone},
                {region_label(region)},
                {value.tag},
                {side_value(value, 0)},
                {side_value(value, 1)},
                {change_text(value, 1), tone},
                {between_text(value.changes[0]), Tone::kDim, 0, check.text},
                {p_text(value.changes[0]), Tone::kDim}});
    }
    if (all == 0) continue;
    if (all > grid.rows.size()) grid.more = base::counted(all - grid.rows.size(), "more value");
    Section& section = page.begin(base::counted(all, "value") + " " + std::string(model::gate_verdict_name(verdict)));
    section.folded = verdict != GateVerdict::kRegressed;
    section.add(std::move(grid));
  }
  add_missing(page, gate.comparison, gate.comparison.missing.size());
  Section& foot = page.begin("Answer");
  for (const std::string& text : untested_sentences(gate.comparison)) foot.add({text, Line::kItem, Tone::kDim});
  foot.add({gate_headline(gate), Line::kItem, bad ? Tone::kBad : doubt ? Tone::kWarn : Tone::kGood});
  return page;
}

}  // namespace rangescope::report
