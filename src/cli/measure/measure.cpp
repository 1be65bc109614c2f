#include "cli/measure/measure.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

std::vector<Words> commands_in(const Words& words) {
  std::vector<Words> commands(1);
  for (const std::string& word : words) {
    if (word == "::")
      commands.emplace_back();
    else
      commands.back().push_back(word);
  }
  return commands;
}

std::string letter_of(std::size_t command) {
  return std::string(1, static_cast<char>('A' + command));
}

base::Result<void> profile_once(const std::string& self,
                                const Words& command,
                                const fs::path& folder) {
  base::Command profile;
  profile.argv = {self, "profile", "-q", "--repeat", "1", "--runs", folder.string(), "--"};
  profile.argv.insert(profile.argv.end(), command.begin(), command.end());
  profile.forward_signals = true;
  profile.out.pass = false;
  profile.out.file = "/dev/null";
  const auto ended = TRY(base::run(profile));
  if (ended.signal)
    base::die_by(*ended.signal);
  if (ended.ok())
    return {};
  return base::fail(base::Code::kNotComparable,
                    "the program failed (" + base::describe(ended) + ")",
                    base::shell_quote(command),
                    "Make it end with 0 first");
}

}  // namespace

base::Result<std::vector<std::string>> measure_in_turns(const Words& words,
                                                        std::size_t turns,
                                                        const std::string& root) {
  constexpr std::size_t kMostCommands = 26;
  const std::vector<Words> commands = commands_in(words);
  const bool has_empty =
      std::ranges::any_of(commands, [](const Words& command) { return command.empty(); });
  if (commands.size() < 2 || commands.size() > kMostCommands || has_empty)
    return base::fail(
        base::Code::kUsage,
        "--measure takes two commands or more",
        {},
        "Write: rangescope compare --measure 10 -- ./old --steps 5 :: ./new --steps 5");
  const std::string self = base::self_path().string();
  const std::string time = fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
  const fs::path folder = fs::path(root) / "measured" / fmt::format("{}-{}", time, ::getpid());
  std::vector<std::string> folders;
  for (std::size_t command = 0; command < commands.size(); ++command)
    folders.push_back((folder / letter_of(command)).string());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    base::detail(fmt::format("turn {} of {}", turn + 1, turns));
    const bool is_backwards = turn % 2 != 0;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const std::size_t command = is_backwards ? commands.size() - 1 - i : i;
      TRY(profile_once(self, commands[command], folders[command]));
    }
  }
  return folders;
}

}  // namespace rangescope::cli
