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

/// RANGE and DOMAIN of nsys's own order; `\@` and `\\` are letters.
struct Capture {
  std::string range;
  std::optional<std::string> domain;
};
Capture split_capture(std::string_view value) {
  Capture out;
  std::string* into = &out.range;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\' && i + 1 < value.size() && (value[i + 1] == '@' || value[i + 1] == '\\')) {
      *into += value[++i];
    } else if (value[i] == '@' && !out.domain) {
      out.domain.emplace();
      into = &*out.domain;
    } else {
      *into += value[i];
    }
  }
  return out;
}
std::string escaped(std::string_view name) {
  return base::replace_all(base::replace_all(name, "\\", "\\\\"), "@", "\\@");
}
std::string joined(const Capture& capture) {
  return escaped(capture.range) +
         (capture.domain
              ? "@" + (*capture.domain == "*" ? *capture.domain : escaped(*capture.domain))
              : "");
}

void drop_gate(CommandLine& line) {
  for (const char* name :
       {"--capture-range", "--nvtx-capture", "--capture-range-end", "--stop-on-range-end"})
    line.remove(name);
}

/// Named as one elsewhere on the line, or written like one.
bool means_domain(const CommandLine& line, const std::string& word) {
  for (const char* option : {"--nvtx-domain-include", "--nvtx-domain-exclude"}) {
    const std::string value = line.value(option);
    for (const std::string_view part : base::split(value, ','))
      if (part == word) return true;
  }
  return model::looks_like_domain(word);
}

/// Corrects the value of --nvtx-capture; false where it named nothing that could be.
bool judge_value(Explaining& about, const std::string& written) {
  CommandLine& line = about.line;
  const std::string shown = "--nvtx-capture=" + base::shell_quote(written);
  Capture capture = split_capture(written);
  const auto put = [&](std::string_view id, bool certain, const std::string& found) {
    const std::string right = joined(capture),
                      hint = "Write --nvtx-capture=" + base::shell_quote(right);
    if (certain)
      about.fail(id, found, hint);
    else
      about.warn(id, found, hint);
    line.set("--nvtx-capture", right);
  };
  // The placeholder of nsys's own help.
  if (nsys::is_placeholder(written)) {
    about.warn("placeholder_capture",
               shown + ": no range of the program is likely to be called 'range'");
    drop_gate(line);
    return false;
  }
  const auto gate_goes = [&](std::string_view id, const std::string& why) {
    about.fail(id, shown + ": " + why);
    drop_gate(line);
    return false;
  };
  if (capture.range.starts_with("regex:"))
    return gate_goes("pattern_in_capture", "nsys knows no regular expressions");
  if (capture.range.size() > 1 && (capture.range.front() == '"' || capture.range.front() == '\'') &&
      capture.range.back() == capture.range.front()) {
    capture.range = capture.range.substr(1, capture.range.size() - 2);
    put("quoted_expression", true, shown + ": the quotes are part of the value");
  }
  if (capture.range.find(';') != std::string::npos)
    return gate_goes("list_in_expression", "nsys takes one range");
  // ncu's order, or nsys's names in the wrong place.
  if (capture.domain && *capture.domain != "*") {
    const bool certain = capture.range == "*" || capture.range == "default" ||
                         capture.range == model::kDefaultDomain || capture.domain->ends_with('/');
    if (certain || (means_domain(line, capture.range) && !means_domain(line, *capture.domain) &&
                    model::has_small_letters(*capture.domain))) {
      std::swap(capture.range, *capture.domain);
      if (capture.range.ends_with('/')) capture.range.pop_back();
      if (*capture.domain == "default" || *capture.domain == model::kDefaultDomain)
        capture.domain.reset();
      put("reversed_domain", certain,
          shown + ": nsys takes the range first and the domain after @");
    }
  }
  if (capture.domain &&
      (*capture.domain == "default" || *capture.domain == model::kDefaultDomain)) {
    capture.domain.reset();
    put("default_domain", true, shown + ": to name the default domain, leave the domain out");
  }
  if (capture.range.size() > 1 &&
      (capture.range.ends_with('/') || capture.range.starts_with('['))) {
    if (capture.range.starts_with('[')) capture.range.erase(0, 1);
    while (capture.range.size() > 1 &&
           (capture.range.ends_with('/') || capture.range.ends_with(']')))
      capture.range.pop_back();
    put("slash_in_capture", true,
        shown + ": slashes and brackets are ncu's; to nsys they are letters of the name");
  }
  if (capture.range.find('*') != std::string::npos || capture.range.find('?') != std::string::npos)
    return gate_goes("pattern_in_capture", "nsys knows no patterns");
  return true;
}

bool sets_register_only(const std::string& assignments, char separator) {
  for (const std::string_view part : base::split(assignments, separator))
    if (base::trim(part) == std::string(kRegisterOnly) + "=0") return true;
  return false;
}

void judge_registered(Explaining& about) {
  CommandLine& line = about.line;
  // A range of a named domain is often a registered string; one of the default domain hardly ever.
  const Capture capture = split_capture(line.value("--nvtx-capture"));
  if (capture.domain && *capture.domain != "*") return;
  const auto shell = about.environment.find(std::string(kRegisterOnly));
  if (shell != about.environment.end() && shell->second == "0") return;
  if (sets_register_only(line.value("--env-var"), ',')) return;
  for (const Word& word : line.before)
    if (word.text == std::string(kRegisterOnly) + "=0") return;
  const std::string setting = std::string(kRegisterOnly) + "=0";
  if (line.verb == "start")
    return;  // which starts no program: what `nsys launch` was given is not to be seen here
  about.warn(
      "unregistered_strings",
      "--nvtx-capture=" + base::shell_quote(line.value("--nvtx-capture")) + " without " + setting);
  if (const std::string others = line.value("--env-var"); !others.empty())
    line.set("--env-var", others + "," + setting);
  else
    line.add("--env-var", setting);
}

}  // namespace

void judge_capture(Explaining& about) {
  CommandLine& line = about.line;
  if (line.tool != "nsys") return;
  const std::string kind = line.value("--capture-range");
  const Argument* capture = line.find("--nvtx-capture");
  if (!capture && kind == "nvtx") {
    about.fail("capture_without_range", "--capture-range=nvtx without --nvtx-capture");
    drop_gate(line);
  } else if (capture && (kind.empty() || kind == "none")) {
    about.fail("capture_not_gated", "--nvtx-capture is used with --capture-range=nvtx only",
               "Write --capture-range=nvtx");
    line.set("--capture-range", "nvtx");
    capture = line.find("--nvtx-capture");
  } else if (capture && kind != "nvtx") {
    about.fail("capture_not_gated",
               "--nvtx-capture is used with --capture-range=nvtx only, not with " + kind,
               "Leave --nvtx-capture out, or write --capture-range=nvtx");
    line.remove("--nvtx-capture");
    capture = nullptr;
  } else if (!capture && (kind.empty() || kind == "none") && line.has("--capture-range-end")) {
    about.fail("capture_end_alone", "--capture-range-end without --capture-range");
    line.remove("--capture-range-end");
  }
  if (capture && capture->value && !capture->value->expands &&
      line.value("--capture-range") == "nvtx" &&
      judge_value(about, std::string(capture->value->text)))
    judge_registered(about);

  const bool include = line.has("--nvtx-domain-include"),
             exclude = line.has("--nvtx-domain-exclude");
  if (include && exclude) {
    about.fail("domains_both", "--nvtx-domain-include together with --nvtx-domain-exclude");
    line.remove("--nvtx-domain-exclude");
  }
  for (const char* name : {"--nvtx-domain-include", "--nvtx-domain-exclude"}) {
    const std::string value = line.value(name);
    if (value.find(model::kDefaultDomain) == std::string::npos) continue;
    const std::string right = base::replace_all(value, model::kDefaultDomain, "default");
    about.fail(
        "default_domain",
        std::string(name) + "=" + base::shell_quote(value) + ": ncu's name of the default domain",
        "Write " + std::string(name) + "=" + right);
    line.set(name, right);
  }
}

namespace {

/// The name of a report that this version has: `name` itself, its other one, the nearest; "" where
/// none is near.
std::string report_for(const std::string& name, const Version& version) {
  const bool old_only = version.year > 0 && version < Version{2023, 1, 0};
  std::vector<std::string> known;
  for (const base::NsysReport& each : base::nsys_reports()) {
    const std::string mine(old_only ? each.old : each.now);
    if (name == mine || (!old_only && name == each.old && version < Version{2024, 1, 0}))
      return name;
    if ((name == each.now || name == each.old) && !mine.empty()) return mine;
    if (!mine.empty()) known.push_back(mine);
  }
  const auto near = base::nearest(name, known, 1);
  return near.empty() ? std::string() : near.front();
}

void judge_stats(Explaining& about) {
  const Version version = about.can ? about.can->version : Version{};
  for (Argument& each : about.line.arguments) {
    if (each.name != "--report" || !each.value || each.value->expands) continue;
    std::vector<std::string> right;
    for (const std::string_view part : base::split(each.value->text, ',')) {
      const std::string written(base::trim(part)), name = written.substr(0, written.find(':'));
      // A script of one's own; newer versions may have more.
      if (name.empty() || name.find('/') != std::string::npos || name.ends_with(".py")) {
        right.push_back(written);
        continue;
      }
      const std::string better = report_for(name, version);
      right.push_back(better.empty() ? written : better + written.substr(name.size()));
      if (better == name || (better.empty() && version.year >= 2024)) continue;
      about.fail("unknown_report", about.me() + " has no report '" + name + "'",
                 better.empty() ? "`nsys stats --help-reports` lists them" : "Write " + better);
    }
    if (const std::string joined = base::join(right, ","); joined != each.value->text)
      each.value = literal(joined);
  }
}

void judge_export(Explaining& about) {
  CommandLine& line = about.line;
  const Argument* type = line.find("--type");
  if (!type || !type->value || type->value->expands) return;
  // `nsys export --help` of 2020.4.3, 2022.4.2 and 2023.4.4; jsonlines of the documentation of
  // 2025.
  const Version version = about.can ? about.can->version : Version{};
  std::vector<std::string> known{"sqlite", "hdf", "text", "json", "info"};
  if (version.year == 0 || version.year >= 2022) known.emplace_back("arrow");
  if (version.year == 0 || version.year >= 2023)
    known.insert(known.end(), {"arrowdir", "parquetdir"});
  if (version.year == 0 || version.year >= 2024) known.emplace_back("jsonlines");
  const std::string value = type->value->text;
  if (std::find(known.begin(), known.end(), value) == known.end())
    invalid(about, "--type", value, known);
}

}  // namespace

void judge_reports(Explaining& about) {
  CommandLine& line = about.line;
  if (line.verb != "stats" && line.verb != "export") return;
  judge_program(about);
  if (line.verb == "stats") judge_stats(about);
  if (line.verb == "export") judge_export(about);
  for (const Argument& each : std::vector<Argument>(line.arguments))
    if (each.value && !each.value->expands && has_trait(line.table(), each.name, Option::kYesNo) &&
        each.value->text != "true" && each.value->text != "false")
      invalid(about, each.name, each.value->text, {"true", "false"});
}

}  // namespace rangescope::collect::command
