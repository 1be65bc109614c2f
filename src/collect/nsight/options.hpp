// The options of nsys and ncu, one row each: what planning a command line and explaining one have
// to know beyond the tool's own help (abilities.hpp). An option without a row takes one value and
// may occur once.
//
// Sources: the help texts and refusals of ncu 2020.3.1, 2022.3.0, 2024.1.1 and nsys 2020.4.3,
// 2022.4.2, 2023.4.4, which were run; recorded outputs of 2025.3.1; the 2026 documentation.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collect/nsight/abilities.hpp"

namespace rangescope::collect {

/// Replay modes of ncu.
enum Modes : unsigned {
  kKernel = 1,
  kApplication = 2,
  kRange = 4,
  kAppRange = 8,
  kKernels = 3,
  kRanges = 12,
  kEveryMode = 15
};
/// 0 for what is no replay mode.
[[nodiscard]] unsigned mode_bit(std::string_view mode);
[[nodiscard]] std::string mode_names(unsigned modes);

struct Option {
  enum Trait : unsigned {
    kSwitch = 1,     ///< takes no value
    kYesNo = 2,      ///< yes or no to ncu, true or false to nsys
    kList = 4,       ///< takes values separated by commas
    kEach = 8,       ///< may occur several times
    kListed = 16,    ///< the help lists every value that it takes; another one is refused
    kHidden = 32,    ///< taken, though the help does not list it
    kTelling = 64,   ///< hardly any program has an option of this name
    kPassed = 128,   ///< rangescope passes it itself: never an extra argument
    kCode = 256,     ///< its planner has code for it
    kAlone = 512,    ///< needs no program
    kNumber = 1024,  ///< a whole number, 0 or more
    kLive = 2048,    ///< for a program that runs: ncu refuses it with --import
  };
  std::string_view tool;  ///< "ncu", "nsys" (profile, launch, start), "nsys stats", "nsys export"
  std::string_view name;
  char letter = 0;  ///< -k
  unsigned traits = 0;
  std::string_view key = {};    ///< below pipeline.nsys or pipeline.ncu.ncu_cli: "launch_count"
  std::string_view since = {};  ///< the first version that has it
  std::string_view other = {};  ///< its name in other versions
  unsigned modes = kEveryMode;  ///< elsewhere ncu refuses it ...
  std::string_view only_value = {};  ///< ... with this value only
  std::string_view until = {};       ///< the first version that lacks it

  [[nodiscard]] bool is(unsigned trait) const { return (traits & trait) != 0; }
  /// Is it refused in this mode with this value ("yes" in any spelling)?
  [[nodiscard]] bool refused_in(unsigned mode, std::string_view value) const;
};

/// The options of "ncu" or "nsys" with a configuration key, in the order in which they are passed.
[[nodiscard]] std::span<const Option> option_table(std::string_view tool);
/// The row of an option of this tool, or null: also by its name in another version.
[[nodiscard]] const Option* find_option(std::string_view tool, std::string_view name);
/// The name of `option` that this tool has, "" where it has none.
[[nodiscard]] std::string_view name_of(const Option& option, const Abilities& can);
[[nodiscard]] bool has_trait(std::string_view tool, std::string_view option, unsigned trait);

/// How many values an option takes, and whether it may be repeated.
enum class Takes : std::uint8_t { kNothing, kValue, kValueEach, kUnknown };
/// `can` may be null. Options of the other tool, or of other versions, take what they take there.
[[nodiscard]] Takes takes(std::string_view tool, std::string_view option, const Abilities* can);
/// The long name of a short option ("-k"), or "".
[[nodiscard]] std::string long_name(std::string_view tool, char letter);
/// True for options that this version takes though its help does not list them.
[[nodiscard]] bool is_hidden_option(std::string_view tool,
                                    std::string_view option,
                                    const Version& version);

/// A value of a yes-or-no option, in any spelling that the tools take; is_yes: of those, yes.
[[nodiscard]] bool is_boolean(std::string_view value);
[[nodiscard]] bool is_yes(std::string_view value);

/// Two options that ncu refuses together, and the one to leave out.
struct Conflict {
  std::string_view option, value;  ///< "" for any value
  std::string_view with, with_value;
  std::string_view drop;
  std::string_view why;
};
[[nodiscard]] std::span<const Conflict> conflicts();
/// An option that the tool refuses, or ignores, without another.
struct Need {
  std::string_view tool, option, value;  ///< "" for any value
  std::string_view needed, needed_value;
};
[[nodiscard]] std::span<const Need> needs();

/// kConfig where one word is longer than Linux takes (128 KiB): an expression of thousands of
/// names.
[[nodiscard]] base::Result<void> fits_a_command(std::span<const std::string> argv);

/// Appends `words` of a person (`extra_args`) to `argv`. kConfig, with `key` as place, for an
/// option that rangescope itself passes; for one that `argv` has already or the tool's help lacks;
/// for a short option, which could be either; and for a word that is neither an option nor behind
/// one.
[[nodiscard]] base::Result<void> add_extra_args(std::span<const std::string> words,
                                                const Abilities& can,
                                                std::string_view key,
                                                std::vector<std::string>& argv);

}  // namespace rangescope::collect
