// What the subcommands declare, as cli/print/help.hpp writes it.
#pragma once

#include "cli/print/help.hpp"
#include "cli/subcommand.hpp"

namespace rangescope::cli {

[[nodiscard]] HelpCommand help_of(const Subcommand& command, const CLI::App& app);
[[nodiscard]] std::vector<HelpCommand> help_of_all();

}  // namespace rangescope::cli
