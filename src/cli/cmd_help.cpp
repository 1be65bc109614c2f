#include <algorithm>
#include <filesystem>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/subcommand.hpp"
#include "report/document/findings.hpp"

namespace rangescope::cli {
namespace {

class Help final : public Subcommand {
 public:
  Help() : Subcommand("help") {}
  void options(const Arguments& app) override {
    app.add_option("command", topic_);
    app.add_option("verb", verb_);
    app.add_flag("--man", man_);
    app.add_option("--man-dir", man_dir_);
    app.add_option("--completion", completion_).one_of({"bash", "zsh", "fish"});
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto commands = help_of_all();
    if (!man_dir_.empty())
      return write_man_pages(commands);
    if (!completion_.empty()) {
      print(completion(commands, completion_));
      return 0;
    }
    if (topic_.empty()) {
      print(man_ ? man_overview(commands) : overview(commands));
      return 0;
    }
    if (topic_ == "columns") {
      print(columns_page());
      return 0;
    }
    if (topic_ == "losses") {
      print(report::loss_page());
      return 0;
    }
    std::vector<std::string> known = {"columns", "losses"};
    for (const auto& command : commands) {
      known.push_back(command.name);
      if (command.name != topic_)
        continue;
      const auto word = std::ranges::find(command.words, verb_, &HelpCommand::name);
      if (!verb_.empty() && word == command.words.end())
        return no_such_verb(command);
      if (man_)
        print(man_page(command));
      else if (verb_.empty())
        print(help_text(command, false));
      else
        print(help_text(word_of(command, *word), false));
      return 0;
    }
    std::string hint = base::did_you_mean(topic_, known);
    if (hint.empty())
      hint = "Name a command, columns or losses; all commands: rangescope help";
    return base::fail(base::Code::kUsage,
                      "there is no help for '" + base::printable(topic_) + "'",
                      {},
                      std::move(hint));
  }

 private:
  [[nodiscard]] base::Result<int> write_man_pages(HelpCommands commands) const {
    std::error_code error;
    std::filesystem::create_directories(man_dir_, error);
    const std::filesystem::path folder(man_dir_);
    auto written = base::write_file(folder / "rangescope.1", man_overview(commands));
    for (const auto& command : commands)
      if (written)
        written =
            base::write_file(folder / ("rangescope-" + command.name + ".1"), man_page(command));
    TRY(written);
    return 0;
  }

  [[nodiscard]] base::Result<int> no_such_verb(const HelpCommand& command) const {
    std::vector<std::string> verbs;
    for (const HelpCommand& word : command.words)
      verbs.push_back(word.name);
    std::string hint = base::did_you_mean(verb_, verbs);
    if (hint.empty())
      hint = "See rangescope help " + command.name;
    const std::string written = base::printable(topic_ + " " + verb_);
    return base::fail(base::Code::kUsage, "there is no help for '" + written + "'", {}, hint);
  }

  std::string topic_, verb_, man_dir_, completion_;
  bool man_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_help() {
  return std::make_unique<Help>();
}

}  // namespace rangescope::cli
