#include <cstdio>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind_config.hpp"
#include "cli/subcommands.hpp"
#include "config/trust.hpp"

namespace rangescope::cli {
namespace {

class ConfigCommand final : public Subcommand {
 public:
  ConfigCommand()
      : Subcommand("config", "Show, explain and check the configuration",
                   R"(show [SECTION]   the configuration as `rangescope profile` would use it, as YAML
explain KEY      what a key means, its type and flag, its value, and who set it
groups           configuration groups and their options
validate         check files and overrides; says what is wrong and where
trust FILE       let this rangescope.yaml, as it is now, say what is run

Overrides and --config work as with profile:

  rangescope config show pipeline.ncu ncu=quick
  rangescope config explain run.keep --config mine.yaml)") {}
  void options(const Arguments& app) override {
    app.add_flag("--origin", origin_, "show: say behind each value who set it");
    arguments_.options(app, true);
  }

  [[nodiscard]] int run() override {
    std::vector<std::string> words, overrides;
    for (const std::string& word : arguments_.words())
      (config::looks_like_override(word) ? overrides : words).push_back(word);
    arguments_.set_words(overrides);
    const std::vector<std::string> actions{"show", "explain", "groups", "validate", "trust"};
    const std::string action = words.empty() ? "show" : words.front();
    const std::string what = words.size() > 1 ? words[1] : "";
    if (std::find(actions.begin(), actions.end(), action) == actions.end())
      return say({base::Code::kUsage,
                  "there is no 'config " + base::printable(action) + "'",
                  {},
                  base::did_you_mean(action, actions).empty() ? "It is show, explain, groups, validate or trust."
                                                              : base::did_you_mean(action, actions)});
    if (words.size() > 2)
      return say(
          {base::Code::kUsage, "'" + base::printable(words[2]) + "' is too much", {}, "Name one key or section."});
    if (!what.empty() && (action == "groups" || action == "validate"))
      return say({base::Code::kUsage,
                  "'" + base::printable(what) + "' is too much",
                  {},
                  action == "groups"
                      ? "Write: rangescope config groups"
                      : "Name a file with --config: rangescope config validate --config " + base::shell_quote(what)});
    if (action == "groups") return groups();
    if (action == "trust") {
      if (what.empty())
        return say({base::Code::kUsage, "no file was named", {}, "Write: rangescope config trust rangescope.yaml"});
      const auto done = config::trust(what);
      return done ? 0 : say(done.error());
    }
    auto config = arguments_.compose({});
    if (!config) return say(config.error());
    if (action == "validate") {
      std::puts(("valid: " + base::join(config->files, ", ")).c_str());
      return 0;
    }
    if (action == "explain") {
      if (what.empty())
        return say({base::Code::kUsage, "no key was named", {}, "Write: rangescope config explain run.keep"});
      const auto text = config::explain(*config, what);
      if (!text) return say(text.error());
      std::fputs(text->c_str(), stdout);
      return 0;
    }
    const config::Value* value = config::at_path(config->root, what);
    if (!value) {
      if (config::find_key(what)) return std::puts("null"), 0;
      return say(config::unknown_key(what, {}));
    }
    std::fputs(config::to_yaml(*value, origin_).c_str(), stdout);
    return 0;
  }

 private:
  [[nodiscard]] int groups() {
    auto inputs = arguments_.inputs({});
    if (!inputs) return say(inputs.error());
    auto config = config::compose(*inputs);
    for (const auto& [group, options] : config::groups(*inputs)) {
      std::string line = group + ":";
      for (const std::string& option : options) {
        bool chosen = false;
        if (config)
          for (const config::Choice& choice : config->choices)
            chosen = chosen || (choice.group == group && choice.option == option);
        line += " " + option + (chosen ? "*" : "");
      }
      std::puts(line.c_str());
    }
    return 0;
  }

  ConfigArguments arguments_;
  bool origin_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_config() {
  return std::make_unique<ConfigCommand>();
}

}  // namespace rangescope::cli
