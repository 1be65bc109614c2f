#include <algorithm>

#include "base/text.hpp"
#include "model/range_expression.hpp"
#include "model/range_order.hpp"
#include "model/range_syntax.hpp"

namespace rangescope::model {
namespace {

std::string_view unquoted(std::string_view text) {
  text = base::trim(text);
  while (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
         text.back() == text.front()) {
    text = base::trim(text.substr(1, text.size() - 2));
  }
  return text;
}

/// Pieces of a `;` list; a regular expression may hold ';' itself and ends only where the next one
/// begins.
std::vector<std::string_view> list_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const bool is_regex = text.starts_with(kRegexPrefix);
    const std::size_t end = is_regex ? text.find(";regex:") : text.find(';');
    const std::string_view piece = unquoted(text.substr(0, end));
    if (!piece.empty())
      pieces.push_back(piece);
    if (end == std::string_view::npos)
      break;
    text = base::trim(text.substr(end + 1));
  }
  return pieces;
}

NormalizedTerm term_of(std::string_view text, const RangeExpression::Parts& parts) {
  NormalizedTerm term;
  term.written = std::string(text);
  if (parts.kind == RangeKind::kPushPop) {
    term.push_pop = std::string(text);
    return term;
  }
  term.start_end = std::string(text);
  if (parts.elements.size() > 1)
    return term;  // a conjunction can only be of start/end ranges
  if (!parts.regex) {
    term.push_pop = std::string(text) + "/";
    return term;
  }
  const std::string& pattern = parts.elements[0].text;
  std::string stack(kRegexPrefix);
  if (parts.domain)
    stack += *parts.domain + "@";
  if (pattern.starts_with('['))  // no anchor
    stack += "/";
  term.push_pop = stack + pattern + "/";
  return term;
}

/// Only what really parses may leave, each form in the place of its kind (a repaired 'A],' ends in
/// an anchor).
base::Result<NormalizedTerm> checked(const NormalizedTerm& term) {
  NormalizedTerm out;
  out.written = term.written;
  for (const auto& form : {term.push_pop, term.start_end}) {
    if (!form)
      continue;
    const auto parsed = TRY(RangeExpression::parse(*form));
    auto& place = parsed.parts().kind == RangeKind::kPushPop ? out.push_pop : out.start_end;
    if (!place)
      place = *form;
  }
  return out;
}

/// The name, and no other; with `wildcards`, `*` matches anything.
std::string whole_name(std::string_view name, bool wildcards) {
  std::string pattern = escape_regex(name);
  if (wildcards)
    pattern = base::replace_all(pattern, "\\*", ".*");
  return "^" + pattern + "$";
}

/// What a regular expression for ranges of a domain begins with.
std::string regex_of_domain(std::string_view domain, bool wildcards) {
  std::string text(kRegexPrefix);
  if (!domain.empty())
    text += whole_name(domain, wildcards) + "@";
  return text;
}

/// Names from the outermost range on: "[a/b", or "a/" of one.
std::string stack_of(const std::vector<std::string>& names) {
  const std::string text = base::join(names, "/");
  return names.size() > 1 ? "[" + text : text + "/";
}

/// The path from the outermost range as a regular expression, which can say any name and a name
/// that occurs twice.
std::string path_regex(std::string_view domain, std::span<const std::string> path, bool wildcards) {
  std::vector<std::string> names;
  for (const std::string& name : path)
    names.push_back(whole_name(name, wildcards));
  return regex_of_domain(domain, wildcards) + stack_of(names);
}

constexpr std::string_view kPathSeparator = " > ";

/// `LLM@step > layer_*`, as tables print paths; names are literal but for `*`. Anchors and the
/// slash of a push/pop range at the end are the grammar's: 'a > b/' is a range of that name.
std::optional<NormalizedTerm> path_term(std::string_view piece) {
  if (piece.find(kPathSeparator) == std::string_view::npos || piece.starts_with(kRegexPrefix) ||
      piece.starts_with('[') || piece.ends_with('/'))
    return std::nullopt;
  NormalizedTerm term;
  term.written = std::string(piece);
  std::string_view domain;
  if (const auto at_sign = piece.substr(0, piece.find(kPathSeparator)).find('@');
      at_sign != std::string_view::npos) {
    domain = piece.substr(0, at_sign);
    piece.remove_prefix(at_sign + 1);
  }
  std::vector<std::string> path;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = piece.find(kPathSeparator);
    path.emplace_back(base::trim(piece.substr(0, end)));
    if (end != std::string_view::npos)
      piece.remove_prefix(end + kPathSeparator.size());
  }
  const bool wildcard = domain.find('*') != std::string_view::npos ||
                        std::any_of(path.begin(), path.end(), [](const std::string& name) {
                          return name.find('*') != std::string::npos;
                        });
  term.push_pop =
      wildcard ? path_regex(domain, path, true) : expression_of(domain, path, RangeKind::kPushPop);
  return term;
}

/// `LLM@request [start/end]`, as tables print start/end ranges.
std::optional<NormalizedTerm> marked_term(std::string_view piece) {
  if (!piece.ends_with(kStartEndMark) || piece.starts_with(kRegexPrefix))
    return std::nullopt;
  NormalizedTerm term;
  term.written = std::string(piece);
  piece.remove_suffix(kStartEndMark.size());
  const std::size_t at_sign = piece.find('@');
  std::string_view domain;
  if (at_sign != std::string_view::npos)
    domain = piece.substr(0, at_sign);
  const std::size_t name_begin = domain.empty() ? 0 : at_sign + 1;
  const std::vector<std::string> path{std::string(base::trim(piece.substr(name_begin)))};
  if (piece.find('*') == std::string_view::npos)
    term.start_end = expression_of(domain, path, RangeKind::kStartEnd);
  else
    term.start_end = regex_of_domain(domain, true) + whole_name(path.front(), true);
  return term;
}

/// kUsage for a path without its first or last range.
base::Result<void> check_path_ends(std::string_view piece) {
  if (piece != ">" && !piece.starts_with("> ") && !piece.ends_with(" >"))
    return {};
  return base::fail(base::Code::kUsage,
                    "a range is missing beside '>'",
                    "range expression '" + std::string(piece) + "'",
                    "Write a path as tables print it: 'decode > layer_0'");
}

std::string shown(const NormalizedTerm& term) {
  std::vector<std::string> forms;
  for (const auto& form : {term.push_pop, term.start_end})
    if (form)
      forms.push_back("'" + *form + "'");
  return base::join(forms, " or ");
}

}  // namespace

base::Result<Normalized> normalize(std::string_view written) {
  Normalized out;
  const auto pieces = list_of(unquoted(written));
  if (pieces.empty())
    return base::fail(RangeExpression::parse(""));
  if (pieces.size() > 1) {
    out.notes.push_back("'" + std::string(base::trim(written)) +
                        "' is a list: each part is a separate expression.");
  }
  for (std::string_view piece : pieces) {
    const auto ordered = in_ncu_order(piece);
    if (ordered) {
      const std::string in_nsys_order = "'" + std::string(piece) + "' is in nsys's order";
      out.notes.push_back(in_nsys_order + ": taken as '" + *ordered + "'.");
      piece = *ordered;
    }
    TRY(check_path_ends(piece));
    if (auto path = path_term(piece)) {
      auto term = TRY(checked(*path));
      out.notes.push_back("'" + std::string(piece) + "' is a path: taken as '" + *term.push_pop +
                          "'.");
      out.terms.push_back(std::move(term));
      continue;
    }
    if (const auto marked = marked_term(piece)) {
      out.terms.push_back(TRY(checked(*marked)));
      continue;
    }
    auto parsed = parse_range_syntax(piece);
    if (const auto* parts = std::get_if<RangeExpression::Parts>(&parsed)) {
      auto parsed_term = TRY(checked(term_of(piece, *parts)));
      const NormalizedTerm& term = out.terms.emplace_back(std::move(parsed_term));
      if (term.push_pop && term.start_end) {
        out.notes.push_back("'" + term.written + "' does not name the kind of range: push/pop " +
                            "'" + *term.push_pop + "' or start/end '" + *term.start_end + "'.");
      }
      continue;
    }
    const auto& refusal = std::get<RangeRefusal>(parsed);
    if (refusal.terms.empty())
      return base::fail(RangeExpression::parse(piece));
    std::vector<std::string> corrections;
    for (const NormalizedTerm& proposed : refusal.terms) {
      auto term = checked(proposed);
      if (!term)
        return base::fail(RangeExpression::parse(piece));
      corrections.push_back(shown(*term));
      out.terms.push_back(std::move(*term));
      if (refusal.terms.size() == 1)
        out.terms.back().written = std::string(piece);
    }
    out.notes.push_back("'" + std::string(piece) + "': " + refusal.reason + "; taken as " +
                        base::join(corrections, " and ") + ".");
  }
  return out;
}

std::string escape_range_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::string_view("@,[]/*+").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

std::string escape_regex(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < ' ') {
      out.append("\\x").append({static_cast<char>('0' + c / 16), "0123456789abcdef"[c % 16]});
      continue;
    }
    if (std::string_view("\\^$.|?*+()[]{}/@,").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

std::string expression_of(std::string_view domain,
                          std::span<const std::string> path,
                          RangeKind kind) {
  if (path.empty())
    return "";
  // A backslash at the end of a name would escape what follows it, blanks at its ends are cut off,
  // and control characters are lost where somebody copies them.
  const bool unsaid = std::any_of(path.begin(), path.end(), [](const std::string& name) {
    return name.ends_with('\\') || base::trim(name).size() != name.size() || name.empty() ||
           std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < ' '; });
  });
  if (kind == RangeKind::kStartEnd && unsaid)
    return regex_of_domain(domain, false) + whole_name(path.front(), false);
  std::string text;
  if (!domain.empty()) {
    for (const char c : domain) {  // a '/' in a domain needs no backslash
      if (c == '@')
        text += '\\';
      text += c;
    }
    text += "@";
  }
  if (kind == RangeKind::kStartEnd)
    return text + escape_range_name(path.front());
  bool twice = false;  // a literal name means its topmost occurrence
  for (auto name = path.begin(); name != path.end(); ++name)
    twice |= std::find(path.begin(), name, *name) != name;
  if (unsaid || twice)
    return path_regex(domain, path, false);
  std::vector<std::string> names;
  for (const std::string& name : path)
    names.push_back(escape_range_name(name));
  return text + stack_of(names);
}

}  // namespace rangescope::model
