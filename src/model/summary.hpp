// Totals by name, from inputs that have no timeline: tables of `nsys stats` and rocprof, profiles
// of Proton.
//
// Nothing here says when something ran or what lay inside what; analyze makes flat regions of it
// and leaves the rest out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/gpu.hpp"
#include "model/range.hpp"
#include "model/strings.hpp"

namespace rangescope::model {

/// Distribution as printed; absent where the tool's version did not print it. nanoseconds.
struct SummarySpread {
  std::optional<double> mean, median, min, max, stddev;
};

/// All occurrences of ranges of one name.
struct RangeSummary {
  StringId domain = 0;  ///< "" is the default domain
  StringId name = 0;
  RangeKind kind = RangeKind::kPushPop;
  std::int64_t occurrences = 0;    ///< -1 where unknown
  std::optional<double> total_ns;  ///< absent where only the projection onto the GPU is known
  SummarySpread per_occurrence_ns;
  std::optional<double> gpu_span_ns;  ///< sum of projections: first start to last end on the GPU
  std::optional<std::int64_t> gpu_operations;
};

/// All executions of one kernel, in the whole run or inside ranges of one name.
struct KernelSummary {
  bool in_range = false;  ///< else of the whole run
  bool outside = false;   ///< in_range: launched outside every range
  StringId domain = 0, range = 0;
  RangeKind kind = RangeKind::kPushPop;
  StringId name = 0;
  std::int64_t calls = 0;
  double total_ns = 0;
  SummarySpread duration_ns;
  std::int64_t occurrences = 0;    ///< of the range, as this table says
  std::uint32_t pid = 0, tid = 0;  ///< 0 where the table does not say
};

/// All copies of one kind (or sets) of the whole run.
struct CopySummary {
  CopyKind kind = CopyKind::kUnknown;
  bool memset = false;
  std::int64_t calls = 0;
  double total_ns = 0;
  double bytes = 0;  ///< NaN where unknown
};

/// All calls of one function of the GPU's API.
struct CallSummary {
  StringId name = 0;
  std::int64_t calls = 0;
  double total_ns = 0;
};

struct Summary {
  std::vector<RangeSummary> ranges;
  std::vector<KernelSummary> kernels;
  std::vector<CopySummary> copies;
  std::vector<CallSummary> calls;
  std::map<StringId, std::vector<StringId>>
      paths;  ///< of ranges inside others: the names from the outermost one
  [[nodiscard]] bool empty() const {
    return ranges.empty() && kernels.empty() && copies.empty() && calls.empty();
  }
};

}  // namespace rangescope::model
