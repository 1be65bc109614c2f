// What a recorded session says about the ranges that are to be measured: which kind they are, and which kernels matter
// most.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/analyze.hpp"
#include "base/result.hpp"
#include "model/range_expression.hpp"
#include "model/session.hpp"

namespace rangescope::profile {

/// Is the region one of the ranges that the expression names?
[[nodiscard]] bool names_region(const model::RangeExpression& expression, const model::Region& region);

/// Expressions in ncu's grammar out of written ones. Where a written form does not say push/pop or start/end, the form
/// that `session` has such a range of is taken; without a session, or without such a range, both. Notes say each
/// change.
[[nodiscard]] base::Result<std::vector<std::string>> resolve_expressions(std::span<const std::string> written,
                                                                         const model::Session* session,
                                                                         std::vector<std::string>& notes);

/// Is some range that the expression names in the session registered as a string? Nothing when there is no such range.
[[nodiscard]] std::optional<bool> is_registered(const model::Session& session, std::string_view expression);

/// Those of the expressions that no measurement of the session is of.
[[nodiscard]] std::vector<std::string> unmeasured(const model::Session& session,
                                                  const std::vector<std::string>& expressions);

struct ChosenKernel {
  std::string name;     ///< function name, as ncu's --kernel-name-base function
  double total_ns = 0;  ///< GPU time within the ranges
  std::int64_t calls = 0;
};
/// The `most` functions with the most GPU time within the ranges (everywhere when there are no expressions).
[[nodiscard]] base::Result<std::vector<ChosenKernel>> choose_kernels(const model::Session& session,
                                                                     const std::vector<std::string>& expressions,
                                                                     const analyze::Options& options, std::size_t most);

}  // namespace rangescope::profile
