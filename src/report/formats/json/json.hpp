// JSON for machines: the whole report, schema rangescope.report/1 (docs/formats/report-json.md). Written as a stream:
// memory does not grow with the report.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::unique_ptr<Exporter> make_json();
/// The same, one object a line.
[[nodiscard]] std::unique_ptr<Exporter> make_jsonl();

}  // namespace rangescope::report
