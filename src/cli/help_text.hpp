// What the subcommands declare, as pages/help.hpp writes it.
#pragma once

#include "cli/subcommand.hpp"
#include "pages/help.hpp"

namespace rangescope::cli {

[[nodiscard]] pages::HelpCommand help_of(const Subcommand& command, const CLI::App& app);
[[nodiscard]] std::vector<pages::HelpCommand> help_of_all();

}  // namespace rangescope::cli
