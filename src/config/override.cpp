#include "config/override.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::config {
namespace {

constexpr int kMostNested = 100;

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool key_char(char c) {
  return is_word(c) || std::string_view("./-$:").find(c) != std::string_view::npos;
}

bool escapes(std::string_view text, std::size_t at) {
  return text[at] == '\\' && at + 1 < text.size() &&
         std::string_view("\\()[]{}:=, \t").find(text[at + 1]) != std::string_view::npos;
}

/// The end of the quoted text that begins at `begin`: behind its closing quote, npos without one.
std::size_t behind_quote(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  for (std::size_t place = begin + 1; place < text.size(); ++place) {
    if (text[place] == quote)
      return place + 1;
    if (text[place] != '\\' || place + 1 == text.size())
      continue;
    const char escaped = text[place + 1];
    if (escaped == quote || escaped == '\\')
      ++place;
  }
  return std::string_view::npos;
}

/// White space around it goes, unless it was escaped.
std::string_view trimmed(std::string_view text) {
  const std::string_view bare = base::trim(text);
  const auto end = static_cast<std::size_t>(bare.data() + bare.size() - text.data());
  const bool is_space_escaped = bare.ends_with('\\') && end < text.size();
  if (!is_space_escaped)
    return bare;
  return text.substr(end - bare.size(), bare.size() + 1);
}

/// How a character changes the depth of nested brackets.
int change_of_depth(char c) {
  if (c == '[' || c == '{' || c == '(')
    return 1;
  if (c == ']' || c == '}' || c == ')')
    return -1;
  return 0;
}

/// Where `separator` first occurs outside of quotes and brackets; npos.
std::size_t find_outside(std::string_view text, char separator) {
  int depth = 0;
  bool begins = true;  // of a value: only there a quote is one
  for (std::size_t place = 0; place < text.size(); ++place) {
    const char c = text[place];
    if (depth <= 0 && c == separator)
      return place;
    if (escapes(text, place)) {
      ++place;
    } else if (begins && (c == '\'' || c == '"')) {
      const auto end = behind_quote(text, place);
      if (end == std::string_view::npos)
        return end;
      place = end - 1;
    }
    depth += change_of_depth(c);
    begins = c == ',' || c == '[' || c == '{' || c == ':' || (begins && (c == ' ' || c == '\t'));
  }
  return std::string_view::npos;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t place = 0; place < text.size(); ++place) {
    if (text.substr(place).starts_with("${")) {  // an interpolation is copied whole
      const std::size_t end = std::min(text.find('}', place), text.size() - 1);
      out += text.substr(place, end - place);
      place = end;
    } else if (escapes(text, place)) {
      ++place;
    }
    out += text[place];
  }
  return out;
}

base::Result<Value> value_of(std::string_view text, const Origin& origin, int depth);

base::Result<Value> quoted(std::string_view text, const Origin& origin) {
  const char quote = text.front();
  const auto end = behind_quote(text, 0);
  if (end == std::string_view::npos)
    return refused("the quote is not closed in " + std::string(text),
                   origin,
                   "Close it, or escape it with a backslash.");
  if (end < text.size())
    return refused("text follows the closing quote in " + std::string(text),
                   origin,
                   "Quote the value whole: key='...' inside the shell's quotes.");
  std::string out;
  // Only backslashes that lead up to a quote escape anything.
  for (std::size_t place = 1; place + 1 < end; ++place) {
    const std::size_t backslashes = std::min(text.find_first_not_of('\\', place), end - 1) - place;
    if (backslashes == 0 || text[place + backslashes] != quote) {
      out += text[place];
      continue;
    }
    out.append(backslashes / 2, '\\');
    place += backslashes - 1;
    const bool is_quote_escaped = backslashes % 2 == 1;
    if (is_quote_escaped) {
      out += quote;
      ++place;
    }
  }
  return text_value(out, origin);
}

/// The key of an item of a map, without its quotes.
std::string key_in(std::string_view written) {
  const std::string key = unescaped(trimmed(written));
  if (key.empty())
    return key;
  const bool is_quoted = key.front() == '\'' || key.front() == '"';
  if (is_quoted && key.back() == key.front())
    return key.substr(1, key.size() - 2);
  return key;
}

/// [a, b] or {a: b, c: d}
base::Result<Value> container(std::string_view text, const Origin& origin, int depth) {
  const bool is_map = text.front() == '{';
  Value value;
  value.kind = is_map ? Kind::kMap : Kind::kList;
  value.origin = origin;
  for (std::string_view rest = trimmed(text.substr(1, text.size() - 2)); !rest.empty();) {
    const auto comma = find_outside(rest, ',');
    std::string_view item = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma, rest.size() - 1) + 1);
    std::string key;
    if (is_map) {
      const auto colon = find_outside(item, ':');
      key = key_in(item.substr(0, colon));
      if (colon == std::string_view::npos || key.empty())
        return refused("'" + std::string(item) + "' is not a key: value", origin);
      if (value.find(key))
        return refused("key '" + key + "' is in the map twice", origin);
      item = trimmed(item.substr(colon + 1));
    } else if (item.empty()) {
      return refused("a value is missing in " + std::string(text), origin);
    }
    auto parsed = TRY(value_of(item, origin, depth + 1));
    if (is_map)
      value.entries.push_back({std::move(key), std::move(parsed)});
    else
      value.items.push_back(std::move(parsed));
  }
  return value;
}

base::Result<Value> value_of(std::string_view text, const Origin& origin, int depth) {
  if (depth > kMostNested)
    return refused("nested more than 100 deep", origin);
  if (text.empty())
    return text_value("", origin);  // `key=` is the empty text, as in Hydra
  if (text.front() == '\'' || text.front() == '"')
    return quoted(text, origin);
  const char open = text.front();
  if (open == '[' || open == '{') {
    const char closing = open == '[' ? ']' : '}';
    if (text.size() > 1 && text.back() == closing)
      return container(text, origin, depth);
    return refused(
        std::string(text) + " is not closed",
        origin,
        "Close it, or quote the value when it is text that starts with a bracket: key='\"[A\"'.");
  }
  const std::string plain = unescaped(text);
  const bool has_escapes = plain != text;
  if (has_escapes)
    return text_value(plain, origin);
  return plain_scalar(plain, origin);
}

}  // namespace

base::Result<Value> parse_value(std::string_view text, const Origin& origin) {
  const std::string_view value = trimmed(text);
  if (find_outside(value, ',') != std::string_view::npos)
    return refused("sweeps over several values are not supported",
                   origin,
                   "Write [a,b] for a list, or 'quotes' around a value that holds a comma.");
  return value_of(value, origin, 0);
}

bool looks_like_override(std::string_view word) {
  const bool deleted = word.starts_with('~');
  if (deleted || word.starts_with('+'))
    word.remove_prefix(1);
  const std::string_view key = word.substr(0, word.find('='));
  return !key.empty() && is_word(key.front()) && (deleted || key.size() < word.size()) &&
         std::ranges::all_of(key, [](char c) { return key_char(c) || c == '@'; });
}

base::Result<Override> parse_override(std::string_view text, const Origin& origin) {
  std::string_view body = text;
  if (body.starts_with('~') || body.starts_with('+'))
    body.remove_prefix(1);
  const auto equal = body.find('=');
  Override result{std::string(base::trim(body.substr(0, equal))), {}, origin};
  if (text.starts_with('~') != (equal == std::string_view::npos))
    return refused("'" + std::string(text) + "' is not an override",
                   origin,
                   "Write key=value, or ~key to take a key away.");
  if (result.key.empty())
    return refused("'" + std::string(text) + "' names no key", origin);
  for (const char c : result.key) {
    if (key_char(c))
      continue;
    std::string hint = "Write names joined by dots: run.keep=5.";
    if (c == '@')
      hint = "Choose a preset by its group: ncu=default, nsys=default (`config show` lists them).";
    return refused(
        "'" + result.key + "' is not a key: '" + std::string(1, c) + "' is not allowed in one",
        origin,
        hint);
  }
  if (equal == std::string_view::npos)
    return result;
  result.value = TRY(parse_value(body.substr(equal + 1), origin));
  return result;
}

Override set_text(std::string key, std::string_view text, Origin origin) {
  Override result{std::move(key), plain_scalar(text, origin), std::move(origin)};
  result.value->literal = true;
  return result;
}

Override set_list(std::string key, const std::vector<std::string>& items, const Origin& origin) {
  Override result{std::move(key), list_value(items, origin), origin};
  for (Value& item : result.value->items)
    item.literal = true;
  return result;
}

}  // namespace rangescope::config
