#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"
#include "model/range_expression.hpp"
#include "model/range_order.hpp"

namespace rangescope::collect::command {
namespace {

constexpr std::array<std::string_view, 2> kFilters{"--nvtx-include", "--nvtx-exclude"};

/// The id of the mistake in an expression that the parser refused.
std::string_view cause_of(std::string_view text) {
  const std::string_view trimmed = base::trim(text);
  if (trimmed.empty())
    return "bad_expression";
  if (trimmed.size() != text.size())
    return "blank_in_expression";
  const bool starts_with_quote = text.front() == '"' || text.front() == '\'';
  if (text.size() > 1 && starts_with_quote && text.back() == text.front())
    return "quoted_expression";
  const bool is_regex = text.starts_with("regex:");
  const bool has_list_separator =
      text.find(';') != std::string_view::npos || text.find("/,") != std::string_view::npos;
  if (!is_regex && has_list_separator)
    return "list_in_expression";
  const auto separator = text.find('@');
  if (separator == 0 || std::ranges::count(text, '@') > 1)
    return "bad_expression";
  std::string_view ranges = text;
  if (separator != std::string_view::npos)
    ranges.remove_prefix(separator + 1);
  if (is_regex)
    return "bad_expression";
  const bool is_anchored = ranges.starts_with('[') && ranges.ends_with(']');
  if (is_anchored && ranges.find('/') == std::string_view::npos)
    return "single_anchors";
  const bool has_star = text.find('*') != std::string_view::npos;
  if (has_star && !ranges.starts_with("*/"))
    return "glob_in_expression";
  return "bad_expression";
}

/// The expressions that were meant: push/pop, and start/end if it may be either.
std::vector<std::string> expressions_of(const model::Normalized& normalized) {
  std::vector<std::string> expressions;
  for (const model::NormalizedTerm& term : normalized.terms) {
    for (const auto& form : {term.push_pop, term.start_end}) {
      const bool is_new = form && std::ranges::find(expressions, *form) == expressions.end();
      if (is_new)
        expressions.push_back(*form);
    }
  }
  return expressions;
}

bool has_value(const CommandLine& line, const std::string& name, const std::string& value) {
  const std::vector<std::string> values = line.values(name);
  return std::ranges::find(values, value) != values.end();
}

/// Replaces an expression of the option `name` by others, each once.
void replace_expression(CommandLine& line,
                        const std::string& name,
                        const std::string& old,
                        const std::vector<std::string>& expressions) {
  const auto found = std::ranges::find_if(line.arguments, [&](const Argument& argument) {
    return argument.name == name && argument.value && argument.value->text == old;
  });
  if (found == line.arguments.end())
    return;
  if (expressions.empty()) {
    line.arguments.erase(found);
    return;
  }
  Argument argument = *found;
  argument.value = literal(expressions.front());
  *found = argument;
  auto place = found + 1;
  for (std::size_t i = 1; i < expressions.size(); ++i) {
    if (has_value(line, name, expressions[i]))
      continue;
    argument.value = literal(expressions[i]);
    place = line.arguments.insert(place, argument) + 1;
  }
}

std::string option_words(const std::string& name, const std::vector<std::string>& expressions) {
  std::vector<std::string> words;
  for (const std::string& expression : expressions)
    words.push_back(name + " " + base::shell_quote(expression));
  return base::join(words, " ");
}

/// The parts of a list that was written as one expression: `A/, B/`, `A/,B`, `decode/ prefill/`.
/// Empty if it is no list.
std::vector<std::string> list_parts(std::string_view written) {
  const auto contains = [&](std::string_view text) {
    return written.find(text) != std::string_view::npos;
  };
  if (written.starts_with(model::kRegexPrefix) || contains("[") || contains("\\"))
    return {};
  const bool has_commas = contains(",");
  const bool is_comma_list = has_commas && (contains("/") || contains(", "));
  const bool is_blank_list = !has_commas && contains("/ ");
  if (!is_comma_list && !is_blank_list)
    return {};
  std::vector<std::string> parts;
  for (const std::string_view part : base::split(written, has_commas ? ',' : ' ')) {
    const std::string_view trimmed = base::trim(part);
    if (!trimmed.empty())
      parts.emplace_back(trimmed);
  }
  if (parts.size() == 1 && is_blank_list)
    return {};
  return parts;
}

/// Without the quotes that the shell left: around the expression, or around its part after `regex:`
/// or a domain.
std::string without_quotes(std::string_view written) {
  std::string text(written);
  for (const char quote : {'"', '\''}) {
    const auto first = text.find(quote);
    if (first == std::string::npos || std::ranges::count(text, quote) != 2)
      continue;
    const bool starts_part = first == 0 || text[first - 1] == ':' || text[first - 1] == '@';
    if (starts_part)
      std::erase(text, quote);
  }
  return text;
}

/// The expressions that the parts of a list mean. With `are_push_pop`, a name without a slash is a
/// push/pop range.
std::vector<std::string> expressions_of_list(const auto& parts, bool are_push_pop) {
  std::vector<std::string> expressions;
  for (const auto& part : parts) {
    std::string text(part);
    if (are_push_pop && text.find('/') == std::string::npos)
      text += '/';
    const auto normalized = model::normalize(text);
    if (!normalized)
      continue;
    for (std::string& expression : expressions_of(*normalized))
      expressions.push_back(std::move(expression));
  }
  return expressions;
}

/// The push/pop expressions that a start/end expression may have been meant for.
std::vector<std::string> push_pop_of(const std::string& written,
                                     const model::RangeExpression::Parts& parts) {
  std::vector<std::string> expressions;
  if (parts.elements.size() == 1) {
    const auto normalized = model::normalize(written);
    if (!normalized)
      return {};
    for (const auto& term : normalized->terms)
      if (term.push_pop)
        expressions.push_back(*term.push_pop);
    return expressions;
  }
  for (const auto& element : parts.elements) {
    std::string expression;
    if (parts.regex)
      expression = "regex:";
    if (parts.domain)
      expression += *parts.domain + "@";
    expression += parts.regex ? element.text : model::escape_range_name(element.text);
    expression += "/";
    if (model::RangeExpression::parse(expression))
      expressions.push_back(expression);
  }
  return expressions;
}

/// A start/end expression is valid, but most ranges are push/pop, which it never matches.
void judge_start_end(Explaining& about,
                     const std::string& name,
                     const std::string& written,
                     const model::RangeExpression& expression) {
  CommandLine& line = about.line;
  std::vector<std::string> push_pop = push_pop_of(written, expression.parts());
  const bool names_both_kinds = std::ranges::any_of(
      push_pop, [&](const std::string& candidate) { return has_value(line, name, candidate); });
  if (push_pop.empty() || names_both_kinds)
    return;
  const std::string option = name + " " + base::shell_quote(written);
  const std::string hint = "Write " + option_words(name, push_pop);
  const bool has_several = expression.parts().elements.size() > 1;
  if (has_several)
    about.warn("comma_means_both",
               option + " matches while all of these start/end ranges are open",
               hint + " for any of these push/pop ranges");
  else
    about.warn("missing_slash",
               option + " has no slash: it names start/end ranges only",
               hint + " for push/pop ranges");
  push_pop.push_back(written);
  replace_expression(line, name, written, push_pop);
}

/// What is wrong with an expression.
struct Mistake {
  model::Grade grade = model::Grade::kFail;
  std::string_view id;
  std::string problem;
  std::vector<std::string> right;  ///< the expressions that were meant; empty if that is unknown
  std::string otherwise = "Leave it out";  ///< the hint without these
};

/// Reports the mistake and writes the right expressions instead. Without them, an expression that
/// is certainly wrong is removed.
void correct(Explaining& about,
             const std::string& name,
             const std::string& written,
             const Mistake& mistake) {
  const std::string text = name + " " + base::shell_quote(written) + ": " + mistake.problem;
  const std::string hint = write_or(option_words(name, mistake.right), mistake.otherwise);
  const bool is_certain = mistake.grade == model::Grade::kFail;
  if (is_certain)
    about.fail(mistake.id, text, hint);
  else
    about.warn(mistake.id, text, hint);
  if (is_certain || !mistake.right.empty())
    replace_expression(about.line, name, written, mistake.right);
}

/// "decode@*", which means any domain to nsys. But LLM@* is every range of the domain LLM.
std::optional<Mistake> any_domain_of_nsys(const std::string& written) {
  if (!written.ends_with("@*"))
    return std::nullopt;
  std::string range = written.substr(0, written.size() - 2);
  if (range.ends_with('/'))
    range.pop_back();
  if (range.empty() || model::looks_like_domain(range))
    return std::nullopt;
  return Mistake{model::Grade::kFail,
                 "reversed_domain",
                 "to ncu this is the domain '" + range + "' and the range '*'",
                 {"regex:.*@^" + model::escape_regex(range) + "$/"}};
}

std::optional<Mistake> list_in_expression(const std::string& written) {
  if (!written.starts_with("regex:") && written.find('|') != std::string::npos)
    return Mistake{model::Grade::kWarn,
                   "list_in_expression",
                   "this is one name, with a bar in it",
                   expressions_of_list(base::split(written, '|'), false),
                   "Repeat the option, once for each range"};
  const auto parts = list_parts(written);
  if (parts.empty())
    return std::nullopt;
  // With a slash, all of them are push/pop ranges.
  const bool are_push_pop = written.find('/') != std::string::npos;
  return Mistake{model::Grade::kFail,
                 "list_in_expression",
                 "an expression names one push/pop range",
                 expressions_of_list(parts, are_push_pop)};
}

/// `reason`: of the parser. Nothing where ncu takes the expression all the same.
std::optional<Mistake> refused_by_parser(const std::string& written, std::string reason) {
  // ncu ignores empty names (2024.1.1, 2025.3.1): /decode/, decode//layer0/ and /decode match
  // like decode/.
  if (reason.find("empty name between slashes") != std::string::npos)
    return std::nullopt;
  if (const std::string_view head = "range expression: "; reason.starts_with(head))
    reason.erase(0, head.size());
  std::vector<std::string> right;
  if (const auto normalized = model::normalize(written))
    right = expressions_of(*normalized);
  return Mistake{model::Grade::kFail,
                 cause_of(written),
                 std::move(reason),
                 std::move(right),
                 "Leave it out, or name one range: decode/"};
}

/// Domain and range in the order of nsys: "decode@LLM".
std::optional<Mistake> reversed_domain(const std::string& written,
                                       const model::RangeExpression& parsed) {
  auto right = model::in_ncu_order(written);
  if (!right)
    return std::nullopt;
  if (!right->ends_with('/'))
    *right += '/';
  return Mistake{model::Grade::kWarn,
                 "reversed_domain",
                 "to ncu '" + *parsed.parts().domain + "' is the domain and '" +
                     parsed.parts().elements[0].text + "' the range",
                 {*right}};
}

void judge_expression(Explaining& about, const std::string& name, const std::string& written) {
  if (const auto mistake = any_domain_of_nsys(written))
    return correct(about, name, written, *mistake);
  if (const auto mistake = list_in_expression(written))
    return correct(about, name, written, *mistake);
  if (const std::string right = without_quotes(written); right != written) {
    correct(about,
            name,
            written,
            {.id = "quoted_expression",
             .problem = "the quotes are letters of the name",
             .right = {right}});
    return judge_expression(about, name, right);
  }
  if (constexpr std::string_view kDefault = "default@"; written.starts_with(kDefault)) {
    const std::string right = written.substr(kDefault.size());
    correct(about,
            name,
            written,
            {.grade = model::Grade::kWarn,
             .id = "default_domain",
             .problem = "to ncu this is a domain that is called 'default'",
             .right = {right}});
    return judge_expression(about, name, right);
  }
  const auto parsed = model::RangeExpression::parse(written);
  if (!parsed) {
    if (const auto mistake = refused_by_parser(written, parsed.error().what))
      correct(about, name, written, *mistake);
    return;
  }
  if (const auto mistake = reversed_domain(written, *parsed))
    return correct(about, name, written, *mistake);
  if (parsed->parts().kind == model::RangeKind::kStartEnd)
    judge_start_end(about, name, written, *parsed);
}

}  // namespace

void judge_ranges(Explaining& about) {
  if (about.line.tool != "ncu")
    return;
  bool has_filter = false;
  for (const std::string_view filter : kFilters) {
    const std::string name(filter);
    for (const Argument& argument : std::vector<Argument>(about.line.arguments)) {
      if (argument.name != name || !argument.value)
        continue;
      has_filter = true;
      if (!argument.value->expands)
        judge_expression(about, name, argument.value->text);
    }
  }
  if (!has_filter || about.line.has("--nvtx") || about.line.has("--import"))
    return;
  about.fail("no_nvtx", "a range filter without --nvtx");
  Argument nvtx;
  nvtx.name = nvtx.written = "--nvtx";
  about.line.arguments.insert(about.line.arguments.begin(), nvtx);
}

}  // namespace rangescope::collect::command
