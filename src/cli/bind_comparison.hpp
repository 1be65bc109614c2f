// Options that compare and gate share.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "analyze/compare.hpp"
#include "base/result.hpp"

namespace rangescope::cli {

/// --metric, --region, --include, --exclude, --rename
void bind_comparison(CLI::App& app, analyze::CompareOptions& options, std::vector<std::string>& renames);
/// Expressions into ncu's grammar, and renames into the options. kUsage.
[[nodiscard]] base::Result<void> finish_comparison(analyze::CompareOptions& options,
                                                   const std::vector<std::string>& renames);

}  // namespace rangescope::cli
