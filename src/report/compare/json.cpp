// rangescope.compare/1: docs/formats/compare-json.md.
#include "report/compare/formats.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::Change;
using model::ComparedValue;

void value_fields(JsonWriter& json, const ComparedValue& value) {
  json.fields("unit", value.unit, "per_occurrence", value.per_occurrence, "values", value.values);
  json.line_objects("changes", value.changes, [&](const Change& change) {
    json.fields("standing", model::standing_name(change.standing), "difference", change.difference, "ratio",
                change.ratio, "low", change.low, "high", change.high, "confidence",
                change.low ? std::optional(change.confidence) : std::nullopt, "p", change.p, "why", change.why);
  });
}

void region(JsonWriter& json, const model::ComparedRegion& one) {
  json.open_object();
  json.fields("path", one.path, "domain", one.domain, "kind", kind_name(one.kind), "renamed_from",
              or_null(one.renamed_from), "occurrences", one.occurrences);
  json.open_object("values");
  for (const ComparedValue& value : one.values) {
    json.open_object(value.tag);
    value_fields(json, value);
    json.close();
  }
  json.close();
  if (!one.functions.empty()) {
    json.objects("functions", one.functions, [&](const model::ComparedFunction& function) {
      json.fields("name", function.name, "python", function.python, "share", function.share);
      json.open_object("self_ns");
      value_fields(json, function.self);
      json.close();
    });
  }
  json.close();
}

}  // namespace

void write_comparison_object(const model::Comparison& comparison, JsonWriter& json) {
  json.open_object();
  json.field("schema", "rangescope.compare/1");
  json.objects("sides", comparison.sides, [&](const model::ComparedSide& side) {
    json.fields("label", side.label, "runs", side.runs, "command", side.command, "devices", side.devices, "duration_ns",
                side.duration_ns, "failed", side.failed);
  });
  json.fields("noise", comparison.noise, "method", comparison.method, "alpha", comparison.alpha, "tests",
              comparison.tests);
  json.line_objects("environment", comparison.environment, [&](const model::EnvironmentDifference& difference) {
    json.fields("what", difference.what, "values", difference.values, "heavy", difference.heavy);
  });
  for (const auto& [name, list] : {std::pair{"regions", &comparison.regions}, {"missing", &comparison.missing}}) {
    json.open_array(name);
    for (const model::ComparedRegion& one : *list) region(json, one);
    json.close();
  }
  json.line_objects("renames", comparison.renames, [&](const model::RenameOffer& offer) {
    json.fields("side", offer.side, "from", offer.from, "to", offer.to, "reason", offer.reason);
  });
  json.objects("kernels", comparison.kernels, [&](const model::ComparedKernel& kernel) {
    json.fields("name", kernel.name, "folded", kernel.folded, "calls", kernel.calls);
    for (const ComparedValue* value : {&kernel.total, &kernel.per_call}) {
      json.open_object(value->tag);
      value_fields(json, *value);
      json.close();
    }
  });
  json.field("notes", comparison.notes);
  json.close();
}

void write_comparison_json(const model::Comparison& comparison, const Style&, Sink& sink) {
  JsonWriter json(sink);
  write_comparison_object(comparison, json);
  json.finish();
}

}  // namespace rangescope::report
