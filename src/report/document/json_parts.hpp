// Objects that the JSON report and the data of the HTML page share.
#pragma once

#include <string>
#include <string_view>

#include "model/report.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::report {

/// A text, null where it is "".
void optional_text(JsonWriter& json, std::string_view name, const std::string& text);
/// {"kind": "host_to_device", "calls": N, "bytes": N, "total_ns": N}
void write_copy_row(JsonWriter& json, const model::CopyRow& row);
/// {"kind": "memory", "reason": "..."}
void write_bound(JsonWriter& json, const model::Bound& bound);
/// {"level": "dram", "precision": "fp32", "flops": N, ..., ROOF: N}; the page calls its roof by a shorter name.
void write_roofline_point(JsonWriter& json, const model::RooflinePoint& point, std::string_view roof);

}  // namespace rangescope::report
