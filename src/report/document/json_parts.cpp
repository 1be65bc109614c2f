#include "report/document/json_parts.hpp"

#include "report/document/view.hpp"

namespace rangescope::report {

void write_copy_row(JsonWriter& json, const model::CopyRow& row) {
  json.open_line_object();
  json.field("kind", copy_kind_name(row.kind));
  json.field("calls", row.calls);
  json.field("bytes", row.bytes);
  json.field("total_ns", row.total_ns);
  json.close();
}

void write_bound(JsonWriter& json, const model::Bound& bound) {
  json.open_line_object();
  json.field("kind", bound.kind);
  json.field("reason", bound.reason);
  json.close();
}

void write_roofline_point(JsonWriter& json, const model::RooflinePoint& point, std::string_view roof) {
  json.open_line_object();
  json.field("level", point.level);
  json.field("precision", point.precision);
  json.field("flops", point.flops);
  json.field("bytes", point.bytes);
  json.field("intensity", point.intensity);
  json.field("flop_per_s", point.flop_per_s);
  json.field(roof, point.roof_flop_per_s);
  json.field("peak_flop_per_s", point.peak_flop_per_s);
  json.field("peak_bytes_per_s", point.peak_bytes_per_s);
  json.close();
}

void optional_text(JsonWriter& json, std::string_view name, const std::string& text) {
  text.empty() ? json.null_field(name) : json.field(name, text);
}

}  // namespace rangescope::report
