// Finds nsys and ncu, and asks each installed version once what it can do.
//
// The answer is kept in $XDG_CACHE_HOME/rangescope/tools (~/.cache/...), one file for each
// executable, and asked for again when the executable's size or time changes. Asking costs half a
// second, reading the cache a millisecond.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/nsight.hpp"
#include "base/result.hpp"
#include "collect/nsight/abilities.hpp"

namespace rangescope::collect {

using base::find_importer;
using base::find_tools;
using base::tool_search;
using base::ToolSearch;

/// The first tool that is found, probed. kToolMissing with the places that were looked at; kConfig
/// when the place that the user named holds none; kToolMissing when it does not run (the missing
/// library is named).
[[nodiscard]] base::Result<Abilities> probe_tool(std::string_view tool, const ToolSearch& search);

/// Asks one executable, past the cache.
[[nodiscard]] base::Result<Abilities> ask_tool(std::string_view tool,
                                               const std::filesystem::path& path);

/// Fills `metrics` of ncu's abilities (of the GPUs here, else of every chip it knows) and keeps
/// them in the cache. Costs seconds the first time; leaves them empty where ncu cannot say.
void probe_metrics(Abilities& ncu, const ToolSearch& search);

}  // namespace rangescope::collect
