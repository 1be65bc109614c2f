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
bool pairs(std::string_view text, std::size_t place, bool regex) {
  return text[place] == '\\' && place + 1 < text.size() &&
         (regex || kSpecial.find(text[place + 1]) != std::string_view::npos);
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

/// Whether the text ends with the character, and no backslash pairs with it.
bool ends_unescaped(std::string_view text, char character, bool regex) {
  if (text.empty() || text.back() != character)
    return false;
  const std::size_t last = text.size() - 1;
  std::size_t i = 0;
  while (i < last)
    i += pairs(text, i, regex) ? 2 : 1;
  return i == last;
}

/// Whether '[' at the start and ']' at the end of a literal expression are anchors. They are not
/// where they pair with a bracket inside the same name: `layer[0]`, `[tag] x`.
std::pair<bool, bool> anchors(std::string_view ranges) {
  const auto close =
      find_unescaped(ranges.substr(0, find_unescaped(ranges, "/,", false)), "]", false);
  const bool bottom =
      ranges.starts_with('[') && (close == std::string_view::npos || close + 1 == ranges.size());
  std::string_view last = ranges.substr(bottom ? 1 : 0);
  for (auto separator = find_unescaped(last, "/,", false); separator != std::string_view::npos;
       separator = find_unescaped(last, "/,", false))
    last.remove_prefix(separator + 1);
  const bool top = ends_unescaped(ranges, ']', false) &&
                   find_unescaped(last, "[", false) == std::string_view::npos;
  return {bottom, top};
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

/// What stands before the ranges: `regex:`, and the domain.
std::string head_of(bool regex, std::optional<std::string_view> domain) {
  std::string head;
  if (regex)
    head += kRegexPrefix;
  if (domain)
    head += std::string(*domain) + "@";
  return head;
}

bool is_quantifier(std::string_view name) {
  return name == "*" || name == "+";
}

/// What follows the last name of a stack: its anchor, or the slash where it has no anchor at all.
std::string_view end_of_stack(bool bottom, bool top) {
  if (top)
    return "]";
  return bottom ? "" : "/";
}

std::string with_slash(std::string text) {
  if (!text.ends_with('/'))
    text += '/';
  return text;
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
      if (name.empty() || (text.empty() && is_quantifier(name)))
        continue;
      if (!text.empty())
        text += "/";
      if (is_quantifier(name))
        text += name;
      else
        text += glob_to_regex(name);
    }
    if (text.empty())
      text = ".*";
  }
  const std::string head = std::string(kRegexPrefix) + regex_domain(domain);
  if (stack) {
    if (bottom)
      text.insert(0, "[");
    text += end_of_stack(bottom, top);
    return {push_pop(head + text)};
  }
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
  const std::size_t special = find_unescaped(raw, in_stack ? "[],+" : "[]+", false);
  if (special != std::string_view::npos) {
    const std::string form = std::string(head) + escape_again(raw);
    NormalizedTerm term = either(form);
    if (in_stack)
      term.start_end.reset();
    return refuse(std::string("'") + raw[special] + "' inside a name needs a backslash", {term});
  }
  if (blank(raw.front()) || blank(raw.back())) {
    const std::string name(base::trim(raw));
    std::vector<NormalizedTerm> terms;
    if (!name.empty())
      terms.push_back(either(std::string(head) + name));
    return refuse("white space around a name is significant and matches nothing", std::move(terms));
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
        return refuse("the '[' at the start is read as an anchor, not as a character class",
                      {push_pop(std::string(head) + "/[" + with_slash(body))});
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
        for (const std::string_view unescaped : names)
          escaped.push_back(escape_again(base::trim(unescaped)));
        refusal->terms = {start_end(std::string(head) + base::join(escaped, ","))};
      }
      return *refusal;
    }
    parts.elements.push_back(std::get<Element>(std::move(element)));
  }
  return parts;
}

/// Literals that cannot both be in place: a name means its topmost occurrence, so nothing is
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

/// A stack of push/pop ranges.
class StackParser {
 public:
  /// `inner`: the names without anchors; `ranges`: with them; `head`: what stands before.
  StackParser(Parts parts, std::string_view inner, std::string_view ranges, std::string_view head)
      : parts_(std::move(parts)), ranges_(ranges), head_(head) {
    parts_.kind = RangeKind::kPushPop;
    names_ = split_unescaped(inner, '/', parts_.regex);
    if (names_.size() > 1 && names_.back().empty())
      names_.pop_back();
  }

  std::variant<Parts, RangeRefusal> parse() {
    if (auto refusal = check_names())
      return *std::move(refusal);
    for (const std::string_view name : names_)
      if (auto refusal = add(name))
        return *std::move(refusal);
    if (auto refusal = check_elements())
      return *std::move(refusal);
    return std::move(parts_);
  }

 private:
  [[nodiscard]] std::optional<RangeRefusal> check_names() const {
    const auto is_empty = [](std::string_view name) { return name.empty(); };
    if (std::all_of(names_.begin(), names_.end(), is_empty))
      return refuse("there is no name in it");
    const auto begins_with_comma = [](std::string_view name) { return name.starts_with(','); };
    if (!parts_.regex && std::any_of(names_.begin() + 1, names_.end(), begins_with_comma))
      return refuse_list();
    if (names_.size() > wire::kMaxRangeElements)
      return refuse("it has more than " + std::to_string(wire::kMaxRangeElements) + " names");
    if (is_quantifier(names_.front()))
      return refuse_quantifier_first();
    return std::nullopt;
  }
  /// 'A/,B' and 'A/,B/': a list of push/pop ranges, which the grammar does not have.
  [[nodiscard]] RangeRefusal refuse_list() const {
    std::vector<NormalizedTerm> terms;
    for (const std::string_view piece : split_unescaped(ranges_, ',', false))
      if (!piece.empty())
        terms.push_back(push_pop(head_ + with_slash(std::string(piece))));
    return refuse("',' joins start/end ranges only; a list of push/pop ranges matches nothing",
                  std::move(terms));
  }
  [[nodiscard]] RangeRefusal refuse_quantifier_first() const {
    std::string rest;
    for (std::size_t i = 1; i < names_.size(); ++i)
      rest += std::string(names_[i]) + "/";
    const bool begins_with_quantifier = rest.starts_with('*') || rest.starts_with('+');
    std::string corrected = head_ + rest;
    if (rest.empty() || begins_with_quantifier || parts_.bottom)
      corrected = std::string(kRegexPrefix) + ".*/";
    return refuse("a quantifier cannot come first", {push_pop(std::move(corrected))});
  }
  [[nodiscard]] RangeRefusal refuse_empty_name() const {
    std::vector<std::string> kept;
    for (const std::string_view name : names_)
      if (!name.empty())
        kept.emplace_back(name);
    const char* const begin = parts_.bottom ? "[" : "";
    const char* const end = parts_.top ? "]" : "/";
    return refuse("there is an empty name between slashes",
                  {push_pop(head_ + begin + base::join(kept, "/") + end)});
  }

  std::optional<RangeRefusal> add(std::string_view name) {
    if (name.empty())
      return refuse_empty_name();
    if (is_quantifier(name))
      return add_quantifier(name);
    if (!parts_.regex)
      return add_literal(name);
    const bool is_first = parts_.elements.empty(), is_last = name.data() == names_.back().data();
    if (auto refusal =
            check_class(name, is_first && parts_.bottom, is_last && parts_.top, ranges_, head_))
      return refusal;
    parts_.elements.push_back({Element::Kind::kName, std::string(name)});
    return std::nullopt;
  }
  std::optional<RangeRefusal> add_quantifier(std::string_view name) {
    const auto kind = name == "*" ? Element::Kind::kAny : Element::Kind::kOne;
    const auto kind_before = parts_.elements.back().kind;
    if (kind_before == Element::Kind::kName)
      parts_.elements.push_back({kind, {}});
    else if (kind_before != kind)
      return refuse("'*' and '+' in a row are not defined");
    return std::nullopt;  // 'A/+/+/B' behaves as one '+' in ncu
  }
  std::optional<RangeRefusal> add_literal(std::string_view name) {
    auto element = literal_name(name, head_, true);
    if (auto* refusal = std::get_if<RangeRefusal>(&element)) {
      refusal->terms = {push_pop(head_ + escaped_stack())};
      return *refusal;
    }
    parts_.elements.push_back(std::get<Element>(std::move(element)));
    return std::nullopt;
  }
  /// The stack with backslashes where its names need them.
  [[nodiscard]] std::string escaped_stack() const {
    std::string stack = parts_.bottom ? "[" : "";
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto name = base::trim(names_[i]);
      if (name.empty())
        continue;
      if (i > 0)
        stack += "/";
      if (is_quantifier(name))
        stack += name;
      else
        stack += escape_again(name);
    }
    stack += end_of_stack(parts_.bottom, parts_.top);
    return stack;
  }

  [[nodiscard]] std::optional<RangeRefusal> check_elements() const {
    if (parts_.top && parts_.elements.back().kind != Element::Kind::kName)
      return refuse("']' must follow a name");
    if (parts_.bottom && parts_.top && parts_.elements.size() == 1) {
      const std::string& text = parts_.elements[0].text;
      const std::string name = parts_.regex ? text : escape_range_name(text);
      return refuse("'[' and ']' around a single name match nothing",
                    {push_pop(head_ + "[" + name)});
    }
    if (parts_.regex)
      return std::nullopt;
    return check_repetition(parts_, head_);
  }

  Parts parts_;
  std::vector<std::string_view> names_;
  std::string_view ranges_;
  std::string head_;
};

/// An empty text, and one in quotes or between blanks.
std::optional<RangeRefusal> check_text(std::string_view text) {
  if (text.empty())
    return refuse("it is empty, which matches nothing");
  const bool begins_with_quote = text.front() == '"' || text.front() == '\'';
  if (text.size() >= 2 && begins_with_quote && text.back() == text.front()) {
    const std::string inner(text.substr(1, text.size() - 2));
    if (inner.empty())
      return refuse("it is empty, which matches nothing");
    return refuse("quotes are not part of the syntax and match nothing", terms_of(inner));
  }
  if (blank(text.front()) || blank(text.back())) {
    const std::string inner(base::trim(text));
    if (inner.empty())
      return refuse("it is empty, which matches nothing");
    return refuse("white space around it is significant and matches nothing", terms_of(inner));
  }
  return std::nullopt;
}

RangeRefusal refuse_semicolons(std::string_view text) {
  std::vector<NormalizedTerm> terms;
  for (const std::string_view piece : base::split(text, ';')) {
    const std::string_view trimmed = base::trim(piece);
    if (trimmed.empty())
      continue;
    const auto of_piece = terms_of(std::string(trimmed));
    terms.insert(terms.end(), of_piece.begin(), of_piece.end());
  }
  return refuse("a list with ';' matches nothing (a name that holds ';' can be had with regex:)",
                std::move(terms));
}

/// Sets the anchors, and gives the ranges without them, where they were changed in `unprotected`.
/// In a regular expression "/[" at the start and "/]" at the end keep a character class from being
/// an anchor.
std::string_view without_anchors(std::string_view ranges, Parts& parts, std::string& unprotected) {
  std::string_view inner = ranges;
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
  return inner;
}

/// A wildcard inside a literal name is a letter to ncu ('layer*/' matches nothing, and exits 0).
bool has_wildcard_in_name(std::string_view inner) {
  for (const std::string_view by_slash : split_unescaped(inner, '/', false)) {
    for (const std::string_view name : split_unescaped(by_slash, ',', false)) {
      if (!is_quantifier(name) && has_wildcard(name))
        return true;
      if (name == "*" && inner.find('/') == std::string_view::npos)
        return true;
    }
  }
  return false;
}

/// `ranges`: with anchors; `inner`: without.
std::optional<RangeRefusal> check_literal(std::optional<std::string_view> domain,
                                          std::string_view ranges,
                                          std::string_view inner) {
  if (unpaired_backslash(inner))
    return refuse("a backslash at the end would escape what follows it", as_regex(domain, ranges));
  if ((domain && has_wildcard(*domain)) || has_wildcard_in_name(inner))
    return refuse("'*' inside a name or domain is a letter, not a wildcard",
                  as_regex(domain, ranges));
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> split_unescaped(std::string_view text, char separator, bool regex) {
  std::vector<std::string_view> pieces;
  const char separators[] = {separator};
  while (true) {
    const std::size_t place = find_unescaped(text, std::string_view(separators, 1), regex);
    pieces.push_back(text.substr(0, place));
    if (place == std::string_view::npos)
      return pieces;
    text.remove_prefix(place + 1);
  }
}

std::variant<Parts, RangeRefusal> parse_range_syntax(std::string_view text) {
  if (auto refusal = check_text(text))
    return *std::move(refusal);
  Parts parts;
  std::string_view rest = text;
  if (rest.starts_with(kRegexPrefix)) {
    parts.regex = true;
    rest.remove_prefix(kRegexPrefix.size());
    if (rest.empty())
      return refuse("there is no pattern after 'regex:'", {push_pop("regex:.*/")});
  }
  if (!parts.regex && rest.find(';') != std::string_view::npos)
    return refuse_semicolons(rest);

  std::optional<std::string_view> raw_domain;
  const auto pieces = split_unescaped(rest, '@', parts.regex);
  if (pieces.size() > 2)
    return refuse("there may be one domain: '@' in a name needs a backslash");
  if (pieces.size() == 2) {
    raw_domain = pieces[0];
    rest = pieces[1];
    if (raw_domain->empty())
      return refuse("there is no domain before '@'",
                    terms_of(head_of(parts.regex, std::nullopt) + std::string(rest)));
    parts.domain = parts.regex ? std::string(*raw_domain) : unescape(*raw_domain);
  }
  const std::string head = head_of(parts.regex, raw_domain);
  if (rest.empty()) {
    const std::string pattern = parts.regex ? *parts.domain : glob_to_regex(*raw_domain);
    return refuse("there is no range after the domain",
                  {{std::string(text), "regex:" + pattern + "@.*/", "regex:" + pattern + "@.*"}});
  }

  std::string unprotected;
  const std::string_view inner = without_anchors(rest, parts, unprotected);
  if (inner.empty())
    return refuse("there is no name in it");
  if (!parts.regex)
    if (auto refusal = check_literal(raw_domain, rest, inner))
      return *std::move(refusal);
  const bool is_stack = parts.bottom || parts.top ||
                        find_unescaped(inner, "/", parts.regex) != std::string_view::npos;
  if (is_stack)
    return StackParser(std::move(parts), inner, rest, head).parse();
  return parse_start_end(std::move(parts), inner, head);
}

}  // namespace rangescope::model
