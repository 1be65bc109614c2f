// What a recorded session knows of the ranges and kernels that options name, without a full
// report: which kind the ranges are, whether nsys could gate on them, what was measured, and which
// kernels take most of their time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/options.hpp"
#include "base/result.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Where a term does not say push/pop or start/end, keeps the form that a range of the session
/// has; both where ranges have neither or both. Notes say which.
void settle_kinds(model::RangeSelection& ranges,
                  const model::Session& session,
                  std::vector<std::string>& notes);

/// Is every range that the term names a registered string? Absent where the session has no such
/// range.
[[nodiscard]] std::optional<bool> is_registered(const model::Session& session,
                                                const model::RangeTerm& term);

/// The included terms without a measurement in the session.
[[nodiscard]] std::vector<model::RangeTerm> unmeasured(const model::Session& session,
                                                       const model::RangeSelection& ranges);

/// The included terms, as written, without a region in the report.
[[nodiscard]] std::vector<std::string> unmatched(const model::Report& report,
                                                 const model::RangeSelection& ranges);

struct ChosenKernel {
  std::string name;     ///< function name, as ncu's --kernel-name-base function
  double total_ns = 0;  ///< GPU time within the ranges
  std::int64_t calls = 0;
};
/// The `most` functions with the most GPU time within options.ranges, or everywhere where nothing
/// is included.
[[nodiscard]] base::Result<std::vector<ChosenKernel>> top_kernels(const model::Session& session,
                                                                  Options options,
                                                                  std::size_t most);

}  // namespace rangescope::analyze
