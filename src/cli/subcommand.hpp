// One verb of the command line. app.cpp lists them all.
//
// To add one: cmd_<name>.cpp with a class and its make_<name>(), one word in app.cpp, its help in
// arguments.tsv. Help, the man page and the completion follow from what options() declares.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/arguments.hpp"

namespace rangescope::cli {

class Subcommand {
 public:
  explicit Subcommand(std::string_view name, bool takes_program = false)
      : name_(name), takes_program_(takes_program) {}
  virtual ~Subcommand() = default;
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] const CommandHelp& help() const { return help_for(std::string(name_)); }
  /// Declares its options; values go into members of the subcommand.
  virtual void options(const Arguments& app) = 0;
  /// True when it runs a program, which then ends the line, behind `--` or not; set_program() is
  /// called before run().
  [[nodiscard]] bool takes_program() const { return takes_program_; }
  /// Only behind `--`: words without it are its own.
  [[nodiscard]] virtual bool needs_separator() const { return false; }
  void set_program(std::vector<std::string> argv) { program_ = std::move(argv); }
  /// Runs it. The exit code, or a failure, which is printed and gives the code.
  [[nodiscard]] virtual base::Result<int> run() = 0;

 protected:
  std::vector<std::string> program_;

 private:
  std::string_view name_;
  bool takes_program_;
};

// The makers of all subcommands; each is in its cmd_*.cpp.

using MakeSubcommand = std::unique_ptr<Subcommand>();
MakeSubcommand make_profile, make_attach, make_ctl, make_report, make_compare, make_gate,
    make_query, make_export, make_runs, make_config, make_metrics, make_doctor, make_mcp, make_help;

}  // namespace rangescope::cli
