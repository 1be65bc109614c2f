// rangescope.compare/1: docs/formats/compare-json.md.
#include "model/measure.hpp"
#include "report/comparison/formats.hpp"
#include "report/json_writer.hpp"
#include "report/view.hpp"

namespace rangescope::report {
namespace {

using model::Change;
using model::ComparedValue;

void numbers(JsonWriter& json, std::string_view name, const std::vector<std::optional<double>>& list) {
  json.key(name);
  json.open_array(true);
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
  json.key("changes");
  json.open_array();
  for (const Change& change : value.changes) {
    json.open_line_object();
    json.field("standing", model::standing_name(change.standing));
    json.field("difference", change.difference);
    optional(json, "ratio", change.ratio);
    optional(json, "low", change.low);
    optional(json, "high", change.high);
    change.low ? json.field("confidence", change.confidence) : json.null_field("confidence");
    optional(json, "p", change.p);
    json.field("why", change.why);
    json.close();
  }
  json.close();
}

void region(JsonWriter& json, const model::ComparedRegion& one) {
  json.open_object();
  json.texts("path", one.path);
  json.field("domain", one.domain);
  json.field("kind", kind_name(one.kind));
  one.renamed_from.empty() ? json.null_field("renamed_from") : json.field("renamed_from", one.renamed_from);
  numbers(json, "occurrences", one.occurrences);
  json.key("values");
  json.open_object();
  for (const ComparedValue& value : one.values) {
    json.key(value.tag);
    json.open_object();
    value_fields(json, value);
    json.close();
  }
  json.close();
  if (!one.functions.empty()) {
    json.key("functions");
    json.open_array();
    for (const model::ComparedFunction& function : one.functions) {
      json.open_object();
      json.field("name", function.name);
      json.field("python", function.python);
      numbers(json, "share", function.share);
      json.key("self_ns");
      json.open_object();
      value_fields(json, function.self);
      json.close();
      json.close();
    }
    json.close();
  }
  json.close();
}

}  // namespace

void write_comparison_object(const model::Comparison& comparison, JsonWriter& json) {
  json.open_object();
  json.field("schema", "rangescope.compare/1");
  json.key("sides");
  json.open_array();
  for (const model::ComparedSide& side : comparison.sides) {
    json.open_object();
    json.field("label", side.label);
    json.field("runs", static_cast<std::int64_t>(side.runs));
    json.texts("command", side.command);
    json.texts("devices", side.devices);
    json.field("duration_ns", side.duration_ns);
    json.field("failed", static_cast<std::int64_t>(side.failed));
    json.close();
  }
  json.close();
  json.field("noise", comparison.noise);
  json.field("method", comparison.method);
  json.field("alpha", comparison.alpha);
  json.field("tests", static_cast<std::int64_t>(comparison.tests));
  json.key("environment");
  json.open_array();
  for (const model::EnvironmentDifference& difference : comparison.environment) {
    json.open_line_object();
    json.field("what", difference.what);
    json.texts("values", difference.values);
    json.field("heavy", difference.heavy);
    json.close();
  }
  json.close();
  for (const auto& [name, list] : {std::pair{"regions", &comparison.regions}, {"missing", &comparison.missing}}) {
    json.key(name);
    json.open_array();
    for (const model::ComparedRegion& one : *list) region(json, one);
    json.close();
  }
  json.key("renames");
  json.open_array();
  for (const model::RenameOffer& offer : comparison.renames) {
    json.open_line_object();
    json.field("side", static_cast<std::int64_t>(offer.side));
    json.field("from", offer.from);
    json.field("to", offer.to);
    json.field("reason", offer.reason);
    json.close();
  }
  json.close();
  json.key("kernels");
  json.open_array();
  for (const model::ComparedKernel& kernel : comparison.kernels) {
    json.open_object();
    json.field("name", kernel.name);
    json.field("folded", kernel.folded);
    numbers(json, "calls", kernel.calls);
    for (const ComparedValue* value : {&kernel.total, &kernel.per_call}) {
      json.key(value->tag);
      json.open_object();
      value_fields(json, *value);
      json.close();
    }
    json.close();
  }
  json.close();
  json.texts("notes", comparison.notes);
  json.close();
}

void write_comparison_json(const model::Comparison& comparison, const Style&, Sink& sink) {
  JsonWriter json(sink);
  write_comparison_object(comparison, json);
  json.finish();
}

}  // namespace rangescope::report
