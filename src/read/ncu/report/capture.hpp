// How a report was collected, from the ncu command line that it records: replay mode, NVTX filters, clock and cache
// control.
//
// The recorded line is words joined by blanks, without quotes: a filter with blanks in it cannot be told from two
// words. Then no filter matches, and the innermost open range stands in for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/range_expression.hpp"
#include "read/ncu/report/decode.hpp"

namespace rangescope::read::ncu_report {

/// The NVTX range that a range result measured; exactly one of the two is set.
struct OwnRange {
  const NvtxThread* thread = nullptr;   ///< of push_pop
  const NvtxRange* push_pop = nullptr;  ///< an element of thread->stack
  const NvtxRange* start_end = nullptr;
};

struct Capture {
  std::string replay_mode;  ///< "kernel", "application", "range", "app-range"
  std::string clock_control, cache_control;
  std::vector<std::string> nvtx_include;        ///< as written
  std::vector<model::RangeExpression> filters;  ///< those of nvtx_include that parse
  std::string note;                             ///< what a reader of the numbers must know

  /// The outermost open range that an include filter names: where the filter began to match the range began. Without
  /// a filter none; with filters of which none matches, the innermost one open.
  [[nodiscard]] std::optional<OwnRange> own_range(const NvtxState& state, std::uint64_t tid) const;
};

[[nodiscard]] Capture read_capture(std::string_view command_line);

}  // namespace rangescope::read::ncu_report
