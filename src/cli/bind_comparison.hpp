// Options that compare and gate share.
#pragma once

#include <string>
#include <vector>

#include "analyze/compare.hpp"
#include "base/result.hpp"
#include "cli/arguments.hpp"

namespace rangescope::cli {

/// --metric, --region, --include, --exclude, --rename
void bind_comparison(const Arguments& app, analyze::CompareOptions& options, std::vector<std::string>& renames);
/// Expressions into ncu's grammar, and renames into the options. kUsage.
[[nodiscard]] base::Result<void> finish_comparison(analyze::CompareOptions& options,
                                                   const std::vector<std::string>& renames);

}  // namespace rangescope::cli
