// The configuration's part of a command line: overrides (`key=value`, `+key=value`, `~key`,
// `group=option`), the flags that are aliases of keys, --config, --config-dir, --no-project.
//
// Flags and overrides meet in one composed configuration, in the order in which they stand on the
// command line; each value remembers its argument.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/arguments.hpp"
#include "config/compose.hpp"

namespace rangescope::cli {

class ConfigArguments {
 public:
  /// Declares everything; `overrides` stand as free words. `aliases` false leaves the flags of keys
  /// out; `only`: all but these, and but those that others declared.
  void options(const Arguments& app,
               bool aliases = true,
               const std::vector<std::string_view>& only = {});
  /// Composes. `program` (what stood behind --) becomes workload.command unless it is empty. A
  /// gated recording switches nsys on, and that is said.
  [[nodiscard]] base::Result<config::Config> compose(const std::vector<std::string>& program) const;
  /// Sets the options that others declared to the configuration's values of their keys, from
  /// whichever source these came.
  [[nodiscard]] base::Result<void> apply(const config::Config& config) const;
  /// The same inputs, for `config groups`.
  [[nodiscard]] base::Result<config::Inputs> inputs(const std::vector<std::string>& program) const;
  /// Free words that are no overrides; `config explain KEY` takes one.
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  void set_words(std::vector<std::string> words) { words_ = std::move(words); }

 private:
  [[nodiscard]] base::Result<void> add_project_file(config::Inputs& in) const;
  [[nodiscard]] base::Result<void> add_named_files(config::Inputs& in) const;
  [[nodiscard]] base::Result<void> add_overrides(config::Inputs& in) const;

  Arguments app_;
  bool aliases_ = true;
  std::vector<std::string> words_, config_files_, config_dirs_;
  std::vector<std::string> bound_;  ///< flags of keys that others declared
  bool no_project_ = false;
};

}  // namespace rangescope::cli
