// What an installed nsys or ncu can do, as plain data: version, options with their values, sets,
// sections, metrics.
//
// Parsed from the tool's own output (`--version`, `--help`, `--list-sets`, `--list-sections`,
// `--query-metrics`), never guessed from the version, so that unknown versions are driven by
// what they report. The texts' layout is that of ncu 2020.3 to 2026.1 and nsys 2020.4
// to 2026.1.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/nsight.hpp"
#include "base/result.hpp"

namespace rangescope::collect {

using base::parse_version;
using base::to_string;
using Version = base::ToolVersion;

struct Abilities {
  std::string tool;            ///< "ncu" or "nsys"
  std::filesystem::path path;  ///< the executable
  Version version;
  std::string version_text;  ///< as the tool says it
  std::map<std::string, std::vector<std::string>>
      options;  ///< long option -> values that its help lists, maybe none
  std::map<std::string, std::vector<std::string>> sets;  ///< ncu: set -> its sections
  std::string default_set;                               ///< ncu: "basic" or "default"
  std::set<std::string> sections;                        ///< ncu
  std::set<std::string> metrics;                         ///< ncu: base names; empty if unknown
  bool metrics_elsewhere =
      false;  ///< `metrics` are those that other versions knew: one that lacks may be there

  [[nodiscard]] bool has(std::string_view option) const {
    return options.count(std::string(option)) > 0;
  }
  /// True when the option exists and takes `value`, or lists no values at all.
  [[nodiscard]] bool takes(std::string_view option, std::string_view value) const;
  [[nodiscard]] std::vector<std::string> option_names() const;
};

/// Long options of `ncu --help`, each with the values that are single words below it.
[[nodiscard]] std::map<std::string, std::vector<std::string>> parse_ncu_help(std::string_view help);
/// Long options of `nsys profile --help`, each with the words after "Possible values are".
[[nodiscard]] std::map<std::string, std::vector<std::string>> parse_nsys_help(
    std::string_view help);
/// `ncu --list-sets`: identifiers, their sections (wrapped lines joined) and which is enabled.
void parse_ncu_sets(std::string_view text, Abilities& into);
[[nodiscard]] std::set<std::string> parse_ncu_sections(std::string_view text);
/// `ncu --query-metrics`: the first column of every table.
[[nodiscard]] std::set<std::string> parse_ncu_metrics(std::string_view text);

/// JSON of the cache file.
[[nodiscard]] std::string to_json(const Abilities& abilities);
[[nodiscard]] base::Result<Abilities> from_json(std::string_view text);

/// The newest version of a tool whose abilities are in this folder (conf/tools), for where none is
/// installed: its path is the tool's bare name, and its metrics are those of ncu-metrics.txt.
/// kNoInput without one.
[[nodiscard]] base::Result<Abilities> newest_known(std::string_view tool,
                                                   const std::filesystem::path& folder);

}  // namespace rangescope::collect
