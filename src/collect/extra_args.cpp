#include "collect/extra_args.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::collect {

base::Result<void> add_extra_args(std::span<const std::string> words, std::span<const std::string_view> owned,
                                  const Abilities& can, std::string_view key, std::vector<std::string>& argv) {
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      const std::string option = word.substr(0, word.find('='));
      if (std::find(owned.begin(), owned.end(), option) != owned.end())
        return base::fail(base::Code::kConfig, option + " is rangescope's own to pass", std::string(key),
                          "Use its key; `rangescope config show pipeline." + can.tool + "` lists them.");
      if (!can.has(option))
        return base::fail(base::Code::kConfig, can.tool + " " + to_string(can.version) + " has no option " + option,
                          std::string(key), base::did_you_mean(option, can.option_names()));
    }
    argv.push_back(word);
  }
  return {};
}

}  // namespace rangescope::collect
