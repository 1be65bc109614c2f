#include "collect/extra_args.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::collect {
namespace {

bool passed(const std::vector<std::string>& argv, const std::string& option) {
  return std::any_of(argv.begin(), argv.end(), [&](const std::string& word) {
    return word == option || (word.starts_with(option) && word[option.size()] == '=');
  });
}

}  // namespace

base::Result<void> add_extra_args(std::span<const std::string> words, std::span<const std::string_view> owned,
                                  const Abilities& can, std::string_view key, std::vector<std::string>& argv) {
  const auto refuse = [&](std::string what, std::string hint) -> base::Result<void> {
    return base::fail(base::Code::kConfig, std::move(what), std::string(key), std::move(hint));
  };
  const std::string keys = "Use its key; `rangescope config show pipeline." + can.tool + "` lists them.";
  bool value_may_follow = false;
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      const std::string option = word.substr(0, word.find('='));
      if (std::find(owned.begin(), owned.end(), option) != owned.end())
        return refuse(option + " is rangescope's own to pass", keys);
      if (!can.has(option))
        return refuse(can.tool + " " + to_string(can.version) + " has no option " + option,
                      base::did_you_mean(option, can.option_names()));
      if (passed(argv, option) && !may_repeat(can.tool, option))
        return refuse(option + " would stand twice, which " + can.tool + " refuses", keys);
      value_may_follow = option.size() == word.size();
    } else if (word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9')) {
      // A short name could be that of an option which is passed already.
      return refuse("'" + base::printable(word) + "' is a short option",
                    "Write its long name, and its value behind '=': --option=value.");
    } else if (!value_may_follow) {
      return refuse("'" + base::printable(word) + "' is no option, so " + can.tool + " would run it as the program",
                    "Write --option=value.");
    } else {
      value_may_follow = false;
    }
    argv.push_back(word);
  }
  return {};
}

}  // namespace rangescope::collect
