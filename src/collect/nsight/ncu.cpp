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

/// Which of a kernel's names the pattern is for, in ncu's words.
std::string_view name_base(std::string_view pattern) {
  if (pattern.starts_with("_Z"))
    return "mangled";
  const auto has_any = [&](std::string_view characters) {
    return pattern.find_first_of(characters) != std::string_view::npos;
  };
  if (!pattern.starts_with(model::kRegexPrefix))
    return has_any("<(: ") ? "demangled" : "function";
  pattern.remove_prefix(model::kRegexPrefix.size());
  // ^ and $ are the ends of one kind of name; only the demangled name has more than the function's.
  return has_any("^$") && !has_any("<: ") ? "function" : "demangled";
}

/// The configuration key of the option that a finding is about.
std::string_view key_of(const model::Finding& finding) {
  for (const auto& [id, key] : {std::pair{"command.unknown_set", "set"},
                                {"command.unknown_section", "sections"},
                                {"command.unknown_metric", "metrics"}})
    if (finding.id == id)
      return key;
  const std::size_t option_start = std::min(finding.found.find("--"), finding.found.size());
  const std::string_view rest = std::string_view(finding.found).substr(option_start);
  const Option* row = find_option("ncu", rest.substr(0, rest.find_first_of(" :,")));
  if (row && row->key.empty())
    row = find_option("ncu", row->other);
  if (!row)
    return {};
  return row->key;
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
    if (can_.has("--config-file"))
      add({"--config-file", "off"});
    const std::filesystem::path base = report_base(request_, ncu_);
    plan_.folders = {base.parent_path()};
    add({"--export", base.string()});
    add({"--log-file", base.string() + ".log"});
    if (can_.has("--print-units"))
      add({"--print-units", "base"});
    for (auto step : {&Planner::mode,
                      &Planner::plain_options,
                      &Planner::ranges,
                      &Planner::content,
                      &Planner::kernels,
                      &Planner::judge})
      TRY((this->*step)());
    TRY(end_with_program());
    return std::move(plan_);
  }

 private:
  void add(std::initializer_list<std::string> words) { plan_.argv.insert(plan_.argv.end(), words); }
  [[nodiscard]] bool replays_ranges() const { return (mode_ & kRanges) != 0; }
  /// --every counts instances of the ranges if this ncu can, else launches of kernels.
  [[nodiscard]] bool counts_instances() const {
    if (replays_ranges())
      return true;
    const bool names_ranges = !request_.ranges.include.empty() && request_.ranges.exclude.empty();
    return options_.gating && names_ranges && can_.has("--range-filter");
  }
  void note_stride(const std::string& counted) {
    const std::uint32_t every = request_.every;
    const std::string limit = 1000 % every == 0 ? "" : "the first 1,000 of ";
    note("every=" + std::to_string(every) + ": ncu counts the " + counted + ", and measures " +
         limit + "1, " + std::to_string(1 + every) + ", " + std::to_string(1 + 2 * every) + " ...");
  }
  Done mode() {
    const std::string& mode = ncu_.replay_mode;
    if (mode_ == 0)
      return refuse("'" + mode + "' is not a replay mode",
                    "replay_mode",
                    "Choose kernel, application, range or app-range.");
    if (!can_.takes("--replay-mode", mode)) {
      std::vector<std::string> modes;
      const auto option = can_.options.find("--replay-mode");
      if (option != can_.options.end())
        modes = option->second;
      return refuse(
          me() + " has no replay mode '" + mode + "'",
          "replay_mode",
          "It has " + base::join(modes, ", ") + "; range needs 2022.1, app-range 2023.1.");
    }
    add({"--replay-mode", mode});
    return {};
  }

  /// The name of the option in this version; "" if it cannot be passed. Refuses that if the user
  /// set it.
  [[nodiscard]] base::Result<std::string> usable(const Option& row, std::string_view value) const {
    if (row.refused_in(mode_, value) && !asked(row.key))
      return std::string{};
    return option_name(row);
  }

  Done plain_options() {
    for (const Option& row : option_table("ncu")) {
      const auto* configured = values(row.key);
      if (row.is(Option::kCode) || !configured)
        continue;
      std::string text = base::join(*configured, ",");
      std::string first_value = configured->front();
      const bool is_true = first_value == "true";
      if (row.is(Option::kYesNo))
        text = is_true ? "yes" : "no";
      if (row.is(Option::kYesNo) && is_true)
        first_value = "yes";
      const auto option = TRY(usable(row, first_value));
      if (option.empty())
        continue;
      if (row.is(Option::kSwitch)) {
        if (is_true)
          add({option});
      } else if (row.is(Option::kEach)) {
        for (const std::string& item : *configured)
          add({option, item});
      } else {
        add({option, text});
      }
    }
    return {};
  }

  /// Reports the mistakes that `doctor` finds in this line before it runs: ncu itself often ends
  /// with exit code 0 all the same.
  Done judge() {
    command::ShellLine shell;
    for (const std::string& word : plan_.argv)
      shell.words.push_back(command::literal(word));
    shell.words.front() = command::literal("ncu");
    command::Explaining about;
    about.can = &can_;
    about.line = TRY(command::parse_line(shell, &can_));
    command::judge_plan(about);
    for (const model::Finding& finding : about.findings) {
      if (finding.verdict == model::Grade::kWarn) {
        std::string text = finding.found;
        if (!finding.hint.empty())
          text += "; " + finding.hint;
        note(std::move(text));
        continue;
      }
      std::string hint = finding.hint;
      if (!hint.ends_with('.'))
        hint += '.';
      return refuse(finding.found, key_of(finding), hint);
    }
    return {};
  }

  void note_no_gating() {
    if (replays_ranges())
      note("gating_nvtx=false means nothing in replay mode " + ncu_.replay_mode +
           ": the ranges are what is replayed");
    else
      note(
          "gating_nvtx=false: kernels are measured wherever they are launched; the ranges only "
          "label them in the report");
  }

  Done ranges() {
    add({"--nvtx"});  // without a filter too: the report then names the ranges
    const bool names_ranges = !request_.ranges.include.empty();
    if (!options_.gating && names_ranges)
      note_no_gating();
    if (options_.gating || replays_ranges()) {
      for (const std::string& expression : model::expressions_of(request_.ranges.include))
        add({"--nvtx-include", expression});
      for (const std::string& expression : model::expressions_of(request_.ranges.exclude))
        add({"--nvtx-exclude", expression});
    }
    if (replays_ranges() && !names_ranges)
      note("no range was named: replay mode " + ncu_.replay_mode +
           " takes what lies between cudaProfilerStart and cudaProfilerStop");
    return range_filter();
  }

  /// Which instances of the ranges are measured.
  Done range_filter() {
    std::string filter = value("range_filter");
    if (request_.every > 1 && counts_instances()) {
      if (!filter.empty())
        return refuse("range_filter and ranges.every both choose instances of ranges",
                      "range_filter",
                      "Leave one of them out; --every is ::" + every_regex(request_.every) +
                          " of range_filter.");
      if (request_.ranges.include.empty())
        return refuse("every " + std::to_string(request_.every) + ". instance of which range?",
                      "nvtx.include",
                      "Name a range with --include.");
      filter = "::" + every_regex(request_.every);
      note_stride("instances of the ranges");
    }
    if (filter.empty())
      return {};
    if (!can_.has("--range-filter"))
      return refuse(me() + " has no --range-filter",
                    "range_filter",
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
      for (const std::string& section : *sections)
        add({"--section", section});
    if (const auto* metrics = values("metrics")) {
      for (const std::string& metric : *metrics)
        if (can_.metrics_elsewhere && !knows_metric(can_, metric) && metric_regex(metric).empty())
          note("metric '" + metric + "' is unknown here, where no ncu is installed to ask");
      add({"--metrics", base::join(*metrics, ",")});
    }
    return {};
  }

  /// Replay of ranges takes no filter of kernels.
  Done no_kernel_filter(const std::string& name, const std::string& id) {
    for (const auto& [key, text] : {std::pair{"kernel_name", &name}, {"kernel_id", &id}}) {
      if (text->empty())
        continue;
      const std::string option = "--" + base::replace_all(key, "_", "-");
      if (asked(key))
        return refuse("ncu refuses " + option + " in replay mode " + ncu_.replay_mode +
                          ": a range is measured as a whole",
                      key,
                      "Use replay mode kernel, or leave it out.");
      note(std::string(key) + " is left out: a range is measured as a whole in replay mode " +
           ncu_.replay_mode);
    }
    if (name.empty() && !request_.kernels.empty())
      note("--kernel narrows the report only: a range is measured as a whole in replay mode " +
           ncu_.replay_mode);
    return {};
  }

  Done kernels() {
    std::string id = value("kernel_id");
    const std::string name = value("kernel_name");
    if (request_.every > 1 && !counts_instances()) {
      if (!id.empty())
        return refuse("kernel_id and ranges.every both choose launches",
                      "kernel_id",
                      "Leave one of them out; --every is :::" + every_regex(request_.every) +
                          " of kernel_id.");
      id = ":::" + every_regex(request_.every);
      note_stride("launches of each kernel");
    }
    if (replays_ranges())
      return no_kernel_filter(name, id);
    if (!id.empty())
      add({"--kernel-id", id});
    const bool has_old_names = !can_.has("--kernel-name");
    std::string base = value("kernel_name_base");
    if (base.empty())
      base = "function";
    std::string pattern = name;
    if (pattern.empty() && !ncu_.kernels.empty()) {
      pattern = kernel_regex(ncu_.kernels);
      base = "function";
    }
    if (const KernelFilter filter = kernel_filter(request_.kernels); pattern.empty()) {
      pattern = filter.name;
      if (!pattern.empty() && !asked("kernel_name_base"))
        base = filter.base;
      if (!filter.note.empty())
        note(filter.note);
    }
    if (pattern.empty() && id.empty())
      return {};
    if (!pattern.empty() && !pattern.starts_with("regex:")) {
      // ncu compares a plain name exactly: a pattern without regex: matches nothing, with exit
      // code 0.
      if (pattern.find_first_of("*?|^$") != std::string::npos)
        note("kernel_name '" + pattern + "' is matched exactly, letter by letter; write " +
             meant_regex(pattern) + " if it is a pattern");
      if (has_old_names)
        pattern = "regex:^" + model::escape_regex(pattern) + "$";
    }
    add({has_old_names ? "--kernel-regex-base" : "--kernel-name-base", base});
    if (pattern.empty())
      return {};
    if (has_old_names)
      add({"--kernel-regex", pattern.substr(6)});
    else
      add({"--kernel-name", pattern});
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
  std::string name(page.name);
  if (stem != "ncu")
    name = stem + "-" + name;
  return report.parent_path() / name;
}

Plan page_plan(const Abilities& can, const std::filesystem::path& report, const PageFile& page) {
  Plan plan;
  plan.collector = "ncu";
  plan.argv = {can.path.string()};
  const auto add = [&](std::initializer_list<std::string> words) {
    plan.argv.insert(plan.argv.end(), words);
  };
  if (can.has("--config-file"))
    add({"--config-file", "off"});
  add({"--import", report.string(), "--page", std::string(page.page)});
  if (page.csv)
    add({"--csv", can.has("--print-units") ? "--print-units" : "--units", "base"});
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
  if (kernels.include.empty())
    return filter;
  const std::string_view base = name_base(kernels.include.front().text());
  for (const model::KernelPattern& pattern : kernels.include) {
    if (name_base(pattern.text()) == base)
      continue;
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
    if (text.starts_with(model::kRegexPrefix))
      filter.name += "(" + std::string(text.substr(model::kRegexPrefix.size())) + ")";
    else
      filter.name += "^" + model::escape_regex(text) + "$";
  }
  return filter;
}

std::string kernel_regex(std::span<const std::string> names) {
  std::vector<std::string> escaped;
  for (const std::string& name : names)
    escaped.push_back(model::escape_regex(name));
  return "regex:^(" + base::join(escaped, "|") + ")$";
}

std::vector<std::vector<std::string>> split_kernels(std::span<const std::string> names,
                                                    std::size_t longest) {
  constexpr std::size_t kFrameLength = 10;  // of "regex:^(" and ")$"
  std::vector<std::vector<std::string>> groups;
  std::size_t length = 0;
  for (const std::string& name : names) {
    const std::size_t name_length = model::escape_regex(name).size() + 1;
    if (groups.empty() || length + name_length > longest) {
      groups.emplace_back();
      length = kFrameLength;
    }
    groups.back().push_back(name);
    length += name_length;
  }
  return groups;
}

bool knows_metric(const Abilities& abilities, const std::string& metric) {
  if (abilities.metrics.empty() || metric.find(':') != std::string::npos)
    return true;
  const std::string name = metric.substr(0, metric.find('.'));
  // Launch, device and sampling metrics exist without being listed by --query-metrics.
  for (const char* prefix : {"launch__",
                             "device__",
                             "profiler__",
                             "smsp__pcsamp",
                             "group_",
                             "derived__",
                             "numa__",
                             "nvl",
                             "pmsampling",
                             "inst_executed",
                             "sass__",
                             "thread_inst",
                             "memory_"})
    if (name.starts_with(prefix))
      return true;
  return abilities.metrics.count(name) > 0;
}

std::string metric_regex(std::string_view metric) {
  if (metric.find(':') != std::string_view::npos ||
      metric.find_first_of("*?") == std::string_view::npos)
    return {};
  return meant_regex(metric);
}

namespace {

/// How many of the last digits decide whether a number is 1, 1 + every, 1 + 2 * every ...: 1 to 3;
/// 0 if more than three do.
std::size_t deciding_digits(std::uint32_t every) {
  std::size_t digits = 0;
  for (const std::uint32_t period : {10u, 100u, 1000u}) {
    ++digits;
    if (every > 0 && period % every == 0)
      return digits;
  }
  return 0;
}

}  // namespace

std::string every_regex(std::uint32_t every) {
  constexpr std::uint64_t kMaxNumbers = 1000;
  std::vector<std::string> numbers;
  const std::size_t digits = deciding_digits(every);
  if (digits == 0) {
    for (std::uint64_t i = 0; i < kMaxNumbers; ++i)
      numbers.push_back(std::to_string(1 + i * every));
    return "^(" + base::join(numbers, "|") + ")$";
  }
  std::vector<std::string> endings;
  std::uint32_t period = 1;
  for (std::size_t i = 0; i < digits; ++i)
    period *= 10;
  for (std::uint32_t n = 1; n <= period; n += every) {
    std::string number = std::to_string(n);
    if (number.size() < digits)
      numbers.push_back(number);
    number.insert(0, digits - std::min(digits, number.size()), '0');
    endings.push_back(number);
  }
  numbers.push_back(".*(" + base::join(endings, "|") + ")");
  return "^(" + base::join(numbers, "|") + ")$";
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
  constexpr std::string_view kDigits = "0123456789";
  const auto is_number = [&](std::string_view text) {
    return text.find_first_not_of(kDigits) == std::string_view::npos;
  };
  if (!nvtx && !(is_number(parts[0]) && is_number(parts[1])))
    return "a context or stream is named, which needs --nvtx";
  if (parts.size() == 5) {
    const std::string mistake = regex_mistake("regex:" + std::string(parts[3]));
    if (!mistake.empty())
      return mistake;
  }
  const std::string_view invocation = parts.back();
  const bool has_letter = std::ranges::any_of(
      invocation, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
  const bool has_digit = invocation.find_first_of(kDigits) != std::string_view::npos;
  if (invocation.empty() || (has_digit && !has_letter))
    return {};
  return "the invocation '" + std::string(invocation) +
         "' is neither a number nor an expression of digits without letters";
}

// ncu's expressions are those of Boost (Perl). What only RE2 lacks is not a mistake.
std::string regex_mistake(std::string_view value) {
  if (!value.starts_with("regex:"))
    return {};
  const auto parsed = model::NameRegex::parse(value.substr(6));
  if (parsed)
    return {};
  const std::string& problem = parsed.error().what;
  for (const char* lacking : {"invalid perl operator",
                              "invalid escape sequence",
                              "bad repetition operator",
                              "invalid named capture",
                              "pattern too large"})
    if (problem.find(lacking) != std::string::npos)
      return {};
  return "'" + base::printable(value) + "' is not a regular expression: " + problem;
}

std::string meant_regex(std::string_view text) {
  const bool is_regex = text.find(".*") != std::string_view::npos ||
                        text.find_first_of("|^$+\\") != std::string_view::npos;
  if (is_regex)
    return "regex:" + std::string(text);
  std::string regex = "regex:";
  if (!text.starts_with('*'))
    regex += '^';
  for (const char c : text) {
    if (c == '*')
      regex += ".*";
    else if (c == '?')
      regex += '.';
    else
      regex += model::escape_regex(std::string(1, c));
  }
  if (!text.ends_with('*'))
    regex += '$';
  return regex;
}

}  // namespace rangescope::collect::ncu
