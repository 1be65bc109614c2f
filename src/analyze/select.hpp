// What is chosen: range expressions pick regions, kernel patterns pick kernels. Choosing never changes a number of what
// stays, except that kernel patterns also restrict the totals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/analyze.hpp"
#include "analyze/tree.hpp"
#include "model/range_expression.hpp"

namespace rangescope::analyze {

/// Does the expression choose a region of this state? A start/end region stands for every range that the expression
/// names ('A,B' picks A and B).
[[nodiscard]] bool matches(const model::RangeExpression& expression, const model::RangeState& state);

/// For each node, whether its region is shown: some include expression matches the region's own state (or there is
/// none) and no exclude expression does. `decode/` so picks every region named decode and all that is below one. kUsage
/// for an expression that cannot be parsed; kNothingCaptured, with the nearest expressions, when no region is left
/// though there were ranges or expressions. Expressions that matched nothing beside others that did become notes.
[[nodiscard]] base::Result<std::vector<char>> select_nodes(const Tree& tree, const model::Session& session,
                                                           const Options& options, std::vector<std::string>& notes);

/// For each entry of Session::kernel_names, whether its kernels count. A pattern is an exact demangled, short or
/// mangled name or `regex:` and an RE2 expression that is searched for in the demangled and the short name; exclude
/// wins. kUsage and kNothingCaptured as above.
[[nodiscard]] base::Result<std::vector<char>> select_kernels(const model::Session& session, const Options& options,
                                                             std::vector<std::string>& notes);

}  // namespace rangescope::analyze
