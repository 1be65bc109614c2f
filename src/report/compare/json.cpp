// rangescope.compare/1: docs/formats/compare-json.md.
#include "report/compare/formats.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::Change;
using model::ComparedValue;

void numbers(JsonWriter& json, std::string_view name, const std::vector<std::optional<double>>& list) {
  json.open_line_array(name);
  for (const auto& value : list) value ? json.number(*value) : json.null();
  json.close();
}

void optional(JsonWriter& json, std::string_view name, const std::optional<double>& value) {
  value ? json.field(name, *value) : json.null_field(name);
}

void value_fields(JsonWriter& json, const ComparedValue& value) {
  json.field("unit", value.unit);
  json.field("per_occurrence", value.per_occurrence);
  numbers(json, "values", value.values);
  json.line_objects("changes", value.changes, [&](const Change& change) {
    json.field("standing", model::standing_name(change.standing));
    json.field("difference", change.difference);
    optional(json, "ratio", change.ratio);
    optional(json, "low", change.low);
    optional(json, "high", change.high);
    change.low ? json.field("confidence", change.confidence) : json.null_field("confidence");
    optional(json, "p", change.p);
    json.field("why", change.why);
  });
}

void region(JsonWriter& json, const model::ComparedRegion& one) {
  json.open_object();
  json.texts("path", one.path);
  json.field("domain", one.domain);
  json.field("kind", kind_name(one.kind));
  one.renamed_from.empty() ? json.null_field("renamed_from") : json.field("renamed_from", one.renamed_from);
  numbers(json, "occurrences", one.occurrences);
  json.open_object("values");
  for (const ComparedValue& value : one.values) {
    json.open_object(value.tag);
    value_fields(json, value);
    json.close();
  }
  json.close();
  if (!one.functions.empty()) {
    json.objects("functions", one.functions, [&](const model::ComparedFunction& function) {
      json.field("name", function.name);
      json.field("python", function.python);
      numbers(json, "share", function.share);
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
    json.field("label", side.label);
    json.field("runs", static_cast<std::int64_t>(side.runs));
    json.texts("command", side.command);
    json.texts("devices", side.devices);
    json.field("duration_ns", side.duration_ns);
    json.field("failed", static_cast<std::int64_t>(side.failed));
  });
  json.field("noise", comparison.noise);
  json.field("method", comparison.method);
  json.field("alpha", comparison.alpha);
  json.field("tests", static_cast<std::int64_t>(comparison.tests));
  json.line_objects("environment", comparison.environment, [&](const model::EnvironmentDifference& difference) {
    json.field("what", difference.what);
    json.texts("values", difference.values);
    json.field("heavy", difference.heavy);
  });
  for (const auto& [name, list] : {std::pair{"regions", &comparison.regions}, {"missing", &comparison.missing}}) {
    json.open_array(name);
    for (const model::ComparedRegion& one : *list) region(json, one);
    json.close();
  }
  json.line_objects("renames", comparison.renames, [&](const model::RenameOffer& offer) {
    json.field("side", static_cast<std::int64_t>(offer.side));
    json.field("from", offer.from);
    json.field("to", offer.to);
    json.field("reason", offer.reason);
  });
  json.objects("kernels", comparison.kernels, [&](const model::ComparedKernel& kernel) {
    json.field("name", kernel.name);
    json.field("folded", kernel.folded);
    numbers(json, "calls", kernel.calls);
    for (const ComparedValue* value : {&kernel.total, &kernel.per_call}) {
      json.open_object(value->tag);
      value_fields(json, *value);
      json.close();
    }
  });
  json.texts("notes", comparison.notes);
  json.close();
}

void write_comparison_json(const model::Comparison& comparison, const Style&, Sink& sink) {
  JsonWriter json(sink);
  write_comparison_object(comparison, json);
  json.finish();
}

}  // namespace rangescope::report
