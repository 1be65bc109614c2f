// A command line of ncu or nsys, parsed: what precedes the tool, its options with their values, the
// program.
//
// Options are recognised as the tools do it: long and short, `--option value`, `--option=value`,
// `-kvalue`, and unambiguous prefixes of long options (`--nvtx-incl`). The first word that is not
// an option is the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collect/nsight/explain/shell.hpp"
#include "collect/nsight/options.hpp"

namespace rangescope::collect::command {

/// One option of the line.
struct Argument {
  std::string name;           ///< "--nvtx-include": in full, also for `-k` or `--nvtx-incl`
  std::string written;        ///< as written, without its value
  std::optional<Word> value;  ///< absent if it takes none, or is missing
  bool joined = false;        ///< one word: `--set=full`, `-kfoo`
  bool is_known = true;       ///< false if the tool is known to lack it
  std::size_t place = 0;      ///< index of its word in the line that was parsed

  [[nodiscard]] std::string shown() const;
  /// The text of its value; "" without one.
  [[nodiscard]] std::string value_text() const {
    if (!value)
      return {};
    return value->text;
  }
};

struct CommandLine {
  std::vector<Word> before;  ///< CUDA_VISIBLE_DEVICES=0, sudo, mpirun -np 4
  Word executable;           ///< as written
  std::string tool;          ///< "ncu" or "nsys"
  std::string verb;          ///< of nsys: "profile"; "" without one
  std::vector<Argument> arguments;
  std::vector<Word> program;
  bool double_dash = false;    ///< `--` before the program
  std::size_t program_at = 0;  ///< index of the program's first word in the line that was parsed
  std::string after;           ///< "> log 2>&1 | tee x"
  bool next_line = false;      ///< `after` is a separate command

  /// The tool in the table of options: also "nsys stats", "nsys export".
  [[nodiscard]] std::string table() const {
    if (verb == "stats" || verb == "export")
      return tool + " " + verb;
    return tool;
  }
  /// Does the command record something?
  [[nodiscard]] bool records() const {
    return tool == "ncu" || verb == "profile" || verb == "launch" || verb == "start";
  }
  [[nodiscard]] const Argument* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The value of the last one of that name; "" without one.
  [[nodiscard]] std::string value(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  /// Sets the value of the first option of that name and removes the others; without one adds it.
  /// An empty value removes all.
  void set(const std::string& name, const std::string& value);
  void add(const std::string& name, std::optional<std::string> value);
  void remove(std::string_view name);

  /// As one POSIX shell command.
  [[nodiscard]] std::string text() const;
};

/// Parses it. `can` is what the installed tool reports about itself; may be null. kUsage if it
/// names neither ncu nor nsys.
[[nodiscard]] base::Result<CommandLine> parse_line(const ShellLine& shell, const Abilities* can);
/// The tool that these words start, "ncu", "nsys" or "", and the index of its word.
[[nodiscard]] std::string tool_of(const std::vector<Word>& words, std::size_t* place = nullptr);

}  // namespace rangescope::collect::command
