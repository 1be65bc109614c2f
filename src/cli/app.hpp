// From argv to a subcommand: finds it (or the nearest name), parses its options, runs it.
//
// What follows `--` is the program to run and is never parsed; without `--` the program begins at
// the first word that is neither an option nor its value nor an override. Exit codes:
// base/result.hpp and docs/manual/exit-codes.md.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "cli/print/help.hpp"
#include "cli/subcommand.hpp"

namespace rangescope::cli {

/// What the subcommands declare, as cli/print/help.hpp writes it.
[[nodiscard]] std::vector<HelpCommand> help_of_all();

[[nodiscard]] int run_app(int argc, char** argv);
/// With these commands only.
[[nodiscard]] int run_app(int argc,
                          char** argv,
                          const std::vector<std::unique_ptr<Subcommand>>& commands);

/// The refusal of the first word that was left over, with the nearest name: for commands that let
/// CLI11 leave words over.
[[nodiscard]] base::Error unknown_argument(const CLI::App& app, std::string_view command);

using base::say;
/// To standard output, as it is.
void print(const std::string& text);

/// Text for standard output; 0, or what kept it from being written.
[[nodiscard]] base::Result<int> put(const std::string& text);
/// The same of JSON, as terminals may show it.
[[nodiscard]] base::Result<int> put_json(const nlohmann::json& json);
[[nodiscard]] base::Result<int> put_json(const nlohmann::ordered_json& json);

/// rangescope's own arguments, for manifests.
[[nodiscard]] const std::vector<std::string>& arguments();

/// Was -q given?
[[nodiscard]] bool is_quiet();

}  // namespace rangescope::cli
