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
using model::ComparedRegion;
using model::ComparedValue;
using model::Comparison;
using model::GateCheck;
using model::GateVerdict;
using model::Standing;

/// The functions that changed most come first.
bool has_significant_change(const std::vector<model::ComparedFunction>& functions) {
  return !functions.empty() &&
         std::ranges::any_of(functions.front().self.changes, model::is_significant);
}

}  // namespace

const ComparedRegion* functions_shown(const Comparison& comparison, const std::string& cpu) {
  const ComparedRegion* by_last_name = nullptr;
  for (const ComparedRegion& region : comparison.regions) {
    if (region.functions.empty())
      continue;
    if (cpu.empty()) {
      if (has_significant_change(region.own_functions))
        return &region;
      if (has_significant_change(region.functions))
        return &region;
      continue;
    }
    if (model::path_text("", region.path) == cpu)
      return &region;
    if (by_last_name == nullptr && region.path.back() == cpu)
      by_last_name = &region;
  }
  return by_last_name;
}

const ComparedRegion* chains_shown(const Comparison& comparison, const std::string& cpu) {
  const ComparedRegion* shown = functions_shown(comparison, cpu);
  if (shown != nullptr || !cpu.empty())
    return shown;
  std::int64_t largest_samples = 0;
  for (const ComparedRegion& region : comparison.regions) {
    if (region.functions.empty())
      continue;
    std::int64_t samples = 0;
    for (const model::ComparedChain& chain : region.chains)
      samples += chain.samples.front();
    if (shown != nullptr) {
      const std::size_t depth = region.path.size(), shown_depth = shown->path.size();
      const bool is_heavier_sibling = depth == shown_depth && samples > largest_samples;
      if (depth >= shown_depth && !is_heavier_sibling)
        continue;
    }
    shown = &region;
    largest_samples = samples;
  }
  return shown;
}

namespace {

/// "A = before: 5 runs of ./llm --layers 2"
std::string side_sentence(const Comparison& comparison, std::size_t index) {
  const model::ComparedSide& side = comparison.sides[index];
  std::string text = side_letter(index) + " = " + base::printable(side.label);
  const std::string command = base::printable(base::shell_quote(side.command));
  if (side.runs <= 1 && side.command.empty())
    return text;
  if (side.runs <= 1)
    return text + ": " + command;
  text += ": " + base::counted(side.runs, "run");
  if (!side.command.empty())
    text += " of " + command;
  return text;
}

/// "wall_ns.median (median instance)", "gpu.busy_ns, per instance (...)"
std::string value_heading(const ComparedValue& value) {
  std::string text = base::printable(value.tag);
  if (value.per_occurrence)
    text += ", per instance";
  if (const model::Measure* measure = model::find_measure(value.tag))
    text += " (" + std::string(measure->formula) + ")";
  return text;
}

/// "12 %, 45 %" of wall time, one for each side.
std::string shares_text(const std::vector<std::optional<double>>& shares) {
  std::vector<std::string> texts;
  for (const auto& share : shares)
    texts.push_back(or_dash(share, base::format_share));
  return base::join(texts, ", ");
}

/// "GPU: A x, B y"
std::string difference_sentence(const model::EnvironmentDifference& difference) {
  std::vector<std::string> sides;
  for (std::size_t side = 0; side < difference.values.size(); ++side) {
    const std::string& value = difference.values[side];
    std::string text = "unknown";
    if (!value.empty())
      text = base::elide(base::printable(value), 100);
    sides.push_back(side_letter(side) + " " + text);
  }
  return difference.what + ": " + base::join(sides, ", ");
}

std::string rename_sentence(const model::RenameOffer& offer) {
  return fmt::format("possibly renamed in {}: {} is now {} ({}); to join them: --rename {}",
                     side_letter(offer.side),
                     base::printable(offer.from),
                     base::printable(offer.to),
                     offer.reason,
                     base::shell_quote(base::printable(offer.from + "=" + offer.to)));
}

/// The reasons why values could not be tested, each with the number of values.
std::vector<std::string> untested_sentences(const model::Comparison& comparison) {
  std::map<std::string, std::size_t> reasons;
  for (const model::ComparedRegion& region : comparison.regions) {
    for (const ComparedValue& value : region.values) {
      for (const Change& change : value.changes) {
        if (change.standing == Standing::kUntested && !change.why.empty())
          ++reasons[change.why];
      }
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [reason, values] : reasons)
    sentences.push_back(
        fmt::format("untested: {} ({})", base::printable(reason), base::counted(values, "value")));
  return sentences;
}

/// "only in A: x, instances 5, ...", for a region that is not on all sides.
std::string missing_sentence(const ComparedRegion& region) {
  std::vector<std::size_t> sides;
  std::vector<std::string> letters;
  for (std::size_t side = 0; side < region.occurrences.size(); ++side) {
    if (!region.occurrences[side])
      continue;
    sides.push_back(side);
    letters.push_back(side_letter(side));
  }
  std::string text = "only in " + base::join(letters, ", ") + ": " + region_label(region);
  if (sides.empty())
    return text;
  const std::size_t side = sides.front();
  text += ", instances " + compared_number(*region.occurrences[side], "count");
  for (const ComparedValue& value : region.values) {
    if (value.values[side])
      text += ", " + value.title + " " + side_value(value, side);
  }
  return text;
}

Tone standing_tone(const ComparedValue& value, std::size_t side) {
  const bool has_first = value.values[0].has_value();
  const bool has_second = value.values[side].has_value();
  if (has_first != has_second)
    return Tone::kPlain;  // new or gone
  if (!has_first)
    return Tone::kDim;
  switch (value.changes[side - 1].standing) {
    case Standing::kMore: return Tone::kBad;
    case Standing::kLess: return Tone::kGood;
    case Standing::kNoise:
    case Standing::kUntested: break;
  }
  return Tone::kDim;
}

std::string_view whisker_class(const Change& change) {
  if (change.standing == Standing::kMore)
    return "more";
  if (change.standing == Standing::kLess)
    return "less";
  return "noise";
}

/// For HTML: ratio and interval around "no change", on a logarithmic scale up to `scale`.
std::string whisker(const Change& change, double scale) {
  if (!change.ratio || *change.ratio <= 0)
    return "";
  constexpr double kWidth = 120, kHeight = 16;
  const auto x = [&](double ratio) {
    const double part = std::clamp(std::log(ratio) / scale, -1.0, 1.0);
    return kWidth / 2 + part * (kWidth / 2 - 4);
  };
  std::string svg = fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" aria-hidden=\"true\"><line "
      "x1=\"{2}\" x2=\"{2}\" "
      "y1=\"0\" y2=\"{1}\"/>",
      kWidth,
      kHeight,
      kWidth / 2);
  const std::string_view style = whisker_class(change);
  if (change.low && *change.low > 0)
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"8\" y2=\"8\" stroke-width=\"2\"/>",
        style,
        x(*change.low),
        x(*change.high));
  return svg + fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"8\" r=\"4\"/></svg>",
                           style,
                           x(*change.ratio));
}

struct ComparedRow {
  std::string label, counts;
  const ComparedValue* value;
};

/// The logarithm of the largest change of all rows, at most of a factor of four.
double whisker_scale(const std::vector<ComparedRow>& rows) {
  double largest = std::log(1.02);
  for (const ComparedRow& row : rows) {
    for (const Change& change : row.value->changes) {
      for (const auto& ratio : {change.ratio, change.low, change.high}) {
        if (ratio && *ratio > 0)
          largest = std::max(largest, std::abs(std::log(*ratio)));
      }
    }
  }
  return std::min(largest, std::log(4.0));
}

/// Change, interval, p and verdict of a side.
void add_change_cells(const ComparedValue& value,
                      std::size_t side,
                      double scale,
                      std::vector<GridCell>& cells) {
  const Change& change = value.changes[side - 1];
  const Tone tone = standing_tone(value, side);
  const Tone change_tone = tone == Tone::kDim ? Tone::kDim : Tone::kPlain;
  cells.push_back({change_text(value, side), change_tone});
  cells.push_back({interval_text(change), Tone::kDim, 0, "", whisker(change, scale)});
  cells.push_back({p_text(change), Tone::kDim});
  cells.push_back({standing_text(value, side), tone, 0, change.why});
}

Grid comparison_grid(const Comparison& comparison,
                     const char* label_head,
                     const char* count_head,
                     const std::vector<ComparedRow>& rows) {
  const std::size_t sides = comparison.sides.size();
  Grid grid({{label_head, false, true}, {count_head, true, false, 2}});
  grid.min_shrunk_width = 40;
  grid.columns.push_back({side_letter(0), true, false, 4});
  for (std::size_t side = 1; side < sides; ++side)
    grid.columns.push_back({side_letter(side), true, false, 5});
  for (std::size_t side = 1; side < sides; ++side) {
    std::string letter;
    if (sides > 2)
      letter = " " + side_letter(side);
    grid.columns.insert(grid.columns.end(),
                        {{"change" + letter},
                         {"between" + letter, true, false, 3},
                         {"p" + letter, true, false, 1},
                         {"verdict" + letter, false}});
  }
  const double scale = whisker_scale(rows);
  for (const ComparedRow& row : rows) {
    std::vector<GridCell> cells = {{row.label}, {row.counts}};
    const std::size_t value_count = row.value->values.size();
    for (std::size_t side = 0; side < value_count; ++side)
      cells.push_back({side_value(*row.value, side)});
    for (std::size_t side = 1; side < value_count; ++side)
      add_change_cells(*row.value, side, scale, cells);
    grid.add(std::move(cells));
  }
  return grid;
}

/// What was run on each side, differences of the environment, and notes.
void add_sides(Section& section, const Comparison& comparison) {
  for (std::size_t side = 0; side < comparison.sides.size(); ++side)
    section.add({.text = side_sentence(comparison, side), .shape = Line::kItem});
  for (const model::EnvironmentDifference& difference : comparison.environment)
    section.add({"different " + difference_sentence(difference),
                 Line::kItem,
                 difference.heavy ? Tone::kWarn : Tone::kPlain});
  for (const std::string& note : comparison.notes)
    section.add({note, Line::kItem, Tone::kWarn, "note"});
}

using model::ComparedPrediction;

/// "predicted 203 ± 8 ms instead of 414.0 ms, realised 198.0 ms: 8 element-wise kernels ..."
std::string prediction_sentence(const Comparison& comparison,
                                const ComparedPrediction& prediction) {
  const double half_ns = (prediction.high_ns - prediction.low_ns) / 2;
  std::string text = prediction.is_bound ? "predicted at least " : "predicted ";
  text += base::format_ns_interval(prediction.predicted_ns, half_ns);
  text += " instead of " + base::format_ns(prediction.before_ns);
  const std::string in_side = " in " + side_letter(prediction.side);
  if (prediction.realised_ns) {
    text += ", realised";
    if (comparison.sides.size() > 2)
      text += in_side;
    text += " " + base::format_ns(*prediction.realised_ns);
  } else {
    text += "; the range is not" + in_side;
  }
  return text + ": " + base::printable(prediction.text);
}

void add_predictions(Document& page, const Comparison& comparison) {
  if (comparison.predictions.empty())
    return;
  Section& section = page.begin("Predicted and realised, per instance", false);
  for (const ComparedPrediction& prediction : comparison.predictions)
    section.add({.text = prediction_sentence(comparison, prediction),
                 .shape = Line::kItem,
                 .name = base::printable(prediction.path)});
}

void add_missing(Document& page, const Comparison& comparison, std::size_t max_lines) {
  Section& section = page.begin("Not on all sides");
  const std::size_t shown = std::min(max_lines, comparison.missing.size());
  for (std::size_t i = 0; i < shown; ++i)
    section.add({.text = missing_sentence(comparison.missing[i]), .shape = Line::kItem});
  if (comparison.missing.size() > shown) {
    const std::string count = base::counted(comparison.missing.size() - shown, "more region");
    section.add({"(" + count + " not on all sides)", Line::kItem, Tone::kDim});
  }
  for (const model::RenameOffer& offer : comparison.renames)
    section.add({rename_sentence(offer), Line::kItem, Tone::kWarn});
}

/// A table for each compared value, with at most `top` regions (0: all) in it.
void add_values(Document& page, const Comparison& comparison, std::size_t top) {
  const std::vector<ComparedRegion>& regions = comparison.regions;
  if (regions.empty())
    return;
  std::size_t shown = regions.size();
  if (top > 0)
    shown = std::min(top, shown);
  for (std::size_t v = 0; v < regions.front().values.size(); ++v) {
    std::vector<ComparedRow> rows;
    for (std::size_t i = 0; i < shown; ++i) {
      const ComparedValue& value = regions[i].values[v];
      if (model::is_compared(regions[i], value))
        rows.push_back({region_label(regions[i]), counts_text(regions[i].occurrences), &value});
    }
    Grid grid = comparison_grid(comparison, "range", "count", rows);
    if (regions.size() > shown)
      grid.omitted = base::counted(regions.size() - shown, "more region") + " changed less: --top";
    page.begin(value_heading(regions.front().values[v]), false).add(std::move(grid));
  }
}

/// All functions of the region that `cpu` names; without a name the first ten of another.
void add_functions(Document& page, const Comparison& comparison, const std::string& cpu) {
  constexpr std::size_t kDefaultFunctions = 10;
  const ComparedRegion* region = functions_shown(comparison, cpu);
  if (region == nullptr)
    return;
  const auto add = [&](const std::vector<model::ComparedFunction>& functions,
                       const std::string& heading) {
    std::vector<ComparedRow> rows;
    for (const model::ComparedFunction& function : functions) {
      if (cpu.empty() && rows.size() == kDefaultFunctions)
        break;
      rows.push_back(
          {compared_function_text(function), shares_text(function.share), &function.self});
    }
    if (rows.empty())
      return;
    page.begin(heading, false).add(comparison_grid(comparison, "function", "of wall time", rows));
  };
  const std::string label = region_label(*region);
  add(region->own_functions,
      "own functions of " + label + ", CPU time per instance with the libraries that they call");
  add(region->functions, "functions of " + label + ", self time per instance");
}

void add_compared_kernels(Document& page, const Comparison& comparison, std::size_t top) {
  const std::size_t shown = std::min(top, comparison.kernels.size());
  if (shown == 0)
    return;
  std::vector<ComparedRow> rows;
  for (std::size_t i = 0; i < shown; ++i) {
    const model::ComparedKernel& kernel = comparison.kernels[i];
    std::string name = kernel.name;
    if (kernel.folded)
      name += " (folded)";
    rows.push_back({name, counts_text(kernel.calls), &kernel.per_call});
  }
  Grid grid = comparison_grid(comparison, "kernel", "count", rows);
  if (comparison.kernels.size() > shown)
    grid.omitted =
        base::counted(comparison.kernels.size() - shown, "more kernel") + ": --top-kernels";
  page.begin("kernels, time per call", false).add(std::move(grid));
}

std::size_t count_checks(const model::Gate& gate, GateVerdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(
      gate.checks, verdict, [](const GateCheck& check) { return check.verdict; }));
}

}  // namespace

Document comparison_document(const Comparison& comparison, const Style& style) {
  constexpr std::size_t kMaxMissing = 12;
  Document page;
  Section& head = page.begin("Comparison");
  head.add({.text = comparison_headline(comparison), .tone = Tone::kBold});
  add_sides(head, comparison);
  add_predictions(page, comparison);
  add_values(page, comparison, style.top);
  add_missing(page, comparison, kMaxMissing);
  add_functions(page, comparison, style.cpu);
  add_compared_kernels(page, comparison, style.top_kernels);
  Section& foot = page.begin("Tests");
  for (const std::string& text : untested_sentences(comparison))
    foot.add({text, Line::kItem, Tone::kDim});
  if (comparison.tests > 0)
    foot.add({base::counted(comparison.tests, "value") + " tested: " + comparison.method,
              Line::kItem,
              Tone::kDim});
  return page;
}

namespace {

/// "dedup (quad.py:2) takes ... instead of ...": the program's own function that grew most of those
/// that regressed; "" if none did.
std::string regressed_own_function(const model::Gate& gate) {
  for (const GateCheck& check : gate.checks) {
    if (check.verdict != GateVerdict::kRegressed || !check.is_own_function)
      continue;
    return own_function_change(*model::function_of(gate, check), region_of(gate, check), 1);
  }
  return {};
}

}  // namespace

std::string gate_headline(const model::Gate& gate) {
  const std::string limit = fmt::format("{:g} %", gate.max_regression * 100);
  const std::size_t regressed = count_checks(gate, GateVerdict::kRegressed);
  const std::size_t undecided = count_checks(gate, GateVerdict::kUndecided);
  std::string text;
  if (gate.verdict == GateVerdict::kUndecided)
    text = "undecided: ";
  if (regressed > 0) {
    const std::string values = base::counted(gate.checks.size(), "value");
    text += fmt::format("{} of {} regressed (limit {})", regressed, values, limit);
    const std::string function = regressed_own_function(gate);
    if (!function.empty())
      text += ": " + function;
  } else {
    const std::string values = base::counted(gate.checks.size() - undecided, "value");
    text += fmt::format("no regression in {} (limit {})", values, limit);
  }
  std::size_t decidable = 0, runs = 0;  // by more runs
  for (const GateCheck& check : gate.checks) {
    if (check.verdict != GateVerdict::kUndecided || !check.runs_to_decide)
      continue;
    ++decidable;
    runs = std::max(runs, *check.runs_to_decide);
  }
  if (undecided > decidable)
    text += fmt::format("; {} could not be judged", undecided - decidable);
  if (decidable > 0)
    text += fmt::format(
        "; {0} undecided: about {1} runs per side decide (profile --repeat {1})", decidable, runs);
  return text;
}

std::string gate_label(const model::Gate& gate, const GateCheck& check) {
  const model::ComparedRegion& region = region_of(gate, check);
  const std::string label = region_label(region);
  const model::ComparedFunction* function = model::function_of(gate, check);
  if (function == nullptr)
    return label;
  return compared_function_text(*function) + " in " + label;
}

namespace {

/// Explains the rule if a value fails although its change is below the limit; else "".
std::string rule_sentence(const model::Gate& gate) {
  const auto is_below = [&](const GateCheck& check) {
    const auto& ratio = value_of(gate, check).changes[0].ratio;
    if (check.verdict != GateVerdict::kRegressed || !ratio)
      return false;
    return *ratio < 1 + gate.max_regression;
  };
  const auto below = std::ranges::count_if(gate.checks, is_below);
  if (below == 0)
    return {};
  const std::string limit = fmt::format("{:g} %", gate.max_regression * 100);
  return fmt::format(
      "{} below {} failed, too: an increase that is statistically significant fails when its "
      "interval reaches the limit, so that one of exactly {} is always found; more runs make the "
      "interval narrower",
      base::counted(static_cast<std::size_t>(below), "value"),
      limit,
      limit);
}

std::string_view gate_emoji(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::kRegressed: return "❌";
    case GateVerdict::kUndecided: return "⚠️";
    case GateVerdict::kPassed: break;
  }
  return "✅";
}

/// Of the answer of the gate.
Tone gate_tone(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::kRegressed: return Tone::kBad;
    case GateVerdict::kUndecided: return Tone::kWarn;
    case GateVerdict::kPassed: break;
  }
  return Tone::kGood;
}

/// The checks with that verdict; of others than regressions at most 20.
void add_checks(Document& page, const model::Gate& gate, GateVerdict verdict) {
  constexpr std::size_t kMaxRows = 20;
  const bool is_regression = verdict == GateVerdict::kRegressed;
  const std::string verdict_name(model::gate_verdict_name(verdict));
  const Tone tone = verdict == GateVerdict::kUndecided ? Tone::kDim : gate_tone(verdict);
  Grid grid({{"verdict", false},
             {"range", false, true},
             {"value", false, false, 3},
             {"baseline", true, false, 1},
             {"now", true, false, 2},
             {"change"},
             {"between", true, false, 1},
             {"p", true, false, 1}});
  std::size_t checks = 0;
  for (const GateCheck& check : gate.checks) {
    if (check.verdict != verdict)
      continue;
    if (++checks > kMaxRows && !is_regression)
      continue;
    const ComparedValue& value = value_of(gate, check);
    grid.add({{verdict_name, tone},
              {gate_label(gate, check)},
              {value.tag},
              {side_value(value, 0)},
              {side_value(value, 1)},
              {change_text(value, 1), tone},
              {interval_text(value.changes[0]), Tone::kDim, 0, check.text},
              {p_text(value.changes[0]), Tone::kDim}});
  }
  if (checks == 0)
    return;
  if (checks > grid.rows.size())
    grid.omitted = base::counted(checks - grid.rows.size(), "more value");
  Section& section = page.begin(base::counted(checks, "value") + " " + verdict_name);
  section.folded = !is_regression;
  section.add(std::move(grid));
}

}  // namespace

Document gate_document(const model::Gate& gate) {
  Document page;
  page.level = 3;
  const std::string headline = gate_headline(gate);
  Section& head = page.begin(fmt::format("{} rangescope: {}", gate_emoji(gate.verdict), headline));
  add_sides(head, gate.comparison);
  for (const GateVerdict verdict :
       {GateVerdict::kRegressed, GateVerdict::kUndecided, GateVerdict::kPassed})
    add_checks(page, gate, verdict);
  add_missing(page, gate.comparison, gate.comparison.missing.size());
  Section& foot = page.begin("Answer");
  for (const std::string& text : untested_sentences(gate.comparison))
    foot.add({text, Line::kItem, Tone::kDim});
  const std::string rule = rule_sentence(gate);
  if (!rule.empty())
    foot.add({rule, Line::kItem, Tone::kWarn});
  foot.add({headline, Line::kItem, gate_tone(gate.verdict)});
  return page;
}

}  // namespace rangescope::report
