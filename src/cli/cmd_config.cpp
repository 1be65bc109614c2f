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
#include "cli/subcommand.hpp"
#include "config/compose.hpp"
#include "config/metric_groups.hpp"
#include "config/trust.hpp"
#include "doctor/causes.hpp"
#include "model/range_expression.hpp"
#include "profile/counters.hpp"
#include "profile/look.hpp"
#include "report/document/findings.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;

// A starting rangescope.yaml for a program: which of the ranges that were seen are worth measuring,
// and which metric groups fit their occurrences.
using doctor::SeenRange;

constexpr std::size_t kMostIncludes = 10;
constexpr std::size_t kManyAlike = 4;  // names that differ in digits only, from here on one pattern
constexpr std::uint64_t kTraced = 3;   // occurrences that go to the timeline before counters begin
constexpr const char* kGroups[] = {
    "quick", "speed_of_light", "tensor", "memory", "occupancy", "flops", "stalls"};

struct Include {
  std::string expression;
  std::uint64_t occurrences = 0, kernels = 0;
  std::int64_t total_ns = 0;
};

/// Text as a YAML scalar that reads back as it is, `${` in it too.
std::string yaml(std::string_view text) {
  const std::string escaped = base::replace_all(text, "${", "\\${");
  if (base::printable(escaped) != escaped)
    return config::to_flow(config::text_value(escaped, {}));
  return "'" + base::replace_all(escaped, "'", "''") + "'";
}

std::string without_digits(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != '0')
      out += '0';
  }
  return out;
}

bool writable(const SeenRange& seen) {
  return std::all_of(seen.path.begin(), seen.path.end(), [](const std::string& name) {
    return !name.empty() && base::printable(name) == name;
  });
}

bool below(const SeenRange& child, const SeenRange& parent) {
  return child.kind == parent.kind && child.domain == parent.domain &&
         child.path.size() == parent.path.size() + 1 &&
         std::equal(parent.path.begin(), parent.path.end(), child.path.begin());
}

/// The ranges worth measuring: outermost ones with GPU work (any, in a program without), but not a
/// single one around everything: then those inside it. The most work first. Ranges that differ in
/// numbers only have one key.
std::pair<std::string, std::string> family(const SeenRange& seen) {
  return {seen.domain + (seen.kind == model::RangeKind::kPushPop ? "/" : ""),
          without_digits(seen.path.back())};
}

std::vector<const SeenRange*> choose(const doctor::ProgramFacts& facts) {
  const auto work = [&](const SeenRange& seen) {
    return facts.kernels + facts.graph_launches > 0
               ? seen.kernels + seen.graph_launches
               : static_cast<std::uint64_t>(std::max<std::int64_t>(seen.total_ns, 0));
  };
  std::vector<const SeenRange*> chosen;
  for (const SeenRange& seen : facts.ranges)
    if (seen.path.size() == 1 && seen.occurrences > seen.unclosed && work(seen) > 0 &&
        writable(seen))
      chosen.push_back(&seen);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto members = std::count_if(chosen.begin(), chosen.end(), [&](const SeenRange* other) {
        return family(*other) == family(*chosen[i]);
      });
      if (chosen[i]->occurrences != 1 || members >= static_cast<std::ptrdiff_t>(kManyAlike))
        continue;
      std::vector<const SeenRange*> inside;
      std::uint64_t sum = 0;
      for (const SeenRange& seen : facts.ranges)
        if (below(seen, *chosen[i]) && work(seen) > 0 && writable(seen)) {
          inside.push_back(&seen);
          sum += work(seen);
        }
      if (inside.empty() || sum * 10 < work(*chosen[i]) * 9)
        continue;
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
      chosen.insert(chosen.end(), inside.begin(), inside.end());
      changed = true;
      break;
    }
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](const SeenRange* a, const SeenRange* b) {
    return work(*a) > work(*b);
  });
  return chosen;
}

std::vector<Include> includes_of(const doctor::ProgramFacts& facts) {
  std::vector<const SeenRange*> chosen = choose(facts);
  std::map<std::pair<std::string, std::string>, std::size_t> alike;
  for (const SeenRange* seen : chosen)
    ++alike[family(*seen)];
  std::vector<Include> out;
  std::map<std::pair<std::string, std::string>, std::size_t> placed;
  for (const SeenRange* seen : chosen) {
    const bool pattern = alike[family(*seen)] >= kManyAlike;
    std::size_t at = out.size();
    if (pattern)
      at = placed.try_emplace(family(*seen), at).first->second;
    if (at == out.size()) {
      Include include;
      if (pattern) {
        std::string name = base::replace_all(
            model::escape_regex(without_digits(seen->path.back())), "0", "[0-9]+");
        include.expression = "regex:";
        if (!seen->domain.empty())
          include.expression += "^" + model::escape_regex(seen->domain) + "$@";
        include.expression += "^" + name + "$";
        if (seen->kind == model::RangeKind::kPushPop)
          include.expression += "/";
      } else {
        include.expression = model::expression_of(seen->domain, seen->path, seen->kind);
      }
      out.push_back(std::move(include));
    }
    out[at].occurrences += seen->occurrences - seen->unclosed;
    out[at].kernels += seen->kernels;
    out[at].total_ns += seen->total_ns;
  }
  if (out.size() > kMostIncludes)
    out.resize(kMostIncludes);
  return out;
}

/// Groups of which at least one complete set fits into the occurrences of the rarest range, and
/// what was counted.
std::pair<std::vector<std::string>, std::string> groups_that_fit(const std::string& chip,
                                                                 std::uint64_t occurrences) {
  const std::uint64_t room = occurrences > kTraced ? occurrences - kTraced : 0;
  std::vector<std::string> chosen;
  std::string told;
  const auto shipped = config::shipped_groups();
  const auto planner = profile::open_planner();
  const std::pair uncounted{room > 0 ? std::vector<std::string>{"quick"} : chosen,
                            std::string("passes could not be counted here")};
  if (!shipped || !planner)
    return uncounted;
  bool counted = false;
  for (const char* group : kGroups) {
    auto wanted = chosen;
    wanted.emplace_back(group);
    const auto plan = planner->plan(chip, wanted, *shipped);
    if (!plan)
      continue;  // the chip lacks the group's counters
    counted = true;
    if (plan->passes > room)
      continue;
    chosen = std::move(wanted);
    told = fmt::format("{} on {}, and the rarest range occurs {}",
                       base::counted(plan->passes, "pass"),
                       chip,
                       base::counted(occurrences, "time"));
  }
  return counted ? std::pair{chosen, told} : uncounted;
}

/// The text of the file; "" where no range could be measured.
std::string starter(const doctor::ProgramLook& look) {
  const std::vector<Include> includes = includes_of(look.facts);
  if (includes.empty())
    return {};
  const doctor::ProgramFacts& facts = look.facts;
  std::string text =
      "# Written by `rangescope config init` from a probe run of " +
      base::format_ns(static_cast<double>(look.ended.wall_ns)) +
      " at the program: " + base::counted(facts.ranges.size(), "range") + ", " +
      base::counted(facts.kernels, "kernel") + ".\n" +
      "# `rangescope config explain KEY` explains a key; `rangescope config validate` checks this "
      "file.\nworkload:\n  command: [";
  for (std::size_t i = 0; i < look.command.size(); ++i)
    text += (i ? ", " : "") + yaml(look.command[i]);
  text += "]\nranges:\n  include:\n";
  std::uint64_t rarest = 0;
  for (const Include& include : includes) {
    text += "    - " + yaml(include.expression) + "  # " +
            base::counted(include.occurrences, "time") + ", " +
            base::format_ns(static_cast<double>(include.total_ns)) + " in all" +
            (facts.cuda ? ", " + base::counted(include.kernels, "kernel") : "") + "\n";
    rarest = rarest == 0 ? include.occurrences : std::min(rarest, include.occurrences);
  }
  if (facts.kernels + facts.graph_launches == 0)
    return text;
  const doctor::Tools tools = profile::tools_here();
  const auto chip = profile::chip_of_machine();
  const auto [groups, told] = groups_that_fit(chip ? *chip : "GH100", rarest);
  if (groups.empty()) {
    text += "# No metric group fits: the rarest range occurs " + base::counted(rarest, "time") +
            ", and each pass takes one instance. Take rare ranges out of include, or use ncu "
            "(--ncu).\n";
    return text;
  }
  text += "pipeline:\n  native:\n    # Counters per range, one pass per instance: " + told + ".\n";
  if (!tools.native_counters)
    text +=
        "    # Not enabled, since this machine cannot: " + base::printable(tools.counters_reason) +
        ".\n";
  text += std::string("    ") + (tools.native_counters ? "" : "# ") + "metrics: [" +
          base::join(groups, ", ") + "]\n";
  return text;
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
    const std::string action = words.empty() ? "show" : words.front();
    const std::string operand = words.size() > 1 ? words[1] : "";
    if (std::find(actions.begin(), actions.end(), action) == actions.end())
      return base::fail(base::Code::kUsage,
                        "there is no 'config " + base::printable(action) + "'",
                        {},
                        base::did_you_mean(action, actions).empty()
                            ? "It is show, explain, groups, validate, trust or init."
                            : base::did_you_mean(action, actions));
    if (action == "init")
      return operand.empty() ? init() : tl::make_unexpected(misplaced(operand));
    if (!program_.empty())
      return tl::make_unexpected(misplaced(program_.front()));
    if (words.size() > 2)
      return base::fail(base::Code::kUsage,
                        "'" + base::printable(words[2]) + "' is one argument too many",
                        {},
                        "Name one key or section.");
    if (!operand.empty() && (action == "groups" || action == "validate"))
      return base::fail(base::Code::kUsage,
                        "'" + base::printable(operand) + "' is one argument too many",
                        {},
                        action == "groups"
                            ? "Write: rangescope config groups"
                            : "Name a file with --config: rangescope config validate --config " +
                                  base::shell_quote(operand));
    if (action == "groups")
      return groups();
    if (action == "trust") {
      if (operand.empty())
        return base::fail(base::Code::kUsage,
                          "no file was named",
                          {},
                          "Write: rangescope config trust rangescope.yaml");
      const auto done = config::trust(operand);
      TRY(done);
      return 0;
    }
    const auto config = TRY(arguments_.compose({}));
    if (action == "validate") {
      std::puts(("valid: " + base::join(config.files, ", ")).c_str());
      return 0;
    }
    if (action == "explain") {
      if (operand.empty())
        return base::fail(base::Code::kUsage,
                          "no key was named",
                          {},
                          "Write: rangescope config explain run.keep");
      const auto text = TRY(config::explain(config, operand));
      std::fputs(text.c_str(), stdout);
      return 0;
    }
    const config::Value* value = config::at_path(config.root, operand);
    if (!value) {
      if (config::find_key(operand))
        return std::puts("null"), 0;
      return tl::make_unexpected(config::unknown_key(operand, {}));
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
    const std::string text = look.not_started ? std::string() : starter(look);
    if (text.empty()) {
      for (const model::Finding& finding : findings)
        if (finding.verdict == model::Grade::kFail || finding.verdict == model::Grade::kWarn)
          std::fputs(report::finding_text(finding, false).c_str(), stderr);
      const int code = doctor::exit_code_of(findings);
      return base::fail(code == 66 ? base::Code::kNoInput : base::Code::kNothingCaptured,
                        "no range of the program could be measured",
                        {},
                        "Check it with: rangescope doctor -- " + base::shell_quote(program_));
    }
    TRY(write_starter(text, to_));
    if (auto trusted = config::trust(to_); !trusted)  // who wrote it for this user trusts it
      base::warn("the file is not trusted yet: rangescope config trust " + base::shell_quote(to_));
    base::info("wrote " + to_ + "; run it with: rangescope profile" +
               (to_ == "rangescope.yaml" ? "" : " --config " + base::shell_quote(to_)));
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
