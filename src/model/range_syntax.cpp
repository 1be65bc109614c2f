#include "model/range_syntax.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace rangescope::model {
namespace {

using Parts = RangeExpression::Parts;
using Element = RangeExpression::Element;

constexpr std::string_view kSpecial = "@,[]/*+";

// A backslash pairs with the special character behind it; before anything else it is a letter
// ('w\z/' matches w\z). In a regular expression it pairs with whatever follows.
bool pairs(std::string_view text, std::size_t at, bool regex) {
  return text[at] == '\\' && at + 1 < text.size() &&
         (regex || kSpecial.find(text[at + 1]) != std::string_view::npos);
}

std::size_t find_unescaped(std::string_view text, std::string_view characters, bool regex) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (pairs(text, i, regex)) {
      ++i;
    } else if (characters.find(text[i]) != std::string_view::npos) {
      return i;
    }
  }
  return std::string_view::npos;
}

bool ends_unescaped(std::string_view text, char character, bool regex) {
  if (text.empty() || text.back() != character)
    return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (pairs(text, i, regex)) {
      ++i;
      if (i + 1 == text.size())
        return false;
    }
  }
  return true;
}

/// Whether '[' at the start and ']' at the end of a literal expression are anchors. They are not
/// where they pair with a bracket inside the same name: `layer[0]`, `[tag] x`.
std::pair<bool, bool> anchors(std::string_view ranges) {
  const auto close =
      find_unescaped(ranges.substr(0, find_unescaped(ranges, "/,", false)), "]", false);
  const bool bottom =
      ranges.starts_with('[') && (close == std::string_view::npos || close + 1 == ranges.size());
  std::string_view last = ranges.substr(bottom ? 1 : 0);
  for (auto at = find_unescaped(last, "/,", false); at != std::string_view::npos;
       at = find_unescaped(last, "/,", false))
    last.remove_prefix(at + 1);
  return {bottom,
          ends_unescaped(ranges, ']', false) &&
              find_unescaped(last, "[", false) == std::string_view::npos};
}

/// A last letter that is a backslash, not the second half of a pair.
bool unpaired_backslash(std::string_view text) {
  return text.ends_with('\\');
}

std::string unescape(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (pairs(text, i, false))
      ++i;
    name += text[i];
  }
  return name;
}

/// Escapes what the grammar would read as its own, once: what is escaped already stays.
std::string escape_again(std::string_view text) {
  return escape_range_name(unescape(text));
}

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

RangeRefusal refuse(std::string reason, std::vector<NormalizedTerm> terms = {}) {
  return {std::move(reason), std::move(terms)};
}

NormalizedTerm push_pop(std::string text) {
  return {text, std::move(text), std::nullopt};
}
NormalizedTerm start_end(std::string text) {
  return {text, std::nullopt, std::move(text)};
}
NormalizedTerm either(const std::string& name) {
  return {name, name + "/", name};
}

/// One name with `*` as wildcard, as an anchored regular expression: `layer*` -> `^layer.*`, `a*z`
/// -> `^a.*z$`.
std::string glob_to_regex(std::string_view name) {
  std::string out = name.starts_with('*') ? "" : "^";
  std::string literal;
  bool ends_open = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '*') {
      out += escape_regex(literal) + ".*";
      literal.clear();
    } else {
      if (pairs(name, i, false))
        ++i;
      literal += name[i];
    }
    ends_open = name[i] == '*' && literal.empty();
  }
  if (!ends_open)
    out += escape_regex(literal) + "$";
  return out;
}

/// `domain@` for a rewritten expression that is a regular expression.
std::string regex_domain(std::optional<std::string_view> domain) {
  if (!domain)
    return "";
  return glob_to_regex(*domain) + "@";
}

std::string domain_prefix(std::optional<std::string_view> domain) {
  return domain ? std::string(*domain) + "@" : std::string();
}

/// Literal names with wildcards in them, rewritten as a regular expression; quantifiers between
/// names stay.
std::vector<NormalizedTerm> as_regex(std::optional<std::string_view> domain,
                                     std::string_view ranges) {
  const auto [bottom, top] = anchors(ranges);
  std::string_view inner = ranges;
  if (bottom)
    inner.remove_prefix(1);
  if (top && !inner.empty())
    inner.remove_suffix(1);
  const bool stack = bottom || top || find_unescaped(inner, "/", false) != std::string_view::npos;
  std::string text;
  if (!stack) {
    for (const std::string_view name : split_unescaped(inner, ',', false)) {
      if (!text.empty())
        text += ",";
      text += glob_to_regex(name);
    }
  } else {
    for (const std::string_view name : split_unescaped(inner, '/', false)) {
      if (name.empty() || (text.empty() && (name == "*" || name == "+")))
        continue;
      if (!text.empty())
        text += "/";
      text += name == "*" || name == "+" ? std::string(name) : glob_to_regex(name);
    }
    if (text.empty())
      text = ".*";
  }
  const std::string head = std::string(kRegexPrefix) + regex_domain(domain);
  if (stack)
    return {push_pop(head + (bottom ? "[" : "") + text + (top ? "]" : bottom ? "" : "/"))};
  if (find_unescaped(inner, ",", false) != std::string_view::npos)
    return {start_end(head + text)};
  return {{std::string(ranges), head + text + "/", head + text}};
}

/// The terms of a corrected text: itself where it is right, else what its own refusal proposes.
std::vector<NormalizedTerm> terms_of(const std::string& text) {
  auto parsed = parse_range_syntax(text);
  if (auto* refusal = std::get_if<RangeRefusal>(&parsed))
    return std::move(refusal->terms);
  const Parts& parts = std::get<Parts>(parsed);
  if (parts.kind == RangeKind::kPushPop)
    return {push_pop(text)};
  if (parts.elements.size() > 1 || parts.regex)
    return {start_end(text)};
  return {either(text)};
}

bool has_wildcard(std::string_view name) {
  return find_unescaped(name, "*", false) != std::string_view::npos;
}

std::variant<Element, RangeRefusal> literal_name(std::string_view raw,
                                                 std::string_view head,
                                                 bool in_stack) {
  const std::size_t at = find_unescaped(raw, in_stack ? "[],+" : "[]+", false);
  if (at != std::string_view::npos) {
    const std::string form = std::string(head) + escape_again(raw);
    NormalizedTerm term = either(form);
    if (in_stack)
      term.start_end.reset();
    return refuse(std::string("'") + raw[at] + "' inside a name needs a backslash", {term});
  }
  if (blank(raw.front()) || blank(raw.back())) {
    const std::string name(base::trim(raw));
    return refuse("white space around a name is significant and matches nothing",
                  name.empty() ? std::vector<NormalizedTerm>{}
                               : std::vector<NormalizedTerm>{either(std::string(head) + name)});
  }
  return Element{Element::Kind::kName, unescape(raw)};
}

/// A character class that opens or closes the range part would be read as an anchor.
std::optional<RangeRefusal> check_class(std::string_view name,
                                        bool at_start,
                                        bool at_end,
                                        std::string_view rest,
                                        std::string_view head) {
  int open = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (pairs(name, i, true)) {
      ++i;
      continue;
    }
    if (name[i] == '[')
      open = 1;
    if (name[i] == ']') {
      if (open == 0 && at_start) {
        const std::string body(rest.substr(1));
        return refuse(
            "the '[' at the start is read as an anchor, not as a character class",
            {push_pop(std::string(head) + "/[" + body + (body.ends_with('/') ? "" : "/"))});
      }
      open = 0;
    }
  }
  if (open != 0 && at_end) {
    const std::string body(rest.substr(0, rest.size() - 1));
    return refuse(
        "the ']' at the end is read as an anchor, not as a character class",
        {{std::string(rest), std::string(head) + body + "]/", std::string(head) + body + "/]"}});
  }
  return std::nullopt;
}

std::variant<Parts, RangeRefusal> parse_start_end(Parts parts,
                                                  std::string_view ranges,
                                                  std::string_view head) {
  parts.kind = RangeKind::kStartEnd;
  const auto names = split_unescaped(ranges, ',', parts.regex);
  std::vector<std::string> kept;
  for (const std::string_view name : names) {
    if (!name.empty())
      kept.emplace_back(name);
  }
  if (kept.size() != names.size()) {
    if (kept.empty())
      return refuse("there is no name in it");
    NormalizedTerm term = start_end(std::string(head) + base::join(kept, ","));
    return refuse("an empty name next to ',' matches nothing", {term});
  }
  for (const std::string_view name : names) {
    if (parts.regex) {
      parts.elements.push_back({Element::Kind::kName, std::string(name)});
      continue;
    }
    auto element = literal_name(name, head, false);
    if (auto* refusal = std::get_if<RangeRefusal>(&element)) {
      if (names.size() > 1) {
        std::vector<std::string> escaped;
        for (const std::string_view each : names)
          escaped.push_back(escape_again(base::trim(each)));
        refusal->terms = {start_end(std::string(head) + base::join(escaped, ","))};
      }
      return *refusal;
    }
    parts.elements.push_back(std::get<Element>(std::move(element)));
  }
  return parts;
}

/// Literals that cannot both be in place: a name stands for its topmost occurrence, so nothing is
/// directly above itself.
std::optional<RangeRefusal> check_repetition(const Parts& parts, std::string_view head) {
  for (std::size_t i = 0; i < parts.elements.size(); ++i) {
    if (parts.elements[i].kind != Element::Kind::kName)
      continue;
    for (std::size_t j = i + 1; j < parts.elements.size(); ++j) {
      if (parts.elements[j].kind == Element::Kind::kName &&
          parts.elements[j].text == parts.elements[i].text) {
        if (j == i + 2 && parts.elements[i + 1].kind == Element::Kind::kAny)
          break;  // 'A/*/A' matches a single A
        return refuse(
            "a name cannot be in a stack expression twice: it means its topmost instance",
            {push_pop(std::string(head) + escape_range_name(parts.elements[i].text) + "/")});
      }
    }
  }
  return std::nullopt;
}

std::variant<Parts, RangeRefusal> parse_push_pop(Parts parts,
                                                 std::string_view inner,
                                                 std::string_view ranges,
                                                 std::string_view head) {
  parts.kind = RangeKind::kPushPop;
  auto names = split_unescaped(inner, '/', parts.regex);
  if (names.size() > 1 && names.back().empty())
    names.pop_back();
  if (names.empty() ||
      std::all_of(names.begin(), names.end(), [](auto name) { return name.empty(); })) {
    return refuse("there is no name in it");
  }
  // 'A/,B' and 'A/,B/': a list of push/pop ranges, which the grammar does not have.
  if (!parts.regex && std::any_of(names.begin() + 1, names.end(), [](auto name) {
        return name.starts_with(',');
      })) {
    std::vector<NormalizedTerm> terms;
    for (const std::string_view piece : split_unescaped(ranges, ',', false)) {
      if (!piece.empty())
        terms.push_back(
            push_pop(std::string(head) + std::string(piece) + (piece.ends_with('/') ? "" : "/")));
    }
    return refuse("',' joins start/end ranges only; a list of push/pop ranges matches nothing",
                  std::move(terms));
  }
  if (names.size() > wire::kMaxRangeElements)
    return refuse("it has more than " + std::to_string(wire::kMaxRangeElements) + " names");
  if (names.front() == "*" || names.front() == "+") {
    std::string rest;
    for (std::size_t i = 1; i < names.size(); ++i)
      rest += std::string(names[i]) + "/";
    const bool useless =
        rest.empty() || rest.starts_with('*') || rest.starts_with('+') || parts.bottom;
    return refuse(
        "a quantifier cannot come first",
        {push_pop(useless ? std::string(kRegexPrefix) + ".*/" : std::string(head) + rest)});
  }
  for (const std::string_view name : names) {
    if (name.empty()) {
      std::vector<std::string> kept;
      for (const std::string_view each : names) {
        if (!each.empty())
          kept.emplace_back(each);
      }
      return refuse("there is an empty name between slashes",
                    {push_pop(std::string(head) + (parts.bottom ? "[" : "") +
                              base::join(kept, "/") + (parts.top ? "]" : "/"))});
    }
    if (name == "*" || name == "+") {
      const auto kind = name == "*" ? Element::Kind::kAny : Element::Kind::kOne;
      if (parts.elements.back().kind == Element::Kind::kName) {
        parts.elements.push_back({kind, {}});
      } else if (parts.elements.back().kind != kind) {
        return refuse("'*' and '+' in a row are not defined");
      }  // 'A/+/+/B' behaves as one '+' in ncu
      continue;
    }
    if (parts.regex) {
      const bool first = parts.elements.empty(), last = name.data() == names.back().data();
      if (auto refusal = check_class(name, first && parts.bottom, last && parts.top, ranges, head))
        return *refusal;
      parts.elements.push_back({Element::Kind::kName, std::string(name)});
      continue;
    }
    auto element = literal_name(name, head, true);
    if (auto* refusal = std::get_if<RangeRefusal>(&element)) {
      std::string form = std::string(head) + (parts.bottom ? "[" : "");
      for (std::size_t i = 0; i < names.size(); ++i) {
        const auto trimmed = base::trim(names[i]);
        if (trimmed.empty())
          continue;
        form += (i ? "/" : "") +
                (trimmed == "*" || trimmed == "+" ? std::string(trimmed) : escape_again(trimmed));
      }
      refusal->terms = {push_pop(form + (parts.top ? "]" : parts.bottom ? "" : "/"))};
      return *refusal;
    }
    parts.elements.push_back(std::get<Element>(std::move(element)));
  }
  if (parts.top && parts.elements.back().kind != Element::Kind::kName)
    return refuse("']' must follow a name");
  if (parts.bottom && parts.top && parts.elements.size() == 1) {
    const std::string name =
        parts.regex ? parts.elements[0].text : escape_range_name(parts.elements[0].text);
    return refuse("'[' and ']' around a single name match nothing",
                  {push_pop(std::string(head) + "[" + name)});
  }
  if (!parts.regex) {
    if (auto refusal = check_repetition(parts, head))
      return *refusal;
  }
  return parts;
}

}  // namespace

std::vector<std::string_view> split_unescaped(std::string_view text, char separator, bool regex) {
  std::vector<std::string_view> pieces;
  const char separators[] = {separator};
  while (true) {
    const std::size_t at = find_unescaped(text, std::string_view(separators, 1), regex);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos)
      return pieces;
    text.remove_prefix(at + 1);
  }
}

std::variant<Parts, RangeRefusal> parse_range_syntax(std::string_view text) {
  Parts parts;
  std::string_view rest = text;
  if (rest.empty())
    return refuse("it is empty, which matches nothing");
  if (rest.size() >= 2 && (rest.front() == '"' || rest.front() == '\'') &&
      rest.back() == rest.front()) {
    const std::string inner(rest.substr(1, rest.size() - 2));
    if (inner.empty())
      return refuse("it is empty, which matches nothing");
    return refuse("quotes are not part of the syntax and match nothing", terms_of(inner));
  }
  if (blank(rest.front()) || blank(rest.back())) {
    const std::string inner(base::trim(rest));
    if (inner.empty())
      return refuse("it is empty, which matches nothing");
    return refuse("white space around it is significant and matches nothing", terms_of(inner));
  }
  if (rest.starts_with(kRegexPrefix)) {
    parts.regex = true;
    rest.remove_prefix(kRegexPrefix.size());
    if (rest.empty())
      return refuse("there is no pattern after 'regex:'", {push_pop("regex:.*/")});
  }
  if (!parts.regex && rest.find(';') != std::string_view::npos) {
    std::vector<NormalizedTerm> terms;
    for (const std::string_view piece : base::split(rest, ';')) {
      const std::string_view each = base::trim(piece);
      if (each.empty())
        continue;
      auto more = terms_of(std::string(each));
      terms.insert(terms.end(), more.begin(), more.end());
    }
    return refuse("a list with ';' matches nothing (a name that holds ';' can be had with regex:)",
                  std::move(terms));
  }

  std::optional<std::string_view> raw_domain;
  const auto pieces = split_unescaped(rest, '@', parts.regex);
  if (pieces.size() > 2)
    return refuse("there may be one domain: '@' in a name needs a backslash");
  if (pieces.size() == 2) {
    raw_domain = pieces[0];
    rest = pieces[1];
    if (raw_domain->empty()) {
      const std::string inner =
          (parts.regex ? std::string(kRegexPrefix) : std::string()) + std::string(rest);
      return refuse("there is no domain before '@'", terms_of(inner));
    }
    parts.domain = parts.regex ? std::string(*raw_domain) : unescape(*raw_domain);
  }
  const std::string head =
      (parts.regex ? std::string(kRegexPrefix) : std::string()) + domain_prefix(raw_domain);
  if (rest.empty()) {
    const std::string pattern = parts.regex ? *parts.domain : glob_to_regex(*raw_domain);
    return refuse("there is no range after the domain",
                  {{std::string(text), "regex:" + pattern + "@.*/", "regex:" + pattern + "@.*"}});
  }

  // Anchors; in a regular expression "/[" at the start and "/]" at the end keep a character class
  // from being one.
  std::string_view inner = rest;
  std::string unprotected;
  if (parts.regex) {
    const bool front = inner.starts_with("/["), back = inner.size() > 2 && inner.ends_with("/]");
    if (front || back) {
      unprotected = std::string(inner.substr(front ? 1 : 0));
      if (back)
        unprotected.erase(unprotected.size() - 2, 1);
      inner = unprotected;
    }
    if (!front && inner.starts_with('['))
      parts.bottom = true;
    if (!back && ends_unescaped(inner, ']', true))
      parts.top = true;
  } else {
    std::tie(parts.bottom, parts.top) = anchors(inner);
  }
  if (parts.bottom)
    inner.remove_prefix(1);
  if (parts.top && !inner.empty())
    inner.remove_suffix(1);
  if (inner.empty())
    return refuse("there is no name in it");

  if (!parts.regex) {
    if (unpaired_backslash(inner)) {
      return refuse("a backslash at the end would escape what follows it",
                    as_regex(raw_domain, rest));
    }
    // A wildcard inside a literal name is a letter to ncu ('layer*/' matches nothing, and exits 0).
    bool wildcard = raw_domain && has_wildcard(*raw_domain);
    for (const std::string_view by_slash : split_unescaped(inner, '/', false)) {
      for (const std::string_view name : split_unescaped(by_slash, ',', false)) {
        if (name != "*" && name != "+" && has_wildcard(name))
          wildcard = true;
        if (name == "*" && inner.find('/') == std::string_view::npos)
          wildcard = true;
      }
    }
    if (wildcard)
      return refuse("'*' inside a name or domain is a letter, not a wildcard",
                    as_regex(raw_domain, rest));
  }
  const bool stack = parts.bottom || parts.top ||
                     find_unescaped(inner, "/", parts.regex) != std::string_view::npos;
  return stack ? parse_push_pop(std::move(parts), inner, rest, head)
               : parse_start_end(std::move(parts), inner, head);
}

}  // namespace rangescope::model
