// The configuration of one run, composed in Hydra's manner from files, environment and command line.
//
// Lowest to highest: conf/config.yaml with its defaults list; config.yaml of each --config-dir; the project's
// rangescope.yaml; each --config file in order; environment variables RANGESCOPE__SECTION__KEY; command line overrides
// and flags in their order. A file's own values lie over its defaults list unless `_self_` is elsewhere in it.
// Group files are looked for in the --config-dirs, then in conf/. Every value remembers the place that set it.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/override.hpp"
#include "config/schema.hpp"
#include "config/value.hpp"

namespace rangescope::config {

/// Everything that composition looks at; nothing else is read.
struct Inputs {
  std::filesystem::path shipped;                      ///< conf/
  std::vector<std::filesystem::path> config_dirs;     ///< --config-dir
  std::vector<std::filesystem::path> config_files;    ///< --config
  std::optional<std::filesystem::path> project_file;  ///< rangescope.yaml, found by find_project_file
  bool project_trusted = false;                       ///< it may say what is run (config/trust.hpp)
  std::map<std::string, std::string> environment;     ///< all of it: for RANGESCOPE__* and ${env:...}
  std::vector<Override> overrides;                    ///< in command line order
  std::chrono::system_clock::time_point now;
};

/// One assignment of a key, in the order in which they happened.
struct Assignment {
  std::string key;
  std::string value;  ///< flow style, before interpolation
  std::string where;
};

/// Which option a configuration group has, and who chose it.
struct Choice {
  std::string group;
  std::string package;
  std::string option;  ///< "" when none
  std::string where;
};

struct Config {
  Value root;  ///< resolved and checked against the schema
  std::vector<Assignment> history;
  std::vector<Choice> choices;
  std::vector<std::string> files;  ///< in the order in which they were laid over each other

  /// The value of a key, or nullptr when it is null or not there.
  [[nodiscard]] const Value* get(std::string_view path) const;
  [[nodiscard]] bool flag(std::string_view path, bool fallback = false) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view path) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view path) const;
  [[nodiscard]] std::vector<std::string> list(std::string_view path) const;
  [[nodiscard]] std::map<std::string, std::string> map(std::string_view path) const;
  [[nodiscard]] std::optional<std::chrono::nanoseconds> duration(std::string_view path) const;
  /// The place that set the key; "" when nobody did.
  [[nodiscard]] std::string where(std::string_view path) const;
  /// True when somebody above the shipped files set it.
  [[nodiscard]] bool set_by_user(std::string_view path) const;
};

[[nodiscard]] base::Result<Config> compose(const Inputs& inputs);

/// conf/ of this program: $RANGESCOPE_CONF, else beside the build or installation of the executable `self`. kNoInput
/// with the places that were looked at.
[[nodiscard]] base::Result<std::filesystem::path> find_conf(const std::filesystem::path& self,
                                                            const std::map<std::string, std::string>& environment);
/// conf/ of this very program and environment.
[[nodiscard]] base::Result<std::filesystem::path> shipped_folder();
/// rangescope.yaml in `from` or the nearest parent that has one, not above a folder with .git nor above `home`.
[[nodiscard]] std::optional<std::filesystem::path> find_project_file(const std::filesystem::path& from,
                                                                     const std::filesystem::path& home);

/// The groups that can be chosen, each with its options; user folders and conf/ together.
[[nodiscard]] std::map<std::string, std::vector<std::string>> groups(const Inputs& inputs);

/// `config explain KEY`: type, meaning, flag, value, who set it and whom it overrode. kConfig for an unknown key.
[[nodiscard]] base::Result<std::string> explain(const Config& config, std::string_view key);

}  // namespace rangescope::config
