#include <algorithm>

#include "base/text.hpp"
#include "model/range_expression.hpp"
#include "model/range_syntax.hpp"

namespace rangescope::model {
namespace {

constexpr std::string_view kRegex = "regex:";

std::string_view unquoted(std::string_view text) {
  text = base::trim(text);
  while (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
    text = base::trim(text.substr(1, text.size() - 2));
  }
  return text;
}

/// Pieces of a `;` list; a regular expression may hold ';' itself and ends only where the next one begins.
std::vector<std::string_view> list_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const std::size_t at = text.starts_with(kRegex) ? text.find(";regex:") : text.find(';');
    const std::string_view piece = unquoted(text.substr(0, at));
    if (!piece.empty()) pieces.push_back(piece);
    if (at == std::string_view::npos) break;
    text = base::trim(text.substr(at + 1));
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
  if (parts.elements.size() > 1) return term;  // a conjunction can only be of start/end ranges
  if (!parts.regex) {
    term.push_pop = std::string(text) + "/";
    return term;
  }
  const std::string& pattern = parts.elements[0].text;
  term.push_pop = std::string(kRegex) + (parts.domain ? *parts.domain + "@" : "") +
                  (pattern.starts_with('[') ? "/" : "") + pattern + "/";
  return term;
}

/// Only what really parses may leave, each form in the place of its kind (a repaired 'A],' ends in an anchor).
base::Result<NormalizedTerm> checked(const NormalizedTerm& term) {
  NormalizedTerm out;
  out.written = term.written;
  for (const auto& form : {term.push_pop, term.start_end}) {
    if (!form) continue;
    auto parsed = RangeExpression::parse(*form);
    if (!parsed) return base::fail(std::move(parsed));
    auto& place = parsed->parts().kind == RangeKind::kPushPop ? out.push_pop : out.start_end;
    if (!place) place = *form;
  }
  return out;
}

std::string shown(const NormalizedTerm& term) {
  std::string text;
  if (term.push_pop) text = "'" + *term.push_pop + "'";
  if (term.start_end) text += (text.empty() ? "'" : " or '") + *term.start_end + "'";
  return text;
}

}  // namespace

base::Result<Normalized> normalize(std::string_view written) {
  Normalized out;
  const auto pieces = list_of(unquoted(written));
  if (pieces.empty()) return base::fail(RangeExpression::parse(""));
  if (pieces.size() > 1) {
    out.notes.push_back("'" + std::string(base::trim(written)) + "' is a list: each part is an expression of its own.");
  }
  for (const std::string_view piece : pieces) {
    auto parsed = parse_range_syntax(piece);
    if (const auto* parts = std::get_if<RangeExpression::Parts>(&parsed)) {
      auto good = checked(term_of(piece, *parts));
      if (!good) return base::fail(std::move(good));
      const NormalizedTerm& term = out.terms.emplace_back(std::move(*good));
      if (term.push_pop && term.start_end) {
        out.notes.push_back("'" + term.written + "' does not say which kind of range: push/pop " + "'" +
                            *term.push_pop + "' or start/end '" + *term.start_end + "'.");
      }
      continue;
    }
    const auto& refusal = std::get<RangeRefusal>(parsed);
    if (refusal.terms.empty()) return base::fail(RangeExpression::parse(piece));
    std::string taken;
    for (const NormalizedTerm& term : refusal.terms) {
      auto good = checked(term);
      if (!good) return base::fail(RangeExpression::parse(piece));
      taken += (taken.empty() ? "" : " and ") + shown(*good);
      out.terms.push_back(std::move(*good));
      if (refusal.terms.size() == 1) out.terms.back().written = std::string(piece);
    }
    out.notes.push_back("'" + std::string(piece) + "': " + refusal.reason + "; taken as " + taken + ".");
  }
  return out;
}

base::Result<std::vector<std::string>> normalized_expressions(std::span<const std::string> written) {
  std::vector<std::string> expressions;
  const auto add = [&](const std::optional<std::string>& form) {
    if (form && std::find(expressions.begin(), expressions.end(), *form) == expressions.end())
      expressions.push_back(*form);
  };
  for (const std::string& each : written) {
    auto normalized = normalize(each);
    if (!normalized) return base::fail(std::move(normalized));
    for (const NormalizedTerm& term : normalized->terms) {
      add(term.push_pop);
      add(term.start_end);
    }
  }
  return expressions;
}

std::string escape_range_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::string_view("@,[]/*+").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string escape_regex(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::string_view("\\^$.|?*+()[]{}/@,").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string expression_of(std::string_view domain, std::span<const std::string> path, RangeKind kind) {
  if (path.empty()) return "";
  if (kind == RangeKind::kStartEnd && path.front().ends_with('\\')) {
    return std::string(kRegex) + (domain.empty() ? "" : "^" + escape_regex(domain) + "$@") + "^" +
           escape_regex(path.front()) + "$";
  }
  std::string text;
  if (!domain.empty()) {
    for (const char c : domain) {  // a '/' in a domain needs no backslash
      if (c == '@') text += '\\';
      text += c;
    }
    text += "@";
  }
  if (kind == RangeKind::kStartEnd) return text + escape_range_name(path.front());
  const std::string& last = path.back();
  if (std::any_of(path.begin(), path.end(), [](const std::string& name) { return name.ends_with('\\'); })) {
    // A backslash before '/' would escape it; only a regular expression can say such a name.
    text = std::string(kRegex) + (domain.empty() ? "" : "^" + escape_regex(domain) + "$@");
    return text + "^" + escape_regex(last) + "$/";
  }
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    for (std::size_t j = i + 1; j < path.size(); ++j) {
      if (path[i] == path[j]) return text + escape_range_name(last) + "/";  // a name cannot stand twice
    }
  }
  if (path.size() > 1) text += "[";
  for (std::size_t i = 0; i < path.size(); ++i) text += (i ? "/" : "") + escape_range_name(path[i]);
  return text + (path.size() > 1 ? "" : "/");
}

}  // namespace rangescope::model
