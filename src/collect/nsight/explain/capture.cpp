#include <algorithm>
#include <array>
#include <utility>

#include "base/nsys_reports.hpp"
#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"
#include "collect/nsight/nsys.hpp"
#include "model/range_expression.hpp"
#include "model/range_order.hpp"

namespace rangescope::collect::command {
namespace {

constexpr std::string_view kRegisterOnly = "NSYS_NVTX_PROFILER_REGISTER_ONLY";

/// RANGE@DOMAIN, the order of nsys; `\@` and `\\` are letters.
struct Capture {
  std::string range;
  std::optional<std::string> domain;  ///< "*" for any
};

Capture parse_capture(std::string_view value) {
  Capture capture;
  std::string* part = &capture.range;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const bool is_escape =
        value[i] == '\\' && i + 1 < value.size() && (value[i + 1] == '@' || value[i + 1] == '\\');
    if (is_escape) {
      *part += value[++i];
    } else if (value[i] == '@' && !capture.domain) {
      capture.domain.emplace();
      part = &*capture.domain;
    } else {
      *part += value[i];
    }
  }
  return capture;
}

std::string escaped_name(std::string_view name) {
  return base::replace_all(base::replace_all(name, "\\", "\\\\"), "@", "\\@");
}

std::string capture_text(const Capture& capture) {
  std::string text = escaped_name(capture.range);
  if (!capture.domain)
    return text;
  if (*capture.domain == "*")
    return text + "@*";
  return text + "@" + escaped_name(*capture.domain);
}

bool is_default_domain(const std::string& domain) {
  return domain == "default" || domain == model::kDefaultDomain;
}

void remove_gate(CommandLine& line) {
  for (const char* name :
       {"--capture-range", "--nvtx-capture", "--capture-range-end", "--stop-on-range-end"})
    line.remove(name);
}

/// Is the word named as a domain elsewhere on the line, or does it look like one?
bool means_domain(const CommandLine& line, const std::string& word) {
  for (const char* option : {"--nvtx-domain-include", "--nvtx-domain-exclude"}) {
    const std::string value = line.value(option);
    for (const std::string_view part : base::split(value, ','))
      if (part == word)
        return true;
  }
  return model::looks_like_domain(word);
}

/// Judges the value of --nvtx-capture step by step.
class CaptureJudge {
 public:
  CaptureJudge(Explaining& about, std::string written)
      : about_(about),
        written_(std::move(written)),
        shown_("--nvtx-capture=" + base::shell_quote(written_)),
        capture_(parse_capture(written_)) {}

  /// Corrects the value; false if the gate was removed because the value can name no range.
  bool run() {
    if (nsys::is_placeholder(written_)) {  // of nsys's help
      about_.warn("placeholder_capture",
                  shown_ + ": no range of the program is likely to be called 'range'");
      remove_gate(about_.line);
      return false;
    }
    if (capture_.range.starts_with("regex:"))
      return refuse("pattern_in_capture", "nsys knows no regular expressions");
    quotes();
    if (capture_.range.find(';') != std::string::npos)
      return refuse("list_in_expression", "nsys takes one range");
    reversed_domain();
    default_domain();
    ncu_syntax();
    if (capture_.range.find_first_of("*?") != std::string::npos)
      return refuse("pattern_in_capture", "nsys knows no patterns");
    return true;
  }

 private:
  bool refuse(std::string_view id, const std::string& reason) {
    about_.fail(id, shown_ + ": " + reason);
    remove_gate(about_.line);
    return false;
  }

  /// Reports a mistake that capture_ no longer has.
  void correct(std::string_view id, bool is_certain, const std::string& reason) {
    const std::string right = capture_text(capture_);
    const std::string hint = "Write --nvtx-capture=" + base::shell_quote(right);
    if (is_certain)
      about_.fail(id, shown_ + ": " + reason, hint);
    else
      about_.warn(id, shown_ + ": " + reason, hint);
    about_.line.set("--nvtx-capture", right);
  }

  void quotes() {
    std::string& range = capture_.range;
    if (range.size() < 2 || range.back() != range.front())
      return;
    if (range.front() != '"' && range.front() != '\'')
      return;
    range = range.substr(1, range.size() - 2);
    correct("quoted_expression", true, "the quotes are part of the value");
  }

  /// DOMAIN@RANGE, ncu's order.
  void reversed_domain() {
    if (!capture_.domain || *capture_.domain == "*")
      return;
    std::string &range = capture_.range, &domain = *capture_.domain;
    const bool is_certain = range == "*" || is_default_domain(range) || domain.ends_with('/');
    const bool looks_reversed = means_domain(about_.line, range) &&
                                !means_domain(about_.line, domain) &&
                                model::has_small_letters(domain);
    if (!is_certain && !looks_reversed)
      return;
    std::swap(range, domain);
    if (range.ends_with('/'))
      range.pop_back();
    if (is_default_domain(domain))
      capture_.domain.reset();
    correct("reversed_domain", is_certain, "nsys takes the range first and the domain after @");
  }

  void default_domain() {
    if (!capture_.domain || !is_default_domain(*capture_.domain))
      return;
    capture_.domain.reset();
    correct("default_domain", true, "to name the default domain, leave the domain out");
  }

  void ncu_syntax() {
    std::string& range = capture_.range;
    if (range.size() < 2 || !(range.ends_with('/') || range.starts_with('[')))
      return;
    if (range.starts_with('['))
      range.erase(0, 1);
    while (range.size() > 1 && (range.ends_with('/') || range.ends_with(']')))
      range.pop_back();
    correct("slash_in_capture",
            true,
            "slashes and brackets are ncu's; to nsys they are letters of the name");
  }

  Explaining& about_;
  const std::string written_, shown_;
  Capture capture_;
};

bool sets_register_only(const std::string& assignments, char separator) {
  for (const std::string_view part : base::split(assignments, separator))
    if (base::trim(part) == std::string(kRegisterOnly) + "=0")
      return true;
  return false;
}

/// nsys gates only on registered strings unless a setting says otherwise.
void judge_registered(Explaining& about) {
  CommandLine& line = about.line;
  // Ranges of a named domain are often registered strings, those of the default domain rarely.
  const Capture capture = parse_capture(line.value("--nvtx-capture"));
  if (capture.domain && *capture.domain != "*")
    return;
  const std::string setting = std::string(kRegisterOnly) + "=0";
  const auto inherited = about.environment.find(std::string(kRegisterOnly));
  if (inherited != about.environment.end() && inherited->second == "0")
    return;
  if (sets_register_only(line.value("--env-var"), ','))
    return;
  for (const Word& word : line.before)
    if (word.text == setting)
      return;
  // It starts no program: the environment was that of `nsys launch`, which is unknown.
  if (line.verb == "start")
    return;
  about.warn(
      "unregistered_strings",
      "--nvtx-capture=" + base::shell_quote(line.value("--nvtx-capture")) + " without " + setting);
  const std::string variables = line.value("--env-var");
  if (variables.empty())
    line.add("--env-var", setting);
  else
    line.set("--env-var", variables + "," + setting);
}

}  // namespace

namespace {

/// --capture-range, --nvtx-capture and --capture-range-end have to fit each other.
void judge_gate(Explaining& about) {
  CommandLine& line = about.line;
  const std::string kind = line.value("--capture-range");
  const bool has_range = line.has("--nvtx-capture");
  const bool has_no_gate = kind.empty() || kind == "none";
  if (!has_range) {
    if (kind == "nvtx") {
      about.fail("capture_without_range", "--capture-range=nvtx without --nvtx-capture");
      remove_gate(line);
    } else if (has_no_gate && line.has("--capture-range-end")) {
      about.fail("capture_end_alone", "--capture-range-end without --capture-range");
      line.remove("--capture-range-end");
    }
    return;
  }
  if (has_no_gate) {
    about.fail("capture_not_gated",
               "--nvtx-capture is used with --capture-range=nvtx only",
               "Write --capture-range=nvtx");
    line.set("--capture-range", "nvtx");
  } else if (kind != "nvtx") {
    about.fail("capture_not_gated",
               "--nvtx-capture is used with --capture-range=nvtx only, not with " + kind,
               "Leave --nvtx-capture out, or write --capture-range=nvtx");
    line.remove("--nvtx-capture");
  }
}

void judge_domains(Explaining& about) {
  CommandLine& line = about.line;
  if (line.has("--nvtx-domain-include") && line.has("--nvtx-domain-exclude")) {
    about.fail("domains_both", "--nvtx-domain-include together with --nvtx-domain-exclude");
    line.remove("--nvtx-domain-exclude");
  }
  for (const std::string name : {"--nvtx-domain-include", "--nvtx-domain-exclude"}) {
    const std::string value = line.value(name);
    if (value.find(model::kDefaultDomain) == std::string::npos)
      continue;
    const std::string right = base::replace_all(value, model::kDefaultDomain, "default");
    about.fail("default_domain",
               name + "=" + base::shell_quote(value) + ": ncu's name of the default domain",
               "Write " + name + "=" + right);
    line.set(name, right);
  }
}

}  // namespace

void judge_capture(Explaining& about) {
  const CommandLine& line = about.line;
  if (line.tool != "nsys")
    return;
  judge_gate(about);
  const Argument* capture = line.find("--nvtx-capture");
  const bool has_value = capture && capture->value && !capture->value->expands;
  if (has_value && line.value("--capture-range") == "nvtx") {
    CaptureJudge judge(about, std::string(capture->value->text));
    if (judge.run())
      judge_registered(about);
  }
  judge_domains(about);
}

namespace {

/// The name of a report that this version has: `name`, its name in other versions, or the most
/// similar one; "" without a similar one.
std::string report_for(const std::string& name, const Version& version) {
  const bool has_old_names = version.year > 0 && version < Version{2023, 1, 0};
  const bool takes_old_names = !has_old_names && version < Version{2024, 1, 0};
  std::vector<std::string> names;
  for (const base::NsysReport& report : base::nsys_reports()) {
    const std::string current(has_old_names ? report.old : report.now);
    if (name == current || (takes_old_names && name == report.old))
      return name;
    if (current.empty())
      continue;
    if (name == report.now || name == report.old)
      return current;
    names.push_back(current);
  }
  return nearest_name(name, names);
}

void judge_stats(Explaining& about) {
  const Version version = about.version();
  for (Argument& argument : about.line.arguments) {
    if (argument.name != "--report" || !argument.value || argument.value->expands)
      continue;
    std::vector<std::string> reports;
    for (const std::string_view part : base::split(argument.value->text, ',')) {
      const std::string written(base::trim(part)), name = written.substr(0, written.find(':'));
      // A script of the user; newer versions may have more reports.
      const bool is_script = name.find('/') != std::string::npos || name.ends_with(".py");
      if (name.empty() || is_script) {
        reports.push_back(written);
        continue;
      }
      const std::string better = report_for(name, version);
      std::string& report = reports.emplace_back(written);
      if (!better.empty())
        report.replace(0, name.size(), better);
      const bool may_be_newer = better.empty() && version.year >= 2024;
      if (better == name || may_be_newer)
        continue;
      about.fail("unknown_report",
                 about.me() + " has no report '" + name + "'",
                 write_or(better, "`nsys stats --help-reports` lists them"));
    }
    const std::string value = base::join(reports, ",");
    if (value != argument.value->text)
      argument.value = literal(value);
  }
}

void judge_export(Explaining& about) {
  CommandLine& line = about.line;
  const Argument* type = line.find("--type");
  if (!type || !type->value || type->value->expands)
    return;
  // From `nsys export --help` of 2020.4.3, 2022.4.2 and 2023.4.4; jsonlines from the documentation
  // of 2025.
  const Version version = about.version();
  std::vector<std::string> types{"sqlite", "hdf", "text", "json", "info"};
  if (version.year == 0 || version.year >= 2022)
    types.emplace_back("arrow");
  if (version.year == 0 || version.year >= 2023)
    types.insert(types.end(), {"arrowdir", "parquetdir"});
  if (version.year == 0 || version.year >= 2024)
    types.emplace_back("jsonlines");
  const std::string value = type->value->text;
  if (std::ranges::find(types, value) == types.end())
    invalid(about, "--type", value, types);
}

}  // namespace

void judge_reports(Explaining& about) {
  CommandLine& line = about.line;
  if (line.verb != "stats" && line.verb != "export")
    return;
  judge_program(about);
  if (line.verb == "stats")
    judge_stats(about);
  if (line.verb == "export")
    judge_export(about);
  for (const Argument& argument : std::vector<Argument>(line.arguments)) {
    if (!argument.value || argument.value->expands)
      continue;
    const std::string& value = argument.value->text;
    const bool is_true_or_false = value == "true" || value == "false";
    if (has_trait(line.table(), argument.name, Option::kYesNo) && !is_true_or_false)
      invalid(about, argument.name, value, {"true", "false"});
  }
}

}  // namespace rangescope::collect::command
