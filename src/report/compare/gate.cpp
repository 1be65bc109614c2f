#include <fmt/format.h>
#include <algorithm>

#include "model/measure.hpp"
#include "report/compare/document.hpp"
#include "report/compare/formats.hpp"
#include "report/document/document.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::GateCheck;
using model::GateVerdict;

const model::ComparedRegion& region_of(const model::Gate& gate, const GateCheck& check) {
  return gate.comparison.regions[check.region];
}

const model::ComparedValue& value_of(const model::Gate& gate, const GateCheck& check) {
  return region_of(gate, check).values[check.value];
}

}  // namespace

void write_gate_table(const model::Gate& gate, const Style& style, Sink& sink) {
  render_terminal(gate_document(gate), style, sink);
}

void write_gate_markdown(const model::Gate& gate, const Style&, Sink& sink) {
  render_markdown(gate_document(gate), sink);
}

void write_gate_json(const model::Gate& gate, const Style&, Sink& sink) {
  JsonWriter json(sink);
  json.open_object();
  json.fields("schema", "rangescope.gate/1", "verdict", model::gate_verdict_name(gate.verdict), "text",
              gate_headline(gate), "max_regression", gate.max_regression);
  json.line_objects("checks", gate.checks, [&](const GateCheck& check) {
    const model::ComparedRegion& region = region_of(gate, check);
    json.fields("verdict", model::gate_verdict_name(check.verdict), "path",
                model::path_text(region.domain, region.path), "kind", kind_name(region.kind), "metric",
                value_of(gate, check).tag, "hidden", check.hidden);
    if (check.runs_to_decide) json.field("runs_to_decide", check.runs_to_decide);
    json.field("text", check.text);
  });
  json.key("comparison");
  write_comparison_object(gate.comparison, json);
  json.close();
  json.finish();
}

// The dialect that Jenkins, GitLab and GitHub actions read: one suite, one case a check, undecided ones skipped.
void write_gate_junit(const model::Gate& gate, const Style&, Sink& sink) {
  const auto count = [&](GateVerdict verdict) {
    return std::ranges::count(gate.checks, verdict, [](const GateCheck& check) { return check.verdict; });
  };
  const auto bad = count(GateVerdict::kRegressed), open = count(GateVerdict::kUndecided);
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

}  // namespace rangescope::report
