// What used the memory of the GPUs, as a document and as JSON: at the peak by use and owner, and
// over time.
#pragma once

#include <vector>

#include "model/report.hpp"
#include "report/document/document.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::report {

/// A section for each allocator of a device: its peak, and the largest parts of it. At most `most`
/// rows each.
[[nodiscard]] std::vector<Section> memory_sections(const model::Report& report, std::size_t most);

/// "memory": [{"pid": 1, "device": 0, "peak_bytes": N, "at_peak": [...], "parts": [...], "points":
/// [...]}]; nothing where no allocator was recorded.
void write_memory(JsonWriter& json, const model::Report& report);

}  // namespace rangescope::report
