// Where Nsight Systems and Nsight Compute are installed, and their versions.
#pragma once

#include <compare>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::base {

/// 2025.3.1; unknown is 0.0.0.
struct ToolVersion {
  int year = 0, release = 0, patch = 0;
  auto operator<=>(const ToolVersion&) const = default;
};
[[nodiscard]] std::string to_string(const ToolVersion& version);
/// The first `2025.3.1`-like group of a text ("Version 2025.3.1.0 (build 36398880)", "version
/// 2025.3.1.90-..."), also with '@' for '.', as nsys's reports write it.
[[nodiscard]] ToolVersion parse_version(std::string_view text);

/// Where to look; all of it given, so that a test can give its own.
struct ToolSearch {
  std::map<std::string, std::string>
      environment;  ///< PATH, RANGESCOPE_NSYS, RANGESCOPE_NCU, CUDA_HOME, XDG_CACHE_HOME, HOME
  std::string configured;            ///< pipeline.*.path; goes before everything else
  std::filesystem::path root = "/";  ///< of /opt/nvidia, /usr/local and /usr/lib

  /// "" for a variable that is not set.
  [[nodiscard]] std::string variable(const std::string& name) const;
};
[[nodiscard]] ToolSearch tool_search();

/// Every place of `tool` ("nsys", "ncu") that holds one, the one to use first: configured path,
/// $RANGESCOPE_NSYS or $RANGESCOPE_NCU, PATH, /opt/nvidia (newest first), CUDA toolkits (newest
/// first), Debian's /usr/lib.
[[nodiscard]] std::vector<std::filesystem::path> find_tools(std::string_view tool,
                                                            const ToolSearch& search);

/// QdstrmImporter of the installation that this nsys belongs to, or nothing.
[[nodiscard]] std::optional<std::filesystem::path> find_importer(const std::filesystem::path& nsys);

}  // namespace rangescope::base
