#include <cstdio>
#include <filesystem>

#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/bind_config.hpp"
#include "cli/destination.hpp"
#include "cli/subcommand.hpp"
#include "config/trust.hpp"
#include "doctor/causes.hpp"
#include "profile/look.hpp"
#include "profile/starter.hpp"
#include "report/document/findings.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;

class ConfigCommand final : public Subcommand {
 public:
  ConfigCommand() : Subcommand("config") {}
  [[nodiscard]] bool takes_program() const override { return true; }
  [[nodiscard]] bool needs_separator() const override { return true; }
  void set_program(std::vector<std::string> argv) override { program_ = std::move(argv); }
  void options(const Arguments& app) override {
    app.add_option("--to", to_);
    app.add_flag("--force", force_);
    bind_look(app, look_);
    app.add_flag("--origin", origin_);
    arguments_.options(app, true);
  }

  [[nodiscard]] base::Result<int> run() override {
    std::vector<std::string> words, overrides;
    for (const std::string& word : arguments_.words())
      (config::looks_like_override(word) ? overrides : words).push_back(word);
    arguments_.set_words(overrides);
    const std::vector<std::string> actions{"show", "explain", "groups", "validate", "trust", "init"};
    const std::string action = words.empty() ? "show" : words.front();
    const std::string what = words.size() > 1 ? words[1] : "";
    if (std::find(actions.begin(), actions.end(), action) == actions.end())
      return base::fail(base::Code::kUsage, "there is no 'config " + base::printable(action) + "'", {},
                        base::did_you_mean(action, actions).empty()
                            ? "It is show, explain, groups, validate, trust or init."
                            : base::did_you_mean(action, actions));
    if (action == "init") return what.empty() ? init() : tl::make_unexpected(misplaced(what));
    if (!program_.empty()) return tl::make_unexpected(misplaced(program_.front()));
    if (words.size() > 2)
      return base::fail(base::Code::kUsage, "'" + base::printable(words[2]) + "' is too much", {},
                        "Name one key or section.");
    if (!what.empty() && (action == "groups" || action == "validate"))
      return base::fail(base::Code::kUsage, "'" + base::printable(what) + "' is too much", {},
                        action == "groups" ? "Write: rangescope config groups"
                                           : "Name a file with --config: rangescope config validate --config " +
                                                 base::shell_quote(what));
    if (action == "groups") return groups();
    if (action == "trust") {
      if (what.empty())
        return base::fail(base::Code::kUsage, "no file was named", {},
                          "Write: rangescope config trust rangescope.yaml");
      const auto done = config::trust(what);
      TRY(done);
      return 0;
    }
    const auto config = TRY(arguments_.compose({}));
    if (action == "validate") {
      std::puts(("valid: " + base::join(config.files, ", ")).c_str());
      return 0;
    }
    if (action == "explain") {
      if (what.empty())
        return base::fail(base::Code::kUsage, "no key was named", {}, "Write: rangescope config explain run.keep");
      const auto text = TRY(config::explain(config, what));
      std::fputs(text.c_str(), stdout);
      return 0;
    }
    const config::Value* value = config::at_path(config.root, what);
    if (!value) {
      if (config::find_key(what)) return std::puts("null"), 0;
      return tl::make_unexpected(config::unknown_key(what, {}));
    }
    std::fputs(config::to_yaml(*value, origin_).c_str(), stdout);
    return 0;
  }

 private:
  [[nodiscard]] base::Result<int> groups() {
    auto inputs = TRY(arguments_.inputs({}));
    auto config = config::compose(inputs);
    for (const auto& [group, options] : config::groups(inputs)) {
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

  [[nodiscard]] static base::Error misplaced(const std::string& word) {
    return {base::Code::kUsage,
            "'" + base::printable(word) + "' is out of place",
            {},
            "A program stands behind -- of config init: rangescope config init -- ./app"};
  }

  [[nodiscard]] base::Result<int> init() {
    if (program_.empty())
      return base::fail(base::Code::kUsage, "there is no program to look at", {},
                        "Put it behind --: rangescope config init -- ./app");
    std::error_code error;
    if (!force_ && fs::exists(to_, error))
      return base::fail(base::Code::kUsage, "there is such a file already", to_,
                        "Add --force, or name another one with --to");
    TRY(check_output(to_));
    look_.command = program_;
    const auto look = TRY(profile::look_at_program(look_));
    const auto findings = doctor::diagnose(look);
    const std::string text = look.not_started ? std::string() : profile::starter(look);
    if (text.empty()) {
      for (const model::Finding& finding : findings)
        if (finding.verdict == model::Grade::kFail || finding.verdict == model::Grade::kWarn)
          std::fputs(report::finding_text(finding, false).c_str(), stderr);
      const int code = doctor::exit_code_of(findings);
      return base::fail(code == 66 ? base::Code::kNoInput : base::Code::kNothingCaptured,
                        "the program showed no range that could be measured", {},
                        "Look at it with: rangescope doctor -- " + base::shell_quote(program_));
    }
    TRY(profile::write_starter(text, to_));
    if (auto trusted = config::trust(to_); !trusted)  // who wrote it for this user trusts it
      base::warn("the file is not trusted yet: rangescope config trust " + base::shell_quote(to_));
    base::info("wrote " + to_ + "; run it with: rangescope profile" +
               (to_ == "rangescope.yaml" ? "" : " --config " + base::shell_quote(to_)));
    return 0;
  }

  ConfigArguments arguments_;
  std::vector<std::string> program_;
  profile::LookRequest look_;
  std::string to_ = "rangescope.yaml";
  bool origin_ = false, force_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_config() {
  return std::make_unique<ConfigCommand>();
}

}  // namespace rangescope::cli
