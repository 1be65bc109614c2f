// A command line of ncu or nsys, taken apart: what precedes the tool, its options with their
// values, the program.
//
// Options are recognised as the tools themselves do it: long and short, `--option value`,
// `--option=value`, `-kvalue`, and unambiguous beginnings of long options (`--nvtx-incl`); the
// first word that is no option is the program.
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
  std::string name;     ///< "--nvtx-include": in full, also where `-k` or `--nvtx-incl` is written
  std::string written;  ///< as it is written, without its value
  std::optional<Word> value;  ///< absent where it takes none, or where it is missing
  bool joined = false;        ///< one word: `--set=full`, `-kfoo`
  bool known = true;          ///< this tool has an option of that name, as far as is known
  std::size_t at = 0;         ///< index of its word in the line that was parsed

  [[nodiscard]] std::string shown() const;
};

struct CommandLine {
  std::vector<Word> before;  ///< CUDA_VISIBLE_DEVICES=0, sudo, mpirun -np 4
  Word executable;           ///< as it is written
  std::string tool;          ///< "ncu" or "nsys"
  std::string verb;          ///< nsys: "profile"; "" where none is written
  std::vector<Argument> arguments;
  std::vector<Word> program;
  bool double_dash = false;    ///< `--` before the program
  std::size_t program_at = 0;  ///< index of the program's first word in the line that was parsed
  std::string after;           ///< "> log 2>&1 | tee x"
  bool next_line = false;      ///< a command of its own

  /// Whose rows of the table of options count: the tool, or "nsys stats", "nsys export".
  [[nodiscard]] std::string table() const {
    return verb == "stats" || verb == "export" ? tool + " " + verb : tool;
  }
  /// nsys's verb records something.
  [[nodiscard]] bool records() const {
    return tool == "ncu" || verb == "profile" || verb == "launch" || verb == "start";
  }
  [[nodiscard]] const Argument* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The value of the last one, "" where there is none.
  [[nodiscard]] std::string value(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  /// In place of the first of that name (all others go), else behind the last option; with no value
  /// all go.
  void set(const std::string& name, const std::string& value);
  void add(const std::string& name, std::optional<std::string> value);
  void remove(std::string_view name);

  /// As one POSIX shell command.
  [[nodiscard]] std::string text() const;
};

/// Takes it apart. `can` is what the installed tool reports about itself, and may be null. kUsage
/// where no ncu and no nsys is named in it.
[[nodiscard]] base::Result<CommandLine> parse_line(const ShellLine& shell, const Abilities* can);
/// "ncu" or "nsys", or "": which tool these words start, and where.
[[nodiscard]] std::string tool_of(const std::vector<Word>& words, std::size_t* at = nullptr);

}  // namespace rangescope::collect::command
