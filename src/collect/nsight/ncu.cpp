// Sources of the rules: `ncu --help` and refusals of 2020.3.1, 2022.3.0 and 2024.1.1, which were
// run; 2025.3.1, whose recorded outputs are golden files; the 2026.1 documentation.
#include "collect/nsight/ncu.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "collect/nsight/explain/rules.hpp"
#include "model/name_regex.hpp"
#include "model/range_expression.hpp"

namespace rangescope::collect::ncu {
namespace {

/// Which of a kernel's names the pattern is about, as ncu calls them.
std::string_view name_base(std::string_view pattern) {
  if (pattern.starts_with("_Z")) return "mangled";
  const bool regex = pattern.starts_with(model::kRegexPrefix);
  if (!regex)
    return pattern.find_first_of("<(: ") == std::string_view::npos ? "function" : "demangled";
  pattern.remove_prefix(model::kRegexPrefix.size());
  // ^ and $ are the ends of one name only; what is beside a function's name is in the demangled one
  // only.
  const bool anchored = pattern.find_first_of("^$") != std::string_view::npos;
  return anchored && pattern.find_first_of("<: ") == std::string_view::npos ? "function"
                                                                            : "demangled";
}

/// The key of the option that a finding is about.
std::string_view key_of(const model::Finding& finding) {
  for (const auto& [id, key] : {std::pair{"command.unknown_set", "set"},
                                {"command.unknown_section", "sections"},
                                {"command.unknown_metric", "metrics"}})
    if (finding.id == id) return key;
  const std::size_t at = std::min(finding.found.find("--"), finding.found.size());
  const std::string_view rest = std::string_view(finding.found).substr(at);
  const Option* row = find_option("ncu", rest.substr(0, rest.find_first_of(" :,")));
  if (row && row->key.empty()) row = find_option("ncu", row->other);
  return row ? row->key : std::string_view{};
}

class Planner : ToolPlanner {
 public:
  Planner(const Abilities& can, const Options& options, const Request& request)
      : ToolPlanner(can, options, request, "pipeline.ncu.ncu_cli."),
        ncu_(options),
        mode_(mode_bit(options.replay_mode)) {}

  base::Result<Plan> run() {
    TRY(has_program());
    plan_.set_env["LC_ALL"] = "C";
    add({can_.path.string()});
    if (can_.has("--config-file")) add({"--config-file", "off"});
    const std::filesystem::path base = report_base(request_, ncu_);
    plan_.folders = {base.parent_path()};
    add({"--export", base.string()});
    add({"--log-file", base.string() + ".log"});
    if (can_.has("--print-units")) add({"--print-units", "base"});
    for (auto step : {&Planner::mode, &Planner::plain_options, &Planner::ranges, &Planner::content,
                      &Planner::kernels, &Planner::judge})
      TRY((this->*step)());
    TRY(end_with_program());
    return std::move(plan_);
  }

 private:
  void add(std::initializer_list<std::string> words) { plan_.argv.insert(plan_.argv.end(), words); }
  /// --every counts what was named: occurrences of ranges, where this ncu can, else launches of
  /// kernels.
  bool by_occurrences() const {
    return (mode_ & kRanges) || (options_.gating && !request_.ranges.include.empty() &&
                                 request_.ranges.exclude.empty() && can_.has("--range-filter"));
  }
  void tell_stride(const std::string& of) {
    note("every=" + std::to_string(request_.every) + ": ncu counts the " + of + ", and measures " +
         (1000 % request_.every == 0 ? "" : "the first 1,000 of ") + "1, " +
         std::to_string(1 + request_.every) + ", " + std::to_string(1 + 2 * request_.every) +
         " ...");
  }
  Done mode() {
    const std::string& mode = ncu_.replay_mode;
    if (mode_ == 0)
      return refuse("'" + mode + "' is not a replay mode", "replay_mode",
                    "Choose kernel, application, range or app-range.");
    if (!can_.takes("--replay-mode", mode)) {
      const auto known = can_.options.find("--replay-mode");
      return refuse(
          me() + " has no replay mode '" + mode + "'", "replay_mode",
          "It has " +
              base::join(known == can_.options.end() ? std::vector<std::string>{} : known->second,
                         ", ") +
              "; range needs 2022.1, app-range 2023.1.");
    }
    add({"--replay-mode", mode});
    return {};
  }

  /// The name under which the row can be passed, "" where it cannot; refuses when the user asked
  /// for it.
  [[nodiscard]] base::Result<std::string> usable(const Option& row, std::string_view value) const {
    if (row.refused_in(mode_, value) && !asked(row.key)) return std::string{};
    return option_name(row);
  }

  Done plain_options() {
    for (const Option& row : option_table("ncu")) {
      const auto* given = values(row.key);
      if (row.is(Option::kCode) || !given) continue;
      const bool yes = given->front() == "true";
      const auto option = TRY(usable(row, row.is(Option::kYesNo) && yes ? "yes" : given->front()));
      if (option.empty()) continue;
      if (row.is(Option::kSwitch)) {
        if (yes) add({option});
      } else if (row.is(Option::kEach)) {
        for (const std::string& item : *given) add({option, item});
      } else {
        add({option, row.is(Option::kYesNo) ? (yes ? "yes" : "no") : base::join(*given, ",")});
      }
    }
    return {};
  }

  /// What `doctor` finds wrong with this line is reported before it runs: ncu itself often ends
  /// with exit code 0 all the same.
  Done judge() {
    command::ShellLine shell;
    for (const std::string& word : plan_.argv) shell.words.push_back(command::literal(word));
    shell.words.front() = command::literal("ncu");
    command::Explaining about;
    about.can = &can_;
    about.line = TRY(command::parse_line(shell, &can_));
    command::judge_plan(about);
    for (const model::Finding& finding : about.findings) {
      if (finding.verdict == model::Grade::kWarn)
        note(finding.found + (finding.hint.empty() ? "" : "; " + finding.hint));
      else
        return refuse(finding.found, key_of(finding),
                      finding.hint + (finding.hint.ends_with('.') ? "" : "."));
    }
    return {};
  }

  Done ranges() {
    add({"--nvtx"});  // the state of the ranges goes into the report even where nothing is filtered
                      // by it
    const bool pass = options_.gating || (mode_ & kRanges);
    if (!options_.gating && !request_.ranges.include.empty())
      note((mode_ & kRanges) ? "gating_nvtx=false means nothing in replay mode " +
                                   ncu_.replay_mode + ": the ranges are what is replayed"
                             : "gating_nvtx=false: kernels are measured wherever they are "
                               "launched; the ranges only "
                               "label them in the report");
    if (pass) {
      for (const std::string& expression : model::expressions_of(request_.ranges.include))
        add({"--nvtx-include", expression});
      for (const std::string& expression : model::expressions_of(request_.ranges.exclude))
        add({"--nvtx-exclude", expression});
    }
    if ((mode_ & kRanges) && request_.ranges.include.empty())
      note("no range was named: replay mode " + ncu_.replay_mode +
           " takes what lies between cudaProfilerStart and cudaProfilerStop");
    std::string filter = value("range_filter");
    if (request_.every > 1 && by_occurrences()) {
      if (!filter.empty())
        return refuse("range_filter and ranges.every both choose instances of ranges",
                      "range_filter",
                      "Leave one of them out; --every is ::" + every_regex(request_.every) +
                          " of range_filter.");
      if (request_.ranges.include.empty())
        return refuse("every " + std::to_string(request_.every) + ". instance of which range?",
                      "nvtx.include", "Name a range with --include.");
      filter = "::" + every_regex(request_.every);
      tell_stride("instances of the ranges");
    }
    if (filter.empty()) return {};
    if (!can_.has("--range-filter"))
      return refuse(me() + " has no --range-filter", "range_filter",
                    "It came with ncu 2023.1; leave it out.");
    add({"--range-filter", filter});
    return {};
  }

  Done content() {
    const bool needs_sections = !value("set").empty() || values("sections") || !values("metrics");
    if (needs_sections && can_.sets.empty() && can_.sections.empty())
      return base::fail(
          base::Code::kToolMissing,
          me() + " finds none of its section files, so it would collect nothing",
          can_.path.string(),
          "Reinstall it, name their folder with section_folders, or ask for metrics only "
          "(pipeline.ncu.ncu_cli.metrics).");
    if (std::string set = value("set"); !set.empty()) {
      // The default set was called "default" up to 2022 and is "basic" since 2023.
      if ((set == "basic" || set == "default") && !can_.sets.count(set) &&
          !can_.default_set.empty()) {
        note("the set '" + set + "' is called '" + can_.default_set + "' in " + me());
        set = can_.default_set;
      }
      add({"--set", set});
    }
    if (const auto* sections = values("sections"))
      for (const std::string& section : *sections) add({"--section", section});
    if (const auto* metrics = values("metrics")) {
      for (const std::string& metric : *metrics)
        if (can_.metrics_elsewhere && !knows_metric(can_, metric) && metric_regex(metric).empty())
          note("metric '" + metric + "' is unknown here, where no ncu is installed to ask");
      add({"--metrics", base::join(*metrics, ",")});
    }
    return {};
  }

  Done kernels() {
    std::string id = value("kernel_id");
    const std::string name = value("kernel_name");
    if (request_.every > 1 && !by_occurrences()) {
      if (!id.empty())
        return refuse("kernel_id and ranges.every both choose launches", "kernel_id",
                      "Leave one of them out; --every is :::" + every_regex(request_.every) +
                          " of kernel_id.");
      id = ":::" + every_regex(request_.every);
      tell_stride("launches of each kernel");
    }
    if (mode_ & kRanges) {
      for (const auto& [key, text] : {std::pair{"kernel_name", &name}, {"kernel_id", &id}})
        if (!text->empty()) {
          if (asked(key))
            return refuse(std::string("ncu refuses --") + base::replace_all(key, "_", "-") +
                              " in replay mode " + ncu_.replay_mode +
                              ": a range is measured as a whole",
                          key, "Use replay mode kernel, or leave it out.");
          note(std::string(key) + " is left out: a range is measured as a whole in replay mode " +
               ncu_.replay_mode);
        }
      if (name.empty() && !request_.kernels.empty())
        note("--kernel narrows the report only: a range is measured as a whole in replay mode " +
             ncu_.replay_mode);
      return {};
    }
    if (!id.empty()) add({"--kernel-id", id});
    const bool old_names = !can_.has("--kernel-name");
    std::string base = value("kernel_name_base").empty() ? "function" : value("kernel_name_base");
    std::string pattern = name;
    if (pattern.empty() && !ncu_.kernels.empty()) {
      pattern = kernel_regex(ncu_.kernels);
      base = "function";
    }
    if (const KernelFilter filter = kernel_filter(request_.kernels); pattern.empty()) {
      pattern = filter.name;
      if (!pattern.empty() && !asked("kernel_name_base")) base = filter.base;
      if (!filter.note.empty()) note(filter.note);
    }
    if (pattern.empty() && id.empty()) return {};
    if (!pattern.empty() && !pattern.starts_with("regex:")) {
      // ncu takes a plain name exactly; patterns that were meant as such would match nothing, with
      // exit code 0.
      if (pattern.find_first_of("*?|^$") != std::string::npos)
        note("kernel_name '" + pattern + "' is matched exactly, letter by letter; write " +
             meant_regex(pattern) + " if it is a pattern");
      if (old_names) pattern = "regex:^" + model::escape_regex(pattern) + "$";
    }
    add({old_names ? "--kernel-regex-base" : "--kernel-name-base", base});
    if (!pattern.empty())
      add({old_names ? "--kernel-regex" : "--kernel-name",
           old_names ? pattern.substr(6) : pattern});
    return {};
  }

  const Options& ncu_;
  const unsigned mode_;
};

}  // namespace

base::Result<Plan> plan(const Abilities& can, const Options& options, const Request& request) {
  return Planner(can, options, request).run();
}

std::filesystem::path report_base(const Request& request, const Options& options) {
  return request.run_dir / "ncu" / options.report;
}

std::string_view report_extension(const Abilities& can) {
  return can.version < Version{2026, 3, 0} ? ".ncu-rep" : ".ncu-repz";
}

std::filesystem::path page_path(const std::filesystem::path& report, const PageFile& page) {
  const std::string stem = report.stem().string();
  const std::string prefix = stem == "ncu" ? "" : stem + "-";
  return report.parent_path() / (prefix + std::string(page.name));
}

Plan page_plan(const Abilities& can, const std::filesystem::path& report, const PageFile& page) {
  Plan plan;
  plan.collector = "ncu";
  plan.argv = {can.path.string()};
  const auto add = [&](std::initializer_list<std::string> words) {
    plan.argv.insert(plan.argv.end(), words);
  };
  if (can.has("--config-file")) add({"--config-file", "off"});
  add({"--import", report.string(), "--page", std::string(page.page)});
  if (page.csv) add({"--csv", can.has("--print-units") ? "--print-units" : "--units", "base"});
  add({"--log-file", page_path(report, page).string()});
  plan.set_env = {{"LC_ALL", "C"}};  // without separators of thousands
  plan.cwd = report.parent_path();
  plan.timeout = std::chrono::minutes(30);
  return plan;
}

KernelFilter kernel_filter(const model::KernelSelection& kernels) {
  KernelFilter filter;
  if (!kernels.exclude.empty())
    filter.note = "ncu cannot leave out kernels by name: it measures those too";
  if (kernels.include.empty()) return filter;
  const std::string_view base = name_base(kernels.include.front().text());
  for (const model::KernelPattern& pattern : kernels.include) {
    if (name_base(pattern.text()) == base) continue;
    filter.note =
        "ncu takes short, demangled or mangled kernel names, not several of these: it measures "
        "every kernel";
    return filter;
  }
  filter.base = base;
  if (kernels.include.size() == 1) {
    filter.name = kernels.include.front().text();
    return filter;
  }
  for (const model::KernelPattern& pattern : kernels.include) {
    const std::string_view text = pattern.text();
    filter.name += filter.name.empty() ? model::kRegexPrefix : "|";
    filter.name += text.starts_with(model::kRegexPrefix)
                       ? "(" + std::string(text.substr(model::kRegexPrefix.size())) + ")"
                       : "^" + model::escape_regex(text) + "$";
  }
  return filter;
}

std::string kernel_regex(std::span<const std::string> names) {
  std::string out = "regex:^(";
  for (std::size_t i = 0; i < names.size(); ++i)
    out += (i ? "|" : "") + model::escape_regex(names[i]);
  return out + ")$";
}

std::vector<std::vector<std::string>> split_kernels(std::span<const std::string> names,
                                                    std::size_t longest) {
  std::vector<std::vector<std::string>> groups;
  std::size_t length = 0;
  for (const std::string& name : names) {
    const std::size_t more = model::escape_regex(name).size() + 1;
    if (groups.empty() || length + more > longest) {
      groups.emplace_back();
      length = 10;
    }
    groups.back().push_back(name);
    length += more;
  }
  return groups;
}

bool knows_metric(const Abilities& abilities, const std::string& metric) {
  if (abilities.metrics.empty() || metric.find(':') != std::string::npos) return true;
  const std::string name = metric.substr(0, metric.find('.'));
  // Launch, device and sampling metrics exist without being listed by --query-metrics.
  for (const char* prefix :
       {"launch__", "device__", "profiler__", "smsp__pcsamp", "group_", "derived__", "numa__",
        "nvl", "pmsampling", "inst_executed", "sass__", "thread_inst", "memory_"})
    if (name.starts_with(prefix)) return true;
  return abilities.metrics.count(name) > 0;
}

std::string metric_regex(std::string_view metric) {
  if (metric.find(':') != std::string_view::npos ||
      metric.find_first_of("*?") == std::string_view::npos)
    return {};
  return meant_regex(metric);
}

std::string every_regex(std::uint32_t every) {
  std::string out = "^(";
  if (every > 0 && 1000 % every == 0) {
    const std::size_t digits = 10 % every == 0 ? 1 : 100 % every == 0 ? 2 : 3;
    std::string ends;
    for (std::uint32_t n = 1; n <= (digits == 1 ? 10u : digits == 2 ? 100u : 1000u); n += every) {
      std::string number = std::to_string(n);
      if (number.size() < digits) out += number + "|";
      number.insert(0, digits - std::min(digits, number.size()), '0');
      ends += (ends.empty() ? "" : "|") + number;
    }
    return out + ".*(" + ends + "))$";
  }
  for (std::uint64_t i = 0; i < 1000; ++i) out += (i ? "|" : "") + std::to_string(1 + i * every);
  return out + ")$";
}

// context:stream:[regex:]name:invocation, cut at every colon, without escapes. Taken apart with ncu
// 2022.3.0 and 2024.1.1: "Invalid kernel identifier", "Invalid name operator ''", "Please use
// option --nvtx for matching either context or stream name", "Invalid invocation 5a in kernel
// regex": an expression with a digit and no letter (.*5|3 is the manual's).
std::string kernel_id_mistake(std::string_view id, bool nvtx) {
  const auto parts = base::split(id, ':');
  if (parts.size() == 5 && parts[2] != "regex")
    return "'" + std::string(parts[2]) + "' is not a name operator; only regex is";
  if (parts.size() != 4 && parts.size() != 5)
    return "it has " + base::counted(parts.size(), "part") + ", not 4";
  const auto all = [](std::string_view text, std::string_view letters) {
    return text.find_first_not_of(letters) == std::string_view::npos;
  };
  constexpr std::string_view kDigits = "0123456789";
  if (!nvtx && !(all(parts[0], kDigits) && all(parts[1], kDigits)))
    return "a context or stream is named, which needs --nvtx";
  if (parts.size() == 5)
    if (auto mistake = regex_mistake("regex:" + std::string(parts[3])); !mistake.empty())
      return mistake;
  const std::string_view invocation = parts.back();
  const bool letter = std::any_of(invocation.begin(), invocation.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  if (invocation.empty() ||
      (!letter && invocation.find_first_of(kDigits) != std::string_view::npos))
    return {};
  return "the invocation '" + std::string(invocation) +
         "' is neither a number nor an expression of digits without letters";
}

// ncu's expressions are Boost's (Perl), RE2's are fewer: what only RE2 lacks is no mistake.
std::string regex_mistake(std::string_view value) {
  if (!value.starts_with("regex:")) return {};
  const auto parsed = model::NameRegex::parse(value.substr(6));
  if (parsed) return {};
  const std::string& what = parsed.error().what;
  for (const char* lacking :
       {"invalid perl operator", "invalid escape sequence", "bad repetition operator",
        "invalid named capture", "pattern too large"})
    if (what.find(lacking) != std::string::npos) return {};
  return "'" + base::printable(value) + "' is not a regular expression: " + what;
}

std::string meant_regex(std::string_view text) {
  if (text.find(".*") != std::string_view::npos ||
      text.find_first_of("|^$+\\") != std::string_view::npos)
    return "regex:" + std::string(text);
  std::string out = text.starts_with('*') ? "" : "^";
  for (const char c : text)
    out += c == '*' ? ".*" : c == '?' ? "." : model::escape_regex(std::string(1, c));
  return "regex:" + out + (text.ends_with('*') ? "" : "$");
}

}  // namespace rangescope::collect::ncu
