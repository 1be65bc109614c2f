// Help, man pages and completion, all made from the options that the subcommands declare.
#pragma once

#include <string>

#include "cli/subcommand.hpp"

namespace rangescope::cli {

/// To standard output.
void print_overview();
void print_help(Subcommand& command, const CLI::App& app, bool all);

[[nodiscard]] std::string overview();
[[nodiscard]] std::string help_text(Subcommand& command, const CLI::App& app, bool all);
/// rangescope(1)
[[nodiscard]] std::string man_overview();
/// rangescope-<name>(1)
[[nodiscard]] std::string man_page(Subcommand& command, const CLI::App& app);
/// For bash: commands, options and files.
[[nodiscard]] std::string bash_completion();

}  // namespace rangescope::cli
