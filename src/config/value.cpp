#include "config/value.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/redact.hpp"
#include "base/text.hpp"

namespace rangescope::config {
namespace {

/// An item of a list by its index, an entry of a map by its name; null where there is none.
const Value* member_of(const Value& value, std::string_view name) {
  if (!value.is_list())
    return value.find(name);
  const auto index = base::to_uint(name);
  if (!index || *index >= value.items.size())
    return nullptr;
  return &value.items[*index];
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key)
      return &entry.value;
  return nullptr;
}

Value* Value::find(std::string_view key) {
  for (Entry& entry : entries)
    if (entry.key == key)
      return &entry.value;
  return nullptr;
}

Value& Value::get_or_add(std::string_view key, const Origin& added_by) {
  if (!is_map()) {
    *this = Value{};
    kind = Kind::kMap;
    origin = added_by;
  }
  if (Value* old = find(key))
    return *old;
  entries.push_back({std::string(key), Value{}});
  entries.back().value.origin = added_by;
  return entries.back().value;
}

bool Value::erase(std::string_view key) {
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (entry->key != key)
      continue;
    entries.erase(entry);
    return true;
  }
  return false;
}

Value plain_scalar(std::string_view text, Origin origin) {
  Value value;
  value.text = text;
  value.origin = std::move(origin);
  const std::string low = base::lower(text);
  if (low.empty() || low == "null" || text == "~")
    return value;
  if (low == "true" || low == "false") {
    value.kind = Kind::kBool;
    value.boolean = low == "true";
    return value;
  }
  const std::string bare = base::replace_all(text, "_", "");
  const bool numeric =
      text.front() != '_' && (text.front() == '-' || text.front() == '+' || text.front() == '.' ||
                              (text.front() >= '0' && text.front() <= '9'));
  if (numeric && text.back() != '_') {
    std::string_view unsigned_part = bare;
    if (bare.front() == '+')
      unsigned_part.remove_prefix(1);
    // 007 is text in YAML 1.2's core schema only when it is quoted, but its author does not mean
    // seven.
    const bool leading_zero = unsigned_part.size() > 1 && unsigned_part[0] == '0' &&
                              unsigned_part[1] != '.' && unsigned_part[1] != 'e' &&
                              unsigned_part[1] != 'E';
    if (const auto integer = base::to_int(unsigned_part); integer && !leading_zero) {
      value.kind = Kind::kInt;
      value.integer = *integer;
      value.number = static_cast<double>(*integer);
      return value;
    }
    const bool has_digit = unsigned_part.find_first_of("0123456789") != std::string_view::npos;
    if (const auto number = base::to_double(unsigned_part); number && has_digit && !leading_zero) {
      value.kind = Kind::kDouble;
      value.number = *number;
      return value;
    }
  }
  for (const auto& [name, number] : {std::pair{"inf", HUGE_VAL},
                                     {"+inf", HUGE_VAL},
                                     {"-inf", -HUGE_VAL},
                                     {".inf", HUGE_VAL},
                                     {"nan", std::numeric_limits<double>::quiet_NaN()},
                                     {".nan", std::numeric_limits<double>::quiet_NaN()}}) {
    if (low != name)
      continue;
    value.kind = Kind::kDouble;
    value.number = number;
    return value;
  }
  value.kind = Kind::kText;
  return value;
}

Value text_value(std::string_view text, Origin origin) {
  Value value;
  value.kind = Kind::kText;
  value.text = text;
  value.origin = std::move(origin);
  return value;
}

Value list_value(const std::vector<std::string>& items, const Origin& origin) {
  Value value;
  value.kind = Kind::kList;
  value.origin = origin;
  for (const std::string& item : items)
    value.items.push_back(text_value(item, origin));
  return value;
}

std::string joined_path(std::string_view section, std::string_view name) {
  if (section.empty())
    return std::string(name);
  return std::string(section) + "." + std::string(name);
}

std::string_view parent_of(std::string_view path) {
  const auto dot = path.rfind('.');
  if (dot == std::string_view::npos)
    return {};
  return path.substr(0, dot);
}

std::string_view last_name(std::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

const Value* at_path(const Value& root, std::string_view path) {
  const Value* value = &root;
  while (!path.empty() && value) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    value = member_of(*value, name);
  }
  return value;
}

void merge(Value& base, const Value& over) {
  if (!base.is_map() || !over.is_map()) {
    base = over;
    return;
  }
  for (const Entry& entry : over.entries) {
    if (Value* old = base.find(entry.key))
      merge(*old, entry.value);
    else
      base.entries.push_back(entry);
  }
}

namespace {

/// Plain style is safe when the reader types it back as text and no YAML indicator is in the way.
bool needs_quotes(std::string_view text) {
  if (text.empty())
    return true;
  if (plain_scalar(text, {}).kind != Kind::kText)
    return true;
  const std::string low = base::lower(text);
  for (const char* word : {"yes", "no", "on", "off", "~"})
    if (low == word)
      return true;
  if (text.front() == ' ' || text.back() == ' ')
    return true;
  if (std::string_view("-?:,[]{}#&*!|>'\"%@`=<").find(text.front()) != std::string_view::npos)
    return true;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\x7f')
      return true;
    if (std::string_view("[]{},#:\\\"'").find(c) != std::string_view::npos)
      return true;
  }
  return !base::is_utf8(text);
}

std::string scalar_text(const Value& value) {
  if (value.secret)
    return base::redacted(value.text);
  switch (value.kind) {
    case Kind::kNull: return "null";
    case Kind::kBool: return value.boolean ? "true" : "false";
    case Kind::kInt:
    case Kind::kDouble: return value.text;
    default: break;
  }
  if (!needs_quotes(value.text))
    return value.text;
  const bool control = [&] {
    for (const char c : value.text)
      if (static_cast<unsigned char>(c) < 0x20 || c == '\x7f')
        return true;
    return !base::is_utf8(value.text);
  }();
  if (!control)
    return "'" + base::replace_all(value.text, "'", "''") + "'";
  std::string out = "\"";
  for (const char c : value.text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte >= 0x7f) {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void block(const Value& value, std::size_t indent, bool comments, std::string& out) {
  const std::string pad(indent, ' ');
  for (const Entry& entry : value.entries) {
    std::string key = entry.key;
    if (needs_quotes(key))
      key = scalar_text(text_value(key, {}));
    out += pad + key + ":";
    if (entry.value.is_map() && !entry.value.entries.empty()) {
      out += "\n";
      block(entry.value, indent + 2, comments, out);
      continue;
    }
    out += " " + to_flow(entry.value);
    if (comments && entry.value.origin.source != Source::kNone)
      out += "  # " + base::printable(to_string(entry.value.origin));
    out += "\n";
  }
}

}  // namespace

std::string to_flow(const Value& value) {
  if (value.secret && value.is_scalar())
    return base::redacted(value.text);
  if (value.is_scalar())
    return scalar_text(value);
  std::vector<std::string> members;
  for (const Value& item : value.items)
    members.push_back(to_flow(item));
  for (const Entry& entry : value.entries)
    members.push_back(scalar_text(text_value(entry.key, {})) + ": " + to_flow(entry.value));
  if (value.is_list())
    return "[" + base::join(members, ", ") + "]";
  return "{" + base::join(members, ", ") + "}";
}

std::string to_yaml(const Value& value, bool comments) {
  if (!value.is_map())
    return to_flow(value) + "\n";
  std::string out;
  block(value, 0, comments, out);
  return out;
}

}  // namespace rangescope::config
