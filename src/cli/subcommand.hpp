// One verb of the command line. subcommands.cpp lists them all.
//
// To add one: cmd_<name>.cpp with a class and its make_<name>(), one line in subcommands.cpp. Help, the man page and
// the completion follow from what options() declares.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.hpp"

namespace rangescope::cli {

class Subcommand {
 public:
  virtual ~Subcommand() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view summary() const = 0;  ///< one line, for the list of commands
  /// What help says below the options: paragraphs and examples, plain text.
  [[nodiscard]] virtual std::string_view details() const { return {}; }
  /// The options that --help shows, by their long names, where there are too many for one screen; --help-all shows all.
  [[nodiscard]] virtual std::vector<std::string_view> main_options() const { return {}; }
  /// Declares its options; values go into members of the subcommand.
  virtual void options(const Arguments& app) = 0;
  /// True when it runs a program, which then ends the line, behind `--` or not; set_program() is called before run().
  [[nodiscard]] virtual bool takes_program() const { return false; }
  virtual void set_program(std::vector<std::string> /*argv*/) {}
  /// Does it. The exit code; everything said was said.
  [[nodiscard]] virtual int run() = 0;
};

/// Every subcommand, in the order in which help lists them.
[[nodiscard]] std::vector<std::unique_ptr<Subcommand>> subcommands();

}  // namespace rangescope::cli
