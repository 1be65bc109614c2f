#include <utility>

#include "base/text.hpp"
#include "doctor/command/rules.hpp"
#include "model/range_expression.hpp"

namespace rangescope::doctor {
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
         (capture.domain ? "@" + (*capture.domain == "*" ? *capture.domain : escaped(*capture.domain)) : "");
}

void drop_gate(CommandLine& line) {
  for (const char* name : {"--capture-range", "--nvtx-capture", "--capture-range-end", "--stop-on-range-end"})
    line.remove(name);
}

/// Named as one elsewhere on the line, or written like one.
bool means_domain(const CommandLine& line, const std::string& word) {
  for (const char* option : {"--nvtx-domain-include", "--nvtx-domain-exclude"}) {
    const std::string value = line.value(option);
    for (const std::string_view part : base::split(value, ','))
      if (part == word) return true;
  }
  return looks_like_domain(word);
}

/// Corrects the value of --nvtx-capture; false where it named nothing that could be.
bool judge_value(Explaining& about, const std::string& written) {
  CommandLine& line = about.line;
  const std::string shown = "--nvtx-capture=" + base::shell_quote(written);
  Capture capture = split_capture(written);
  const auto put = [&](std::string_view id, bool certain, const std::string& found) {
    const std::string right = joined(capture), hint = "Write --nvtx-capture=" + base::shell_quote(right);
    if (certain)
      about.fail(id, found, hint);
    else
      about.warn(id, found, hint);
    line.set("--nvtx-capture", right);
  };
  // The placeholder of nsys's own help.
  if (capture.range == "range" && (!capture.domain || *capture.domain == "domain")) {
    about.warn("command.placeholder_capture", shown + ": no range of the program is likely to be called 'range'");
    drop_gate(line);
    return false;
  }
  const auto gate_goes = [&](std::string_view id, const std::string& why) {
    about.fail(id, shown + ": " + why);
    drop_gate(line);
    return false;
  };
  if (capture.range.starts_with("regex:"))
    return gate_goes("command.pattern_in_capture", "nsys knows no regular expressions");
  if (capture.range.size() > 1 && (capture.range.front() == '"' || capture.range.front() == '\'') &&
      capture.range.back() == capture.range.front()) {
    capture.range = capture.range.substr(1, capture.range.size() - 2);
    put("command.quoted_expression", true, shown + ": the quotes are part of the value");
  }
  if (capture.range.find(';') != std::string::npos)
    return gate_goes("command.list_in_expression", "nsys takes one range");
  // ncu's order, or nsys's names in the wrong place.
  if (capture.domain && *capture.domain != "*") {
    const bool certain = capture.range == "*" || capture.range == "default" || capture.range == model::kDefaultDomain ||
                         capture.domain->ends_with('/');
    if (certain || (means_domain(line, capture.range) && !means_domain(line, *capture.domain) &&
                    has_small_letters(*capture.domain))) {
      std::swap(capture.range, *capture.domain);
      if (capture.range.ends_with('/')) capture.range.pop_back();
      if (*capture.domain == "default" || *capture.domain == model::kDefaultDomain) capture.domain.reset();
      put("command.reversed_domain", certain, shown + ": to nsys the range stands first and the domain behind @");
    }
  }
  if (capture.domain && (*capture.domain == "default" || *capture.domain == model::kDefaultDomain)) {
    capture.domain.reset();
    put("command.default_domain", true, shown + ": the default domain is meant by leaving the domain out");
  }
  if (capture.range.size() > 1 && (capture.range.ends_with('/') || capture.range.starts_with('['))) {
    if (capture.range.starts_with('[')) capture.range.erase(0, 1);
    while (capture.range.size() > 1 && (capture.range.ends_with('/') || capture.range.ends_with(']')))
      capture.range.pop_back();
    put("command.slash_in_capture", true,
        shown + ": slashes and brackets are ncu's; to nsys they are letters of the name");
  }
  if (capture.range.find('*') != std::string::npos || capture.range.find('?') != std::string::npos)
    return gate_goes("command.pattern_in_capture", "nsys knows no patterns");
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
  if (line.verb == "start") return;  // which starts no program: what `nsys launch` was given is not to be seen here
  about.warn("command.unregistered_strings",
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
    about.fail("command.capture_without_range", "--capture-range=nvtx stands there without --nvtx-capture");
    drop_gate(line);
  } else if (capture && (kind.empty() || kind == "none")) {
    about.fail("command.capture_not_gated", "--nvtx-capture is used with --capture-range=nvtx only",
               "Write --capture-range=nvtx");
    line.set("--capture-range", "nvtx");
    capture = line.find("--nvtx-capture");
  } else if (capture && kind != "nvtx") {
    about.fail("command.capture_not_gated", "--nvtx-capture is used with --capture-range=nvtx only, not with " + kind,
               "Leave --nvtx-capture out, or write --capture-range=nvtx");
    line.remove("--nvtx-capture");
    capture = nullptr;
  } else if (!capture && (kind.empty() || kind == "none") && line.has("--capture-range-end")) {
    about.fail("command.capture_end_alone", "--capture-range-end stands there without --capture-range");
    line.remove("--capture-range-end");
  }
  if (capture && capture->value && !capture->value->expands && line.value("--capture-range") == "nvtx" &&
      judge_value(about, std::string(capture->value->text)))
    judge_registered(about);

  const bool include = line.has("--nvtx-domain-include"), exclude = line.has("--nvtx-domain-exclude");
  if (include && exclude) {
    about.fail("command.domains_both", "--nvtx-domain-include and --nvtx-domain-exclude stand there together");
    line.remove("--nvtx-domain-exclude");
  }
  for (const char* name : {"--nvtx-domain-include", "--nvtx-domain-exclude"}) {
    const std::string value = line.value(name);
    if (value.find(model::kDefaultDomain) == std::string::npos) continue;
    const std::string right = base::replace_all(value, model::kDefaultDomain, "default");
    about.fail("command.default_domain",
               std::string(name) + "=" + base::shell_quote(value) + ": ncu's name of the default domain",
               "Write " + std::string(name) + "=" + right);
    line.set(name, right);
  }
}

}  // namespace rangescope::doctor
