// `rangescope init`: a starting rangescope.yaml for a program, from a look at it.

#include <cstdio>
#include <filesystem>

#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/subcommands.hpp"
#include "config/trust.hpp"
#include "doctor/causes.hpp"
#include "profile/look.hpp"
#include "profile/starter.hpp"
#include "report/findings.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;
class Init final : public Subcommand {
 public:
  Init()
      : Subcommand(
            "init", "Write a starting rangescope.yaml for a program, from a look at it",
            R"(The program is run once with the native collector, for as long as --for says. What was seen decides
which ranges are included and which metric groups fit their occurrences. `rangescope profile` in this folder
then does what the file says.

  rangescope init -- python train.py
  rangescope init --to other.yaml --for 2m -- ./app)") {}
  [[nodiscard]] bool takes_program() const override { return true; }
  void set_program(std::vector<std::string> argv) override { program_ = std::move(argv); }

  void options(const Arguments& app) override {
    app.add_option("--to", to_, "File to write (rangescope.yaml)").type_name("FILE");
    app.add_flag("--force", force_, "Overwrite it");
    bind_look(app, look_);
  }

  [[nodiscard]] int run() override {
    if (program_.empty())
      return say(
          {base::Code::kUsage, "there is no program to look at", {}, "Put it behind --: rangescope init -- ./app"});
    std::error_code error;
    if (!force_ && fs::exists(to_, error))
      return say(
          {base::Code::kUsage, "there is such a file already", to_, "Add --force, or name another one with --to"});
    if (auto allowed = check_output(to_); !allowed) return say(allowed.error());
    look_.command = program_;
    const auto look = profile::look_at_program(look_);
    if (!look) return say(look.error());
    const auto findings = doctor::diagnose(*look);
    const std::string text = look->not_started ? std::string() : profile::starter(*look);
    if (text.empty()) {
      for (const model::Finding& finding : findings)
        if (finding.verdict == model::Grade::kFail || finding.verdict == model::Grade::kWarn)
          std::fputs(report::finding_text(finding, false).c_str(), stderr);
      const int code = doctor::exit_code_of(findings);
      return say({code == 66 ? base::Code::kNoInput : base::Code::kNothingCaptured,
                  "the program showed no range that could be measured",
                  {},
                  "Look at it with: rangescope doctor -- " + base::shell_quote(program_)});
    }
    if (auto written = profile::write_starter(text, to_); !written) return say(written.error());
    if (auto trusted = config::trust(to_); !trusted)  // who wrote it for this user trusts it
      base::warn("the file is not trusted yet: rangescope config trust " + base::shell_quote(to_));
    base::info("wrote " + to_ + "; run it with: rangescope profile" +
               (to_ == "rangescope.yaml" ? "" : " --config " + base::shell_quote(to_)));
    return 0;
  }

 private:
  std::vector<std::string> program_;
  profile::LookRequest look_;
  std::string to_ = "rangescope.yaml";
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_init() {
  return std::make_unique<Init>();
}

}  // namespace rangescope::cli
