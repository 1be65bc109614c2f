// The configuration of one run: one nested map, made of layers. Each layer is laid over those
// before it: maps merge key by key, any other value replaces the earlier one.
//
//   1. conf/config.yaml: every key with its default
//   2. the chosen option of each group: ncu=quick, or `ncu: quick` in a file, is the file
//      ncu/quick.yaml of a --config-dir or of conf/
//   3. config.yaml of each --config-dir, in order
//   4. rangescope.yaml of the project
//   5. each --config file, in order
//   6. environment variables: RANGESCOPE__RUN__KEEP=5 is run.keep=5
//   7. the command line, overrides and flags in order
//
// All files have one form: keys nested from the root. The option of a group that was chosen last
// counts, wherever it was chosen; options lie over each other in the order in which their groups
// were first chosen. Every value remembers its origin. Once all layers are merged, interpolations
// are resolved and types are checked.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/layer.hpp"
#include "config/override.hpp"
#include "config/schema.hpp"
#include "config/value.hpp"

namespace rangescope::config {

/// Everything that composition looks at; nothing else is read.
struct Inputs {
  std::filesystem::path shipped;                    ///< conf/
  std::vector<std::filesystem::path> config_dirs;   ///< --config-dir
  std::vector<std::filesystem::path> config_files;  ///< --config
  std::optional<std::filesystem::path>
      project_file;                                ///< rangescope.yaml, found by find_project_file
  bool project_trusted = false;                    ///< it may say what is run (config/trust.hpp)
  std::map<std::string, std::string> environment;  ///< all of it: for RANGESCOPE__* and ${env:...}
  std::vector<Override> overrides;                 ///< in command line order
  std::chrono::system_clock::time_point now;
};

/// One assignment of a key, in the order in which they happened.
struct Assignment {
  std::string key;
  std::string value;  ///< flow style, before interpolation
  Origin origin;
};

/// Which option a configuration group has, and who chose it.
struct Choice {
  std::string group;
  std::string option;  ///< "" when none
  Origin origin;
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
  /// The place that set the key.
  [[nodiscard]] Origin origin(std::string_view path) const;
  /// True when somebody above the shipped files set it.
  [[nodiscard]] bool set_by_user(std::string_view path) const;
};

[[nodiscard]] base::Result<Config> compose(const Inputs& inputs);

/// conf/ of this program: $RANGESCOPE_CONF, else that of the build or installation of the
/// executable `self`. kNoInput with the places that were looked at.
[[nodiscard]] base::Result<std::filesystem::path> find_conf(
    const std::filesystem::path& self, const std::map<std::string, std::string>& environment);
/// conf/ of this very program and environment.
[[nodiscard]] base::Result<std::filesystem::path> shipped_folder();
/// rangescope.yaml in `from` or the nearest parent that has one, not above a folder with .git nor
/// above `home`.
[[nodiscard]] std::optional<std::filesystem::path> find_project_file(
    const std::filesystem::path& from, const std::filesystem::path& home);

/// The groups of user folders and conf/ together.
[[nodiscard]] Groups groups(const Inputs& inputs);

/// `config explain KEY`: type, meaning, flag, value, who set it and whom it overrode. kConfig for
/// an unknown key.
[[nodiscard]] base::Result<std::string> explain(const Config& config, std::string_view key);

}  // namespace rangescope::config
