#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"
#include "model/range_expression.hpp"
#include "model/range_order.hpp"

namespace rangescope::collect::command {
namespace {

constexpr std::array<std::string_view, 2> kFilters{"--nvtx-include", "--nvtx-exclude"};

/// The cause for a refused expression, by what it holds. The parser's own words are the evidence.
std::string_view cause_of(std::string_view text) {
  const std::string_view trimmed = base::trim(text);
  if (trimmed.empty()) return "bad_expression";
  if (trimmed.size() != text.size()) return "blank_in_expression";
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    return "quoted_expression";
  const bool regex = text.starts_with("regex:");
  if (!regex && text.find(';') != std::string_view::npos) return "list_in_expression";
  if (!regex && text.find("/,") != std::string_view::npos) return "list_in_expression";
  const auto at = text.find('@');
  if (at == 0 || std::count(text.begin(), text.end(), '@') > 1) return "bad_expression";
  const std::string_view ranges = at == std::string_view::npos ? text : text.substr(at + 1);
  if (!regex && ranges.starts_with('[') && ranges.ends_with(']') &&
      ranges.find('/') == std::string_view::npos)
    return "single_anchors";
  if (!regex && text.find('*') != std::string_view::npos && !ranges.starts_with("*/"))
    return "glob_in_expression";
  return "bad_expression";
}

/// The expressions that were meant: each push/pop, and start/end where it may be either.
std::vector<std::string> meant(const model::Normalized& normalized) {
  std::vector<std::string> out;
  for (const model::NormalizedTerm& term : normalized.terms)
    for (const auto& form : {term.push_pop, term.start_end})
      if (form && std::find(out.begin(), out.end(), *form) == out.end()) out.push_back(*form);
  return out;
}

void replace(CommandLine& line, const std::string& name, const std::string& old,
             const std::vector<std::string>& with) {
  const auto found =
      std::find_if(line.arguments.begin(), line.arguments.end(), [&](const Argument& each) {
        return each.name == name && each.value && each.value->text == old;
      });
  if (found == line.arguments.end()) return;
  if (with.empty()) {
    line.arguments.erase(found);
    return;
  }
  Argument pattern = *found;
  pattern.value = literal(with.front());
  *found = pattern;
  auto place = found + 1;
  for (std::size_t i = 1; i < with.size(); ++i) {
    pattern.value = literal(with[i]);
    const auto all = line.values(name);
    if (std::find(all.begin(), all.end(), with[i]) != all.end()) continue;
    place = line.arguments.insert(place, pattern) + 1;
  }
}

std::string quoted_list(const std::string& name, const std::vector<std::string>& expressions) {
  std::string text;
  for (const std::string& each : expressions)
    text += (text.empty() ? "" : " ") + name + " " + base::shell_quote(each);
  return text;
}

/// `A/, B/`, `A/,B`, `decode/ prefill/`: the parts of a list, each an expression; none where it is
/// one.
std::vector<std::string> comma_list(std::string_view written) {
  std::vector<std::string> parts;
  if (written.starts_with(model::kRegexPrefix) || written.find('[') != std::string_view::npos ||
      written.find("\\") != std::string_view::npos)
    return parts;
  const bool commas = written.find(',') != std::string_view::npos;
  const bool blanks = !commas && written.find("/ ") != std::string_view::npos;
  if (!blanks && !(commas && written.find('/') != std::string_view::npos) &&
      written.find(", ") == std::string_view::npos)
    return parts;
  for (const std::string_view part : base::split(written, commas ? ',' : ' '))
    if (const std::string_view one = base::trim(part); !one.empty()) parts.emplace_back(one);
  return parts.size() > 1 || commas ? parts : std::vector<std::string>{};
}

/// Quotes around the expression, and around its part behind `regex:` or a domain, which the shell
/// did not take away.
std::string without_quotes(std::string_view written) {
  std::string text(written);
  for (const char quote : {'"', '\''}) {
    const auto open = text.find(quote);
    if (open == std::string::npos || std::count(text.begin(), text.end(), quote) != 2) continue;
    if (open == 0 || text[open - 1] == ':' || text[open - 1] == '@') std::erase(text, quote);
  }
  return text;
}

/// What the parts of a list mean, one after the other; with `slash` a name alone is a push/pop
/// range.
std::vector<std::string> meant_by(const auto& parts, bool slash) {
  std::vector<std::string> right;
  for (const auto& part : parts) {
    std::string text(part);
    if (slash && text.find('/') == std::string::npos) text += '/';
    if (const auto normalized = model::normalize(text))
      for (std::string& one : meant(*normalized)) right.push_back(std::move(one));
  }
  return right;
}

/// A start/end expression is correct; but most ranges are push/pop, and then it matches nothing.
void judge_start_end(Explaining& about, const std::string& name, const std::string& written,
                     const model::RangeExpression& expression) {
  CommandLine& line = about.line;
  const model::RangeExpression::Parts& parts = expression.parts();
  std::vector<std::string> right;
  const bool several = parts.elements.size() > 1;
  if (several) {
    for (const auto& element : parts.elements) {
      std::string one = parts.regex ? "regex:" : "";
      if (parts.domain) one += *parts.domain + "@";
      one += (parts.regex ? element.text : model::escape_range_name(element.text)) + "/";
      if (model::RangeExpression::parse(one)) right.push_back(one);
    }
  } else if (auto normalized = model::normalize(written)) {
    for (const auto& term : normalized->terms)
      if (term.push_pop) right.push_back(*term.push_pop);
  }
  const auto all = line.values(name);
  if (right.empty() || std::any_of(right.begin(), right.end(), [&](const std::string& each) {
        return std::find(all.begin(), all.end(), each) != all.end();
      }))
    return;  // both kinds are named: whoever wrote it knows
  about.warn(several ? "comma_means_both" : "missing_slash",
             name + " " + base::shell_quote(written) +
                 (several ? " matches while all of these start/end ranges are open"
                          : " has no slash: it names start/end ranges only"),
             "Write " + quoted_list(name, right) +
                 (several ? " for any of these push/pop ranges" : " for push/pop ranges"));
  right.push_back(written);
  replace(line, name, written, right);
}

void judge(Explaining& about, const std::string& name, const std::string& written) {
  using enum model::Grade;
  CommandLine& line = about.line;
  // Names a mistake and puts `right` in its place; where there is none, what is certainly wrong
  // goes.
  const auto mend = [&](model::Grade grade, std::string_view id, const std::string& found,
                        const std::vector<std::string>& right,
                        const std::string& otherwise = "Leave it out") {
    const std::string text = name + " " + base::shell_quote(written) + ": " + found;
    const std::string hint = right.empty() ? otherwise : "Write " + quoted_list(name, right);
    grade == kFail ? about.fail(id, text, hint) : about.warn(id, text, hint);
    if (grade == kFail || !right.empty()) replace(line, name, written, right);
  };
  // "@*" of nsys: any domain. LLM@* is every range of domain LLM, below.
  std::string range = written.ends_with("@*") ? written.substr(0, written.size() - 2) : "";
  if (range.ends_with('/')) range.pop_back();
  if (!range.empty() && !model::looks_like_domain(range))
    return mend(kFail, "reversed_domain",
                "to ncu this is the domain '" + range + "' and the range '*'",
                {"regex:.*@^" + model::escape_regex(range) + "$/"});
  if (!written.starts_with("regex:") && written.find('|') != std::string::npos)
    return mend(kWarn, "list_in_expression", "this is one name, with a bar in it",
                meant_by(base::split(written, '|'), false),
                "Repeat the option, once for each range");
  if (const auto list = comma_list(written);
      !list.empty())  // with a slash, push/pop ranges are meant, all of them
    return mend(kFail, "list_in_expression", "an expression names one push/pop range",
                meant_by(list, written.find('/') != std::string::npos));
  if (const std::string right = without_quotes(written); right != written) {
    mend(kFail, "quoted_expression", "the quotes are letters of the name", {right});
    return judge(about, name, right);
  }
  if (written.starts_with("default@")) {
    mend(kWarn, "default_domain", "to ncu this is a domain that is called 'default'",
         {written.substr(8)});
    return judge(about, name, written.substr(8));
  }
  auto parsed = model::RangeExpression::parse(written);
  if (!parsed) {
    auto normalized = model::normalize(written);
    std::string reason = parsed.error().what;
    // ncu passes over empty names: /decode/, decode//layer0/ and /decode match as decode/ does
    // (2024.1.1, 2025.3.1).
    if (reason.find("empty name between slashes") != std::string::npos) return;
    if (const std::string_view head = "range expression: "; reason.starts_with(head))
      reason.erase(0, head.size());
    return mend(kFail, cause_of(written), reason,
                normalized ? meant(*normalized) : std::vector<std::string>{},
                "Leave it out, or name one range: decode/");
  }
  if (auto right = model::in_ncu_order(written)) {
    if (!right->ends_with('/')) *right += '/';
    return mend(kWarn, "reversed_domain",
                "to ncu '" + *parsed->parts().domain + "' is the domain and '" +
                    parsed->parts().elements[0].text + "' the range",
                {*right});
  }
  if (parsed->parts().kind == model::RangeKind::kPushPop) return;
  judge_start_end(about, name, written, *parsed);
}

}  // namespace

void judge_ranges(Explaining& about) {
  if (about.line.tool != "ncu") return;
  bool any = false;
  for (const std::string_view filter : kFilters) {
    const std::string name(filter);
    for (const Argument& each : std::vector<Argument>(about.line.arguments)) {
      if (each.name != name || !each.value) continue;
      any = true;
      if (!each.value->expands) judge(about, name, each.value->text);
    }
  }
  if (!any || about.line.has("--nvtx") || about.line.has("--import")) return;
  about.fail("no_nvtx", "a range filter without --nvtx");
  about.line.arguments.insert(about.line.arguments.begin(), [] {
    Argument nvtx;
    nvtx.name = nvtx.written = "--nvtx";
    return nvtx;
  }());
}

}  // namespace rangescope::collect::command
