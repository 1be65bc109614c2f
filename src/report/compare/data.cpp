// A comparison for programs. CSV: a row for each region, value and side (RFC 4180, base units,
// empty if absent). JSON: rangescope.compare/1 (docs/formats/compare-json.md), rangescope.gate/1.
// JUnit XML for build servers.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "model/measure.hpp"
#include "report/compare/document.hpp"
#include "report/compare/formats.hpp"
#include "report/document/csv_text.hpp"
#include "report/document/document.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::Change;
using model::ComparedValue;
using model::GateCheck;
using model::GateVerdict;

/// What the rows of a value start with.
struct CsvSubject {
  std::string kind, path, domain;
  const std::vector<std::optional<double>>& counts;
};

/// A row for each side but the first.
void write_value_rows(const CsvSubject& subject,
                      const ComparedValue& value,
                      const model::Comparison& comparison,
                      Sink& sink) {
  for (std::size_t side = 1; side < value.values.size(); ++side) {
    const Change& change = value.changes[side - 1];
    std::optional<double> difference;
    if (value.values[0] && value.values[side])
      difference = change.difference;
    csv_row(sink,
            {subject.kind,
             csv_field(subject.domain),
             csv_field(subject.path),
             csv_field(value.tag),
             value.unit,
             value.per_occurrence ? "true" : "false",
             csv_field(comparison.sides[side].label),
             csv_number(subject.counts[0]),
             csv_number(subject.counts[side]),
             csv_number(value.values[0]),
             csv_number(value.values[side]),
             csv_number(difference),
             csv_number(change.ratio),
             csv_number(change.low),
             csv_number(change.high),
             csv_number(change.p),
             std::string(model::standing_name(change.standing)),
             csv_field(change.why)});
  }
}

void write_value_fields(JsonWriter& json, const ComparedValue& value) {
  json.field("unit", value.unit);
  json.field("per_occurrence", value.per_occurrence);
  json.field("values", value.values);
  json.line_objects("changes", value.changes, [&](const Change& change) {
    std::optional<double> confidence;
    if (change.low)
      confidence = change.confidence;
    json.field("standing", model::standing_name(change.standing));
    json.field("difference", change.difference);
    json.field("ratio", change.ratio);
    json.field("low", change.low);
    json.field("high", change.high);
    json.field("confidence", confidence);
    json.field("p", change.p);
    json.field("why", change.why);
    if (change.is_exact)
      json.field("exact", true);
  });
}

void write_compared_region(JsonWriter& json, const model::ComparedRegion& region) {
  json.open_object();
  json.field("path", region.path);
  json.field("domain", region.domain);
  json.field("kind", model::range_kind_key(region.kind));
  json.field("renamed_from", or_null(region.renamed_from));
  json.field("occurrences", region.occurrences);
  if (region.is_whole_run)
    json.field("whole_run", true);
  if (region.is_outside_ranges)
    json.field("outside_ranges", true);
  json.open_object("values");
  for (const ComparedValue& value : region.values) {
    if (!model::is_compared(region, value))
      continue;
    json.open_object(value.tag);
    write_value_fields(json, value);
    json.close();
  }
  json.close();
  for (const auto& [list, functions] :
       {std::pair{"own_functions", &region.own_functions}, {"functions", &region.functions}}) {
    if (functions->empty())
      continue;
    json.objects(list, *functions, [&](const model::ComparedFunction& function) {
      json.field("name", function.name);
      json.field("python", function.python);
      json.field("share", function.share);
      if (function.place.known()) {
        json.field("file", or_null(function.place.file));
        json.field("line", or_null(function.place.line));
      }
      json.open_object(function.self.tag);
      write_value_fields(json, function.self);
      json.close();
    });
  }
  json.close();
}

void write_predictions(std::span<const model::ComparedPrediction> predictions, JsonWriter& json) {
  json.line_objects("predictions", predictions, [&](const model::ComparedPrediction& prediction) {
    json.field("side", prediction.side);
    json.field("cure", prediction.cure);
    json.field("path", prediction.path);
    json.field("text", prediction.text);
    json.field("before_ns", prediction.before_ns);
    json.field("predicted_ns", prediction.predicted_ns);
    json.field("predicted_low_ns", prediction.low_ns);
    json.field("predicted_high_ns", prediction.high_ns);
    json.field("at_most", prediction.is_bound);
    json.field("realised_ns", prediction.realised_ns);
  });
}

/// The whole JSON of a comparison; a part of the JSON of the gate.
void write_comparison_object(const model::Comparison& comparison, JsonWriter& json) {
  json.open_object();
  json.field("schema", "rangescope.compare/1");
  json.objects("sides", comparison.sides, [&](const model::ComparedSide& side) {
    json.field("label", side.label);
    json.field("runs", side.runs);
    json.field("command", side.command);
    json.field("devices", side.devices);
    json.field("duration_ns", side.duration_ns);
    json.field("failed", side.failed);
  });
  json.field("text", comparison_headline(comparison));
  json.field("in_turns", comparison.in_turns);
  json.field("noise", comparison.noise);
  json.field("method", comparison.method);
  json.field("alpha", comparison.alpha);
  json.field("tests", comparison.tests);
  json.line_objects(
      "environment", comparison.environment, [&](const model::EnvironmentDifference& difference) {
        json.field("what", difference.what);
        json.field("values", difference.values);
        json.field("heavy", difference.heavy);
      });
  for (const auto& [name, regions] :
       {std::pair{"regions", &comparison.regions}, {"missing", &comparison.missing}}) {
    json.open_array(name);
    for (const model::ComparedRegion& region : *regions)
      write_compared_region(json, region);
    json.close();
  }
  json.line_objects("renames", comparison.renames, [&](const model::RenameOffer& offer) {
    json.field("side", offer.side);
    json.field("from", offer.from);
    json.field("to", offer.to);
    json.field("reason", offer.reason);
  });
  json.objects("kernels", comparison.kernels, [&](const model::ComparedKernel& kernel) {
    json.field("name", kernel.name);
    json.field("folded", kernel.folded);
    json.field("calls", kernel.calls);
    for (const ComparedValue* value : {&kernel.total, &kernel.per_call}) {
      json.open_object(value->tag);
      write_value_fields(json, *value);
      json.close();
    }
  });
  write_predictions(comparison.predictions, json);
  json.field("notes", comparison.notes);
  json.close();
}

}  // namespace

void write_comparison_csv(const model::Comparison& comparison, const Style&, Sink& sink) {
  csv_row(sink,
          {"what",
           "domain",
           "path",
           "value",
           "unit",
           "per_occurrence",
           "side",
           "count_a",
           "count",
           "value_a",
           "value_side",
           "difference",
           "ratio",
           "low",
           "high",
           "p",
           "standing",
           "why"});
  for (const auto* regions : {&comparison.regions, &comparison.missing}) {
    for (const model::ComparedRegion& region : *regions) {
      const std::string path = model::path_text("", region.path);
      const std::string kind(model::range_kind_key(region.kind));
      for (const ComparedValue& value : region.values) {
        if (!model::is_compared(region, value))
          continue;
        write_value_rows({kind, path, region.domain, region.occurrences}, value, comparison, sink);
      }
      for (const auto& [subject_kind, functions] :
           {std::pair{"own_function", &region.own_functions}, {"function", &region.functions}}) {
        for (const model::ComparedFunction& function : *functions) {
          const CsvSubject subject{
              subject_kind, path + " > " + function.name, region.domain, region.occurrences};
          write_value_rows(subject, function.self, comparison, sink);
        }
      }
    }
  }
  for (const model::ComparedKernel& kernel : comparison.kernels) {
    const CsvSubject subject{"kernel", kernel.name, "", kernel.calls};
    write_value_rows(subject, kernel.total, comparison, sink);
    write_value_rows(subject, kernel.per_call, comparison, sink);
  }
}

void write_comparison_json(const model::Comparison& comparison, const Style&, Sink& sink) {
  JsonWriter json(sink);
  write_comparison_object(comparison, json);
  json.finish();
}

void write_gate_table(const model::Gate& gate, const Style& style, Sink& sink) {
  render_terminal(gate_document(gate), style, sink);
}

void write_gate_markdown(const model::Gate& gate, const Style&, Sink& sink) {
  render_markdown(gate_document(gate), sink);
}

void write_gate_json(const model::Gate& gate, const Style&, Sink& sink) {
  JsonWriter json(sink);
  json.open_object();
  json.field("schema", "rangescope.gate/1");
  json.field("verdict", model::gate_verdict_name(gate.verdict));
  json.field("text", gate_headline(gate));
  json.field("max_regression", gate.max_regression);
  json.line_objects("checks", gate.checks, [&](const GateCheck& check) {
    const model::ComparedRegion& region = region_of(gate, check);
    json.field("verdict", model::gate_verdict_name(check.verdict));
    json.field("path", model::path_text(region.domain, region.path));
    json.field("kind", model::range_kind_key(region.kind));
    json.field("metric", value_of(gate, check).tag);
    json.field("hidden", check.hidden);
    if (const model::ComparedFunction* function = model::function_of(gate, check))
      json.field("function", function->name);
    if (check.runs_to_decide)
      json.field("runs_to_decide", check.runs_to_decide);
    json.field("text", check.text);
  });
  json.key("comparison");
  write_comparison_object(gate.comparison, json);
  json.close();
  json.finish();
}

// The dialect that Jenkins, GitLab and GitHub Actions read: one suite, a case for each check;
// undecided checks are skipped cases.
void write_gate_junit(const model::Gate& gate, const Style&, Sink& sink) {
  const auto count = [&](GateVerdict verdict) {
    return std::ranges::count(
        gate.checks, verdict, [](const GateCheck& check) { return check.verdict; });
  };
  const auto failures = count(GateVerdict::kRegressed);
  const auto skipped = count(GateVerdict::kUndecided);
  const std::string counts = fmt::format(
      "name=\"rangescope gate\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
      gate.checks.size(),
      failures,
      skipped);
  sink.write(fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite {0}>\n", counts));
  for (const GateCheck& check : gate.checks) {
    sink.write(fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                           markup_escaped(gate_label(gate, check)),
                           markup_escaped(value_of(gate, check).tag)));
    const std::string text = markup_escaped(check.text);
    switch (check.verdict) {
      case GateVerdict::kPassed: sink.write("/>\n"); break;
      case GateVerdict::kRegressed:
        sink.write(fmt::format(
            ">\n      <failure type=\"regression\" message=\"{}\"/>\n    </testcase>\n", text));
        break;
      case GateVerdict::kUndecided:
        sink.write(fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", text));
        break;
    }
  }
  sink.write("  </testsuite>\n</testsuites>\n");
}

}  // namespace rangescope::report
