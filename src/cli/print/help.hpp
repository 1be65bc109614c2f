// Help, manual pages and completion of shells, written from what the commands declare.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::cli {

/// An option, or a free word, which has no names.
struct HelpOption {
  std::vector<std::string> names;  ///< "-f", "--format"
  std::string value;               ///< "FILE"; of a free word its name; "" where it takes none
  std::string text;
  std::string group;                ///< its title; "" for one that help hides
  std::vector<std::string> values;  ///< all that it takes, where those can be listed
  bool required = false;
  bool several = false;  ///< a free word that may be repeated
  bool run = false;      ///< a free word that may be a run
  bool list = false;     ///< takes several values with commas between
};

/// A word of a command: `show [run]` of `runs`, and what it does.
struct Verb {
  std::string written, summary;
};

struct HelpCommand {
  std::string name, summary, details;
  std::string group;  ///< its title in the list of commands
  std::vector<HelpOption> options;
  std::vector<HelpCommand> words;   ///< `runs`: list, show ..., each with options of its own
  std::vector<Verb> verbs;          ///< `config`: show, explain ..., which share their options
  std::vector<std::string> mainly;  ///< options that --help shows; empty for all
  bool program = false;             ///< a program and its arguments end the line
};

using HelpCommands = std::span<const HelpCommand>;

[[nodiscard]] std::string overview(HelpCommands commands);
/// The words of a command, of either kind.
[[nodiscard]] std::vector<Verb> verbs_of(const HelpCommand& command);
/// A word of a command as a command of its own: `runs prune`.
[[nodiscard]] HelpCommand word_of(const HelpCommand& command, HelpCommand word);
/// "rangescope gate [options] run", of a command or of one of its words (`name`: "runs prune").
[[nodiscard]] std::string usage(const HelpCommand& command, const std::string& name);
/// At most 40 lines: what most people need. `all`: every option, and the whole text.
[[nodiscard]] std::string help_text(const HelpCommand& command, bool all);
/// rangescope(1)
[[nodiscard]] std::string man_overview(HelpCommands commands);
/// rangescope-<name>(1)
[[nodiscard]] std::string man_page(const HelpCommand& command);
/// The script that completes commands, options, values, runs and metric groups for "bash", "zsh" or
/// "fish".
[[nodiscard]] std::string completion(HelpCommands commands, std::string_view shell);

/// The values that a table of regions can show.
[[nodiscard]] std::string columns_page();

}  // namespace rangescope::cli
