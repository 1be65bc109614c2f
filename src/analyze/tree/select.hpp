// What is chosen: range expressions pick regions, kernel patterns pick kernels. Choosing never
// changes a number of what stays, except that kernel patterns also restrict the totals.
#pragma once

#include <string>
#include <vector>

#include "analyze/options.hpp"
#include "analyze/tree/tree.hpp"

namespace rangescope::analyze {

/// For each node, whether its region is shown: some include expression matches the region's own
/// state (or there is none) and no exclude expression does. `decode/` so picks every region named
/// decode and all that is below one. kNothingCaptured, with the nearest expressions, when no region
/// is left though there were ranges or expressions. Where only some expressions matched, each of
/// the others becomes a note.
[[nodiscard]] base::Result<std::vector<char>> select_nodes(const Tree& tree,
                                                           const model::Session& session,
                                                           const Options& options,
                                                           std::vector<std::string>& notes);

/// For each entry of Session::kernel_names, whether its kernels count. kNothingCaptured as above.
[[nodiscard]] base::Result<std::vector<char>> select_kernels(const model::Session& session,
                                                             const Options& options,
                                                             std::vector<std::string>& notes);

}  // namespace rangescope::analyze
