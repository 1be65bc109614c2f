// The file that tells the injected library which counters to collect of which ranges (format:
// inject/counters/plan.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/range_expression.hpp"

namespace rangescope::collect::native {

struct CounterRequest {
  std::vector<std::string> metrics;           ///< CUPTI metrics, resolved for the chip
  std::vector<std::string> include, exclude;  ///< range expressions in ncu's grammar
  std::string per = "range";                  ///< range, kernel, both
  std::uint32_t rounds = 5;
  std::int32_t skip_first = -1;   ///< -1: until the duration has settled
  std::uint32_t trace_first = 3;  ///< occurrences for the timeline before counters begin
};

/// The text of the plan. kUsage for an expression that cannot be carried over (a regular expression that POSIX does not
/// understand), for more than 512 metrics or 64 expressions, and without include expressions.
[[nodiscard]] base::Result<std::string> counter_plan(const CounterRequest& request);

}  // namespace rangescope::collect::native
