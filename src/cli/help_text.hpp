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
/// The script that completes our commands, options, values, runs and metric groups: "bash", "zsh" or "fish".
[[nodiscard]] std::string completion(std::string_view shell);

}  // namespace rangescope::cli
