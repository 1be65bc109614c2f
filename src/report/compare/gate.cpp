#include "report/compare/gate.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "report/compare/formats.hpp"
#include "report/compare/view.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/markdown_text.hpp"
#include "report/document/markup_text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using base::Tone;
using model::GateCheck;
using model::GateVerdict;

constexpr std::size_t kShown = 20;  // checks that passed, in texts for people

const model::ComparedRegion& region_of(const model::Gate& gate, const GateCheck& check) {
  return gate.comparison.regions[check.region];
}

const model::ComparedValue& value_of(const model::Gate& gate, const GateCheck& check) {
  return region_of(gate, check).values[check.value];
}

std::size_t count(const model::Gate& gate, GateVerdict verdict) {
  return static_cast<std::size_t>(std::count_if(gate.checks.begin(), gate.checks.end(),
                                                [&](const GateCheck& check) { return check.verdict == verdict; }));
}

std::string limit(const model::Gate& gate) {
  return fmt::format("{:g} %", gate.max_regression * 100);
}

/// "2 of 12 values regressed by 5 % or more", and what could not be said.
std::string headline(const model::Gate& gate) {
  const std::size_t bad = count(gate, GateVerdict::kRegressed), open = count(gate, GateVerdict::kUndecided);
  std::string text = bad > 0 ? fmt::format("{} of {} regressed (limit {})", bad,
                                           base::counted(gate.checks.size(), "value"), limit(gate))
                             : fmt::format("no regression in {} (limit {})",
                                           base::counted(gate.checks.size() - open, "value"), limit(gate));
  std::size_t hidden = 0, runs = 0;
  for (const GateCheck& check : gate.checks) {
    hidden += check.hidden ? 1 : 0;
    runs = std::max(runs, check.runs_to_decide.value_or(0));
  }
  if (gate.verdict == GateVerdict::kUndecided) text = "undecided: " + text;
  if (open > hidden) text += fmt::format("; {} could not be judged", open - hidden);
  if (hidden > 0)
    text += fmt::format("; of {} the noise hides the limit (about {} runs a side would show it)", hidden, runs);
  return text;
}

Tone tone_of(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::kPassed: return Tone::kGood;
    case GateVerdict::kRegressed: return Tone::kBad;
    case GateVerdict::kUndecided: return Tone::kDim;
  }
  return Tone::kPlain;
}

}  // namespace

void write_gate_table(const model::Gate& gate, const Style& style, Sink& sink) {
  const auto aside = [&](const std::string& text, Tone tone) {
    sink.write(base::toned(text, tone, style.color) + "\n");
  };
  for (std::size_t side = 0; side < 2; ++side) aside(side_sentence(gate.comparison, side), Tone::kPlain);
  for (const model::EnvironmentDifference& difference : gate.comparison.environment)
    aside("different " + difference_sentence(difference), difference.heavy ? Tone::kWarn : Tone::kPlain);
  for (const std::string& note : gate.comparison.notes) aside("note: " + base::printable(note), Tone::kWarn);
  sink.write("\n");
  base::Table table({{"verdict", false, false, 0},
                     {"range", false, true, 0},
                     {"value", false, false, 3},
                     {"baseline", true, false, 1},
                     {"now", true, false, 2},
                     {"change", true, false, 0},
                     {"between", true, false, 1},
                     {"p", true, false, 1}});
  const std::size_t most = count(gate, GateVerdict::kRegressed) + kShown;
  for (std::size_t i = 0; i < std::min(most, gate.checks.size()); ++i) {
    const GateCheck& check = gate.checks[i];
    const model::ComparedValue& value = value_of(gate, check);
    table.add({{std::string(model::gate_verdict_name(check.verdict)), tone_of(check.verdict)},
               {region_label(region_of(gate, check))},
               {base::printable(value.tag)},
               {side_value(value, 0)},
               {side_value(value, 1)},
               {change_text(value, 1), tone_of(check.verdict)},
               {between_text(value.changes[0]), Tone::kDim},
               {p_text(value.changes[0]), Tone::kDim}});
  }
  sink.write(table.render(style.width, style.color));
  if (gate.checks.size() > most) aside(fmt::format("({} more that passed)", gate.checks.size() - most), Tone::kDim);
  for (const std::string& text : untested_sentences(gate.comparison)) aside(text, Tone::kDim);
  for (const model::ComparedRegion& region : gate.comparison.missing) aside(missing_sentence(region), Tone::kPlain);
  for (const model::RenameOffer& offer : gate.comparison.renames) aside(rename_sentence(offer), Tone::kWarn);
  aside(headline(gate), tone_of(gate.verdict));
}

void write_gate_json(const model::Gate& gate, Sink& sink) {
  JsonWriter json(sink);
  json.open_object();
  json.field("schema", "rangescope.gate/1");
  json.field("verdict", model::gate_verdict_name(gate.verdict));
  json.field("text", headline(gate));
  json.field("max_regression", gate.max_regression);
  json.open_array("checks");
  for (const GateCheck& check : gate.checks) {
    const model::ComparedRegion& region = region_of(gate, check);
    json.open_line_object();
    json.field("verdict", model::gate_verdict_name(check.verdict));
    json.field("path", model::path_text(region.domain, region.path));
    json.field("kind", kind_name(region.kind));
    json.field("metric", value_of(gate, check).tag);
    json.field("hidden", check.hidden);
    if (check.runs_to_decide) json.field("runs_to_decide", static_cast<std::int64_t>(*check.runs_to_decide));
    json.field("text", check.text);
    json.close();
  }
  json.close();
  json.key("comparison");
  write_comparison_object(gate.comparison, json);
  json.close();
  json.finish();
}

// The dialect that Jenkins, GitLab and GitHub actions read: one suite, one case a check, undecided ones skipped.
void write_gate_junit(const model::Gate& gate, Sink& sink) {
  const std::size_t bad = count(gate, GateVerdict::kRegressed), open = count(gate, GateVerdict::kUndecided);
  const std::string counts =
      fmt::format("name=\"rangescope gate\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
                  gate.checks.size(), bad, open);
  sink.write(fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite {0}>\n", counts));
  for (const GateCheck& check : gate.checks) {
    sink.write(fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                           markup_escaped(region_label(region_of(gate, check))),
                           markup_escaped(value_of(gate, check).tag)));
    const std::string text = markup_escaped(check.text);
    switch (check.verdict) {
      case GateVerdict::kPassed: sink.write("/>\n"); break;
      case GateVerdict::kRegressed:
        sink.write(fmt::format(">\n      <failure type=\"regression\" message=\"{}\"/>\n    </testcase>\n", text));
        break;
      case GateVerdict::kUndecided:
        sink.write(fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", text));
        break;
    }
  }
  sink.write("  </testsuite>\n</testsuites>\n");
}

void write_gate_markdown(const model::Gate& gate, Sink& sink) {
  const auto table = [&](GateVerdict verdict, std::size_t most) {
    md_row(sink, {"range", "value", "baseline", "now", "change", "between", "p"});
    md_rule(sink, 6);
    for (const GateCheck& check : gate.checks) {
      if (check.verdict != verdict || most == 0) continue;
      --most;
      const model::ComparedValue& value = value_of(gate, check);
      std::vector<std::string> cells;
      for (const std::string& text :
           {region_label(region_of(gate, check)), value.tag, side_value(value, 0), side_value(value, 1),
            change_text(value, 1), between_text(value.changes[0]), p_text(value.changes[0])})
        cells.push_back(md_escaped(text));
      md_row(sink, cells);
    }
  };
  const bool doubt = gate.verdict == GateVerdict::kUndecided;
  const char* sign = gate.verdict == GateVerdict::kRegressed ? "❌" : doubt ? "⚠️" : "✅";
  sink.write(fmt::format("### {} rangescope: {}\n\n", sign, md_escaped(headline(gate))));
  for (const model::EnvironmentDifference& difference : gate.comparison.environment)
    sink.write("- different " + md_escaped(difference_sentence(difference)) + "\n");
  for (const std::string& note : gate.comparison.notes) sink.write("- " + md_escaped(note) + "\n");
  if (!gate.comparison.environment.empty() || !gate.comparison.notes.empty()) sink.write("\n");
  if (count(gate, GateVerdict::kRegressed) > 0) {
    table(GateVerdict::kRegressed, gate.checks.size());
    sink.write("\n");
  }
  if (const std::size_t open = count(gate, GateVerdict::kUndecided); open > 0) {
    sink.write("<details><summary>" + base::counted(open, "value") + " undecided</summary>\n\n");
    table(GateVerdict::kUndecided, 100);
    sink.write("\n</details>\n");
  }
  if (const std::size_t passed = count(gate, GateVerdict::kPassed); passed > 0) {
    sink.write("<details><summary>" + base::counted(passed, "value") + " passed</summary>\n\n");
    table(GateVerdict::kPassed, 100);
    sink.write("\n</details>\n");
  }
  for (const model::RenameOffer& offer : gate.comparison.renames)
    sink.write("- " + md_escaped(rename_sentence(offer)) + "\n");
}

}  // namespace rangescope::report
