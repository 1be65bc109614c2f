// Memory of the GPUs as a document and as JSON: the peak by use and owner, and the use over time.
#pragma once

#include <optional>
#include <vector>

#include "model/report.hpp"
#include "report/document/document.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::report {

/// A section for each allocator of a device: its peak and the largest `max_parts` parts of it.
[[nodiscard]] std::vector<Section> memory_sections(const model::Report& report,
                                                   std::size_t max_parts);

/// "memory": [{"pid": 1, "device": 0, "peak_bytes": N, "at_peak": [...], "parts": [...], "points":
/// [...]}]; nothing if no allocator was recorded.
void write_memory(JsonWriter& json, const model::Report& report);

/// Memory that the program allocated from CUDA itself, by kind; nothing without such calls.
[[nodiscard]] std::optional<Section> cuda_memory_section(const model::Report& report);

/// "cuda_memory": [{"pid": 1, "device": 0, "kind": "device", "allocations": N, ...}]; nothing
/// without such calls.
void write_cuda_memory(JsonWriter& json, const model::Report& report);

}  // namespace rangescope::report
