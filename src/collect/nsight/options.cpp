#include "collect/nsight/options.hpp"

#include <algorithm>
#include <array>

#include "base/embedded.hpp"
#include "base/text.hpp"

RANGESCOPE_EMBED(options, RANGESCOPE_TSV);

namespace rangescope::collect {
namespace {

using std::string_view;
constexpr string_view kC = "ncu", kS = "nsys";  // Compute, Systems
constexpr string_view kModes[] = {"kernel", "application", "range", "app-range"};
constexpr string_view kTraits[] = {"switch",
                                   "yes-no",
                                   "list",
                                   "each",
                                   "listed",
                                   "hidden",
                                   "telling",
                                   "passed",
                                   "code",
                                   "alone",
                                   "number",
                                   "live"};

/// The sum of the bits of the words.
unsigned bits(string_view words, const auto& names) {
  unsigned sum = 0;
  for (const string_view word : base::split(words, ' '))
    if (!word.empty())
      sum |= 1u << base::place_of(word, names);
  return sum;
}

const std::vector<Option>& all_options() {
  static const auto table = [] {
    std::vector<Option> options;
    for (const auto& [tool, name, letter, traits, key, since, other, modes, only_value, until] :
         base::rows<10>(rangescope_options)) {
      Option& option = options.emplace_back();
      option.tool = tool;
      option.name = name;
      if (!letter.empty())
        option.letter = letter[0];
      option.traits = bits(traits, kTraits);
      option.key = key;
      option.since = since;
      option.other = other;
      if (!modes.empty())
        option.modes = bits(modes, kModes);
      option.only_value = only_value;
      option.until = until;
    }
    return options;
  }();
  return table;
}

// Run with ncu 2022.3.0 and 2024.1.1.
constexpr std::array kConflicts{
    Conflict{
        "--app-replay-mode", "relaxed", "--app-replay-buffer", "memory", "--app-replay-buffer", {}},
    Conflict{"--range-filter", {}, "--nvtx-exclude", {}, "--range-filter", {}},
    Conflict{
        "--kernel-id", {}, "--launch-skip", {}, "--launch-skip", "which counts launches itself"},
};
constexpr std::array kNeeds{
    Need{kC, "--print-summary", "per-nvtx", "--nvtx", {}},
    Need{kC, "--print-source", {}, "--page", "source"},
    Need{kC, "--source-folders", {}, "--import-source", "yes"},
};

/// The first row that fulfils `predicate`; null without one.
const Option* search(auto predicate) {
  const auto row = std::ranges::find_if(all_options(), predicate);
  if (row == all_options().end())
    return nullptr;
  return &*row;
}

Takes takes_of(const Option& row) {
  if (row.is(Option::kSwitch))
    return Takes::kNothing;
  return row.is(Option::kEach) ? Takes::kValueEach : Takes::kValue;
}

bool is_given(const std::vector<std::string>& argv, const std::string& option) {
  return std::any_of(argv.begin(), argv.end(), [&](const std::string& word) {
    return word == option || (word.starts_with(option) && word[option.size()] == '=');
  });
}

}  // namespace

unsigned mode_bit(string_view mode) {
  return (1u << base::place_of(mode, kModes)) & kEveryMode;
}

std::string mode_names(unsigned modes) {
  std::vector<std::string> names;
  for (const string_view name : kModes)
    if (modes & mode_bit(name))
      names.emplace_back(name);
  return base::join(names, ", ");
}

bool Option::refused_in(unsigned mode, string_view value) const {
  if (mode == 0 || (modes & mode) != 0)
    return false;
  if (only_value.empty() || value == only_value)
    return true;
  return only_value == "yes" && is_yes(value);
}

std::span<const Option> option_table(string_view tool) {
  const std::vector<Option>& options = all_options();
  const auto is_of_tool = [&](const Option& row) { return row.tool == tool && !row.key.empty(); };
  const auto first = std::ranges::find_if(options, is_of_tool);
  return {first, std::find_if_not(first, options.end(), is_of_tool)};
}

const Option* find_option(string_view tool, string_view name) {
  const Option* by_name =
      search([&](const Option& row) { return row.tool == tool && row.name == name; });
  if (by_name)
    return by_name;
  return search([&](const Option& row) { return row.tool == tool && row.other == name; });
}

string_view name_of(const Option& option, const Abilities& can) {
  if (can.has(option.name))
    return option.name;
  if (!option.other.empty() && can.has(option.other))
    return option.other;
  return {};
}

bool has_trait(string_view tool, string_view option, unsigned trait) {
  const Option* row = find_option(tool, option);
  return row && row->is(trait);
}

Takes takes(string_view tool, string_view option, const Abilities* can) {
  if (const Option* row = find_option(tool, option))
    return takes_of(*row);
  if (!can || can->has(option))
    return Takes::kValue;
  if (const Option* row = find_option(tool == kC ? kS : kC, option))
    return takes_of(*row);
  // An option of nvprof, and one that no tool has but texts mention.
  if (option == "--profile-child-processes")
    return Takes::kNothing;
  if (option == "--kernel-replay-mode")
    return Takes::kValue;
  // A misspelt option takes what the one that was meant takes.
  const auto nearest = base::nearest(option, can->option_names(), 1);
  if (nearest.empty())
    return Takes::kUnknown;
  return takes(tool, nearest.front(), can);
}

std::string long_name(string_view tool, char letter) {
  const Option* row =
      search([&](const Option& option) { return option.tool == tool && option.letter == letter; });
  if (!row)
    return {};
  return std::string(row->name);
}

bool is_hidden_option(string_view tool, string_view option, const Version& version) {
  const Option* row = find_option(tool, option);
  const bool is_hidden = row && row->name == option && row->is(Option::kHidden);
  if (!is_hidden || row->until.empty())
    return is_hidden;
  return version < parse_version(std::string(row->until) + ".0");
}

bool is_boolean(string_view value) {
  const std::string low = base::lower(value);
  for (const char* no : {"false", "no", "off", "0"})
    if (low == no)
      return true;
  return is_yes(value);
}

bool is_yes(string_view value) {
  const std::string low = base::lower(value);  // ncu takes YES
  return low == "true" || low == "yes" || low == "on" || low == "1";
}

std::span<const Conflict> conflicts() {
  return kConflicts;
}
std::span<const Need> needs() {
  return kNeeds;
}

base::Result<void> fits_a_command(std::span<const std::string> argv) {
  // MAX_ARG_STRLEN of Linux, its terminating zero included.
  constexpr std::size_t kMaxWord = 128 * 1024;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (argv[i].size() < kMaxWord)
      continue;
    std::string option = argv[i].substr(0, argv[i].find('='));
    if (i > 0 && argv[i - 1].starts_with("--"))
      option = argv[i - 1];
    std::string hint = "Name fewer, or use an expression that covers them: regex:...";
    if (option.starts_with("--kernel"))
      hint =
          "Name kernels by what their names share (regex:gemm), or leave the filter out: "
          "`report --kernel` narrows a report afterwards.";
    return base::fail(base::Code::kConfig,
                      "the value of " + base::printable(option.substr(0, 40)) + " has " +
                          std::to_string(argv[i].size()) +
                          " characters, and one word of a command line may have " +
                          std::to_string(kMaxWord - 1),
                      {},
                      hint);
  }
  return {};
}

base::Result<void> add_extra_args(std::span<const std::string> words,
                                  const Abilities& can,
                                  string_view key,
                                  std::vector<std::string>& argv) {
  const auto refuse = [&](std::string what, std::string hint) -> base::Result<void> {
    return base::fail(base::Code::kConfig, std::move(what), std::string(key), std::move(hint));
  };
  const std::string keys =
      "Use its key; `rangescope config show pipeline." + can.tool + "` lists them.";
  bool value_may_follow = false;
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      const std::string option = word.substr(0, word.find('='));
      if (has_trait(can.tool, option, Option::kPassed))
        return refuse(option + " is rangescope's own to pass", keys);
      if (!can.has(option))
        return refuse(can.tool + " " + to_string(can.version) + " has no option " + option,
                      base::did_you_mean(option, can.option_names()));
      if (is_given(argv, option) && takes(can.tool, option, &can) != Takes::kValueEach)
        return refuse(option + " would be given twice, which " + can.tool + " refuses", keys);
      value_may_follow = option.size() == word.size();
    } else if (word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9')) {
      // A short name could be that of an option which is passed already.
      return refuse("'" + base::printable(word) + "' is a short option",
                    "Write its long name, with the value after '=': --option=value.");
    } else if (!value_may_follow) {
      return refuse("'" + base::printable(word) + "' is not an option, so " + can.tool +
                        " would run it as the program",
                    "Write --option=value.");
    } else {
      value_may_follow = false;
    }
    argv.push_back(word);
  }
  return {};
}

}  // namespace rangescope::collect
