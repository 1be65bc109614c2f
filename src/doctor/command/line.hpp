// A command line of ncu or nsys, taken apart: what stands before the tool, its options with their values, the program.
//
// Options are recognised as the tools themselves do it: long and short, `--option value`, `--option=value`, `-kvalue`,
// and unambiguous beginnings of long options (`--nvtx-incl`); the first word that is no option is the program. Which
// options take a value stands in options.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collect/abilities.hpp"
#include "doctor/command/shell.hpp"

namespace rangescope::doctor {

/// One option as it stands on the line.
struct Argument {
  std::string name;           ///< "--nvtx-include": in full, also where `-k` or `--nvtx-incl` is written
  std::string written;        ///< as it is written, without its value
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

  [[nodiscard]] const Argument* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The value of the last one, "" where there is none.
  [[nodiscard]] std::string value(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  /// In place of the first of that name (all others go), else behind the last option.
  void set(const std::string& name, const std::string& value);
  void add(const std::string& name, std::optional<std::string> value);
  void remove(std::string_view name);

  /// As one POSIX shell command.
  [[nodiscard]] std::string text() const;
};

/// Takes it apart. `can` is what the installed tool says of itself, and may be null. kUsage where no ncu and no nsys is
/// named in it.
[[nodiscard]] base::Result<CommandLine> parse_line(const ShellLine& shell, const collect::Abilities* can);
/// "ncu" or "nsys", or "": which tool these words start, and where.
[[nodiscard]] std::string tool_of(const std::vector<Word>& words, std::size_t* at = nullptr);

/// How many values an option takes, and how often it may stand.
enum class Takes : std::uint8_t { kNothing, kValue, kValueEach, kUnknown };
[[nodiscard]] Takes takes(std::string_view tool, std::string_view option, const collect::Abilities* can);
/// The long name of a short option ("-k"), or "".
[[nodiscard]] std::string long_name(std::string_view tool, char letter);
/// True for options that a tool takes though its help does not list them.
[[nodiscard]] bool is_hidden_option(std::string_view tool, std::string_view option, const collect::Version& version);

}  // namespace rangescope::doctor
