// Finds nsys and ncu, and asks each installed version once what it can do.
//
// The answer is kept in $XDG_CACHE_HOME/rangescope/tools (~/.cache/...), one file for each executable, and asked for
// again when the executable's size or time changes. Asking costs half a second, reading the cache a millisecond.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collect/nsight/abilities.hpp"

namespace rangescope::collect {

/// Where to look; all of it given, so that a test can give its own.
struct ToolSearch {
  std::map<std::string, std::string>
      environment;                   ///< PATH, RANGESCOPE_NSYS, RANGESCOPE_NCU, CUDA_HOME, XDG_CACHE_HOME, HOME
  std::string configured;            ///< pipeline.*.path; goes before everything else
  std::filesystem::path root = "/";  ///< of /opt/nvidia, /usr/local and /usr/lib
};
[[nodiscard]] ToolSearch tool_search();

/// Every place of `tool` ("nsys", "ncu") that holds one, the one to use first: configured path, $RANGESCOPE_NSYS or
/// $RANGESCOPE_NCU, PATH, /opt/nvidia (newest first), CUDA toolkits (newest first), Debian's /usr/lib.
[[nodiscard]] std::vector<std::filesystem::path> find_tools(std::string_view tool, const ToolSearch& search);

/// The first of them, probed. kToolMissing with the places that were looked at; kConfig when the place that the user
/// named holds none; kToolMissing when it does not run (the missing library is named).
[[nodiscard]] base::Result<Abilities> probe_tool(std::string_view tool, const ToolSearch& search);

/// Asks one executable, past the cache.
[[nodiscard]] base::Result<Abilities> ask_tool(std::string_view tool, const std::filesystem::path& path);

/// Fills `metrics` of ncu's abilities (of the GPUs here, else of every chip it knows) and keeps them in the cache.
/// Costs seconds the first time; leaves them empty where ncu cannot say.
void probe_metrics(Abilities& ncu, const ToolSearch& search);

/// QdstrmImporter that belongs to this nsys, or nothing.
[[nodiscard]] std::optional<std::filesystem::path> find_importer(const std::filesystem::path& nsys);

}  // namespace rangescope::collect
