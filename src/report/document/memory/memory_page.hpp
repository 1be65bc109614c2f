// What used the memory of the GPUs, as a document and as JSON: at the peak by use and owner, and
// over time.
#pragma once

#include <optional>
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

/// What the program took from CUDA itself, by kind; nothing where no such call was recorded.
[[nodiscard]] std::optional<Section> cuda_memory_section(const model::Report& report);

/// "cuda_memory": [{"pid": 1, "device": 0, "kind": "device", "allocations": N, ...}]; nothing where
/// no such call was recorded.
void write_cuda_memory(JsonWriter& json, const model::Report& report);

}  // namespace rangescope::report
