// Parts of the JSON report that the data of the HTML page has too, in the same form.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::report {

void write_run(JsonWriter& json, const model::RunInfo& run);
void write_processes(JsonWriter& json, const std::vector<model::ReportProcess>& list);
void write_devices(JsonWriter& json, const model::Report& report);
void write_losses(JsonWriter& json, const std::vector<model::Loss>& list);
/// "metrics": {NAME: {"value": N, "unit": ...}}
void write_metrics(JsonWriter& json, const std::map<std::string, model::Metric>& map);
/// [{"kind": "host_to_device", "calls": N, "bytes": N, "total_ns": N}]
void write_copies(JsonWriter& json, std::string_view name, const std::vector<model::CopyRow>& rows);
void write_bound(JsonWriter& json, const base::Held<model::Bound>& bound);
void write_utilization(JsonWriter& json, const base::Held<model::Utilization>& value);
void write_roofline(JsonWriter& json, const std::vector<model::RooflinePoint>& points);

}  // namespace rangescope::report
