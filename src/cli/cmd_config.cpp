#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <vector>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/bind_config.hpp"
#include "cli/destination.hpp"
#include "cli/starter.hpp"
#include "cli/subcommand.hpp"
#include "config/compose.hpp"
#include "config/metric_groups.hpp"
#include "config/trust.hpp"
#include "doctor/causes.hpp"
#include "profile/counters.hpp"
#include "profile/look.hpp"
#include "report/document/findings.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;

// A starting rangescope.yaml for a program: the ranges worth measuring, and which metric groups fit
// their occurrences.

constexpr std::uint64_t kTraced = 3;  // occurrences that go to the timeline before counters begin
constexpr const char* kGroups[] = {
    "quick", "speed_of_light", "tensor", "memory", "occupancy", "flops", "stalls"};

/// Text as a YAML scalar that reads back as it is, `${` in it too.
std::string yaml(std::string_view text) {
  const std::string escaped = base::replace_all(text, "${", "\\${");
  if (base::printable(escaped) != escaped)
    return config::to_flow(config::text_value(escaped, {}));
  return "'" + base::replace_all(escaped, "'", "''") + "'";
}

struct FittingGroups {
  std::vector<std::string> names;
  std::string reason;  ///< what was counted
};

/// Without a count of passes: a small group, if any pass fits.
FittingGroups uncounted_groups(std::uint64_t passes_that_fit) {
  FittingGroups groups{{}, "passes could not be counted here"};
  if (passes_that_fit > 0)
    groups.names = {"quick"};
  return groups;
}

/// Groups of which at least one complete set fits into the occurrences of the rarest range.
FittingGroups groups_that_fit(const std::string& chip, std::uint64_t occurrences) {
  const std::uint64_t passes_that_fit = std::max(occurrences, kTraced) - kTraced;
  const auto shipped = config::shipped_groups();
  const auto planner = profile::open_planner();
  if (!shipped || !planner)
    return uncounted_groups(passes_that_fit);
  FittingGroups chosen;
  bool is_counted = false;
  for (const char* group : kGroups) {
    auto wanted = chosen.names;
    wanted.emplace_back(group);
    const auto plan = planner->plan(chip, wanted, *shipped);
    if (!plan)
      continue;  // the chip lacks the group's counters
    is_counted = true;
    if (plan->passes > passes_that_fit)
      continue;
    chosen.names = std::move(wanted);
    chosen.reason = fmt::format("{} on {}, and the rarest range occurs {}",
                                base::counted(plan->passes, "pass"),
                                chip,
                                base::counted(occurrences, "time"));
  }
  if (!is_counted)
    return uncounted_groups(passes_that_fit);
  return chosen;
}

std::string starter_head(const doctor::ProgramLook& look) {
  std::vector<std::string> command;
  for (const std::string& word : look.command)
    command.push_back(yaml(word));
  return "# Written by `rangescope config init` from a probe run of " +
         base::format_ns(static_cast<double>(look.ended.wall_ns)) +
         " at the program: " + base::counted(look.facts.ranges.size(), "range") + ", " +
         base::counted(look.facts.kernels, "kernel") + ".\n" +
         "# `rangescope config explain KEY` explains a key; `rangescope config validate` checks "
         "this file.\nworkload:\n  command: [" +
         base::join(command, ", ") + "]\n";
}

/// An item of ranges.include, with what was seen of it as a comment.
std::string include_line(const StarterRange& include, bool has_cuda) {
  std::string text = "    - " + yaml(include.expression) + "  # " +
                     base::counted(include.occurrences, "time") + ", " +
                     base::format_ns(static_cast<double>(include.total_ns)) + " in all";
  if (has_cuda)
    text += ", " + base::counted(include.kernels, "kernel");
  return text + "\n";
}

/// The metric groups; commented out where this machine cannot collect them.
std::string starter_pipeline(std::uint64_t rarest) {
  const doctor::Tools tools = profile::tools_here();
  const std::string chip = profile::chip_of_machine().value_or("GH100");
  const FittingGroups groups = groups_that_fit(chip, rarest);
  if (groups.names.empty())
    return "# No metric group fits: the rarest range occurs " + base::counted(rarest, "time") +
           ", and each pass takes one instance. Take rare ranges out of include, or use ncu "
           "(--ncu).\n";
  const std::string metrics = "metrics: [" + base::join(groups.names, ", ") + "]\n";
  const std::string text =
      "pipeline:\n  native:\n"
      "    # Counters per range, one pass per instance: " +
      groups.reason + ".\n";
  if (tools.native_counters)
    return text + "    " + metrics;
  return text +
         "    # Not enabled, since this machine cannot: " + base::printable(tools.counters_reason) +
         ".\n    # " + metrics;
}

/// The text of the file; "" where no range could be measured.
std::string starter(const doctor::ProgramLook& look) {
  const std::vector<StarterRange> includes = ranges_worth_measuring(look.facts);
  if (includes.empty())
    return {};
  const doctor::ProgramFacts& facts = look.facts;
  std::string text = starter_head(look) + "ranges:\n  include:\n";
  std::uint64_t rarest = 0;
  for (const StarterRange& include : includes) {
    text += include_line(include, facts.cuda);
    if (rarest == 0 || include.occurrences < rarest)
      rarest = include.occurrences;
  }
  if (facts.kernels + facts.graph_launches == 0)
    return text;
  return text + starter_pipeline(rarest);
}

/// Writes it under its name once it composes like any other file; kInternal, and no file, where it
/// does not.
base::Result<void> write_starter(const std::string& text, const fs::path& to) {
  const fs::path draft = to.string() + ".draft";
  TRY(base::write_file(draft, text));
  std::error_code ignored;
  config::Inputs inputs;
  inputs.shipped = TRY(config::shipped_folder());
  inputs.config_files = {draft};
  inputs.now = std::chrono::system_clock::now();
  if (auto composed = config::compose(inputs); !composed) {
    fs::remove(draft, ignored);
    return base::fail(base::Code::kInternal,
                      "the generated file is not valid: " + composed.error().what,
                      composed.error().where,
                      "Report this, with the names of the program's ranges");
  }
  std::error_code error;
  fs::rename(draft, to, error);
  if (error)
    return base::fail(base::Code::kIo, "cannot write: " + error.message(), to.string());
  return {};
}

class ConfigCommand final : public Subcommand {
 public:
  ConfigCommand() : Subcommand("config", true) {}
  [[nodiscard]] bool needs_separator() const override { return true; }
  void options(const Arguments& app) override {
    app.add_option("-o,--output", to_);
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
    const std::vector<std::string> actions{
        "show", "explain", "groups", "validate", "trust", "init"};
    const std::string action = word_or(words, 0, "show");
    const std::string operand = word_or(words, 1, "");
    if (std::find(actions.begin(), actions.end(), action) == actions.end())
      return tl::make_unexpected(unknown_action(action, actions));
    if (action == "init") {
      if (!operand.empty())
        return tl::make_unexpected(misplaced(operand));
      return init();
    }
    if (!program_.empty())
      return tl::make_unexpected(misplaced(program_.front()));
    if (words.size() > 2)
      return tl::make_unexpected(too_many(words[2], "Name one key or section."));
    if (!operand.empty() && action == "groups")
      return tl::make_unexpected(too_many(operand, "Write: rangescope config groups"));
    if (!operand.empty() && action == "validate")
      return tl::make_unexpected(
          too_many(operand,
                   "Name a file with --config: rangescope config validate --config " +
                       base::shell_quote(operand)));
    if (action == "groups")
      return groups();
    if (action == "trust")
      return trust(operand);
    const auto config = TRY(arguments_.compose({}));
    if (action == "validate") {
      std::puts(("valid: " + base::join(config.files, ", ")).c_str());
      return 0;
    }
    if (action == "explain")
      return explain(config, operand);
    return show(config, operand);
  }

 private:
  static std::string word_or(const std::vector<std::string>& words,
                             std::size_t index,
                             const std::string& otherwise) {
    if (index < words.size())
      return words[index];
    return otherwise;
  }

  static base::Error unknown_action(const std::string& action,
                                    const std::vector<std::string>& actions) {
    std::string hint = base::did_you_mean(action, actions);
    if (hint.empty())
      hint = "It is show, explain, groups, validate, trust or init.";
    return {base::Code::kUsage,
            "there is no 'config " + base::printable(action) + "'",
            {},
            std::move(hint)};
  }

  static base::Error too_many(const std::string& word, std::string hint) {
    return {base::Code::kUsage,
            "'" + base::printable(word) + "' is one argument too many",
            {},
            std::move(hint)};
  }

  static base::Result<int> trust(const std::string& file) {
    if (file.empty())
      return base::fail(base::Code::kUsage,
                        "no file was named",
                        {},
                        "Write: rangescope config trust rangescope.yaml");
    const auto done = config::trust(file);
    TRY(done);
    return 0;
  }

  static base::Result<int> explain(const config::Config& config, const std::string& key) {
    if (key.empty())
      return base::fail(
          base::Code::kUsage, "no key was named", {}, "Write: rangescope config explain run.keep");
    const auto text = TRY(config::explain(config, key));
    std::fputs(text.c_str(), stdout);
    return 0;
  }

  /// A key or a section; "" is all of it.
  [[nodiscard]] base::Result<int> show(const config::Config& config,
                                       const std::string& path) const {
    if (const config::Value* value = config::at_path(config.root, path)) {
      std::fputs(config::to_yaml(*value, origin_).c_str(), stdout);
      return 0;
    }
    if (!config::find_key(path))
      return tl::make_unexpected(config::unknown_key(path, {}));
    std::puts("null");
    return 0;
  }

  [[nodiscard]] base::Result<int> groups() {
    auto inputs = TRY(arguments_.inputs({}));
    auto config = config::compose(inputs);
    for (const auto& [group, options] : config::groups(inputs)) {
      std::string line = group + ":";
      for (const std::string& option : options) {
        line += " " + option;
        if (config && is_chosen(*config, group, option))
          line += "*";
      }
      std::puts(line.c_str());
    }
    return 0;
  }

  static bool is_chosen(const config::Config& config,
                        const std::string& group,
                        const std::string& option) {
    return std::ranges::any_of(config.choices, [&](const config::Choice& choice) {
      return choice.group == group && choice.option == option;
    });
  }

  [[nodiscard]] static base::Error misplaced(const std::string& word) {
    return {base::Code::kUsage,
            "'" + base::printable(word) + "' is not expected here",
            {},
            "config init takes a program after --: rangescope config init -- ./app"};
  }

  [[nodiscard]] base::Result<int> init() {
    if (program_.empty())
      return base::fail(base::Code::kUsage,
                        "no program was given",
                        {},
                        "Put it after --: rangescope config init -- ./app");
    std::error_code error;
    if (!force_ && fs::exists(to_, error))
      return base::fail(base::Code::kUsage,
                        "there is such a file already",
                        to_,
                        "Add --force, or name another one with -o");
    TRY(check_output(to_));
    look_.command = program_;
    const auto look = TRY(profile::look_at_program(look_));
    const auto findings = doctor::diagnose(look);
    std::string text;
    if (!look.not_started)
      text = starter(look);
    if (text.empty()) {
      for (const model::Finding& finding : findings)
        if (finding.verdict == model::Grade::kFail || finding.verdict == model::Grade::kWarn)
          std::fputs(report::finding_text(finding, false).c_str(), stderr);
      base::Code code = base::Code::kNothingCaptured;
      if (doctor::exit_code_of(findings) == base::exit_code(base::Code::kNoInput))
        code = base::Code::kNoInput;
      return base::fail(code,
                        "no range of the program could be measured",
                        {},
                        "Check it with: rangescope doctor -- " + base::shell_quote(program_));
    }
    TRY(write_starter(text, to_));
    if (auto trusted = config::trust(to_); !trusted)  // who wrote it for this user trusts it
      base::warn("the file is not trusted yet: rangescope config trust " + base::shell_quote(to_));
    std::string command = "rangescope profile";
    if (to_ != "rangescope.yaml")
      command += " --config " + base::shell_quote(to_);
    base::info("wrote " + to_ + "; run it with: " + command);
    return 0;
  }

  ConfigArguments arguments_;
  profile::LookRequest look_;
  std::string to_ = "rangescope.yaml";
  bool origin_ = false, force_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_config() {
  return std::make_unique<ConfigCommand>();
}

}  // namespace rangescope::cli
