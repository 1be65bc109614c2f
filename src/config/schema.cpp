#include "config/schema.hpp"

#include <algorithm>
#include <cmath>

#include "base/removed.hpp"
#include "base/text.hpp"

namespace rangescope::config {
namespace {

std::vector<std::string> choices(std::string_view allowed) {
  std::vector<std::string> out;
  if (allowed.empty())
    return out;
  for (const std::string_view part : base::split(allowed, '|'))
    out.emplace_back(part);
  return out;
}

tl::unexpected<base::Error> wrong(const Key& key, const Value& value, std::string hint = {}) {
  std::string written = value.text;
  if (!value.is_scalar())
    written = to_flow(value);
  return refused(
      "'" + base::printable(written) + "' is not " + describe(key), value.origin, std::move(hint));
}

std::optional<bool> as_bool(const Value& value) {
  if (value.kind == Kind::kBool)
    return value.boolean;
  const std::string low = base::lower(value.text);
  if (low == "yes" || low == "on" || low == "1")
    return true;
  if (low == "no" || low == "off" || low == "0")
    return false;
  if (low == "true")
    return true;
  if (low == "false")
    return false;
  return std::nullopt;
}

base::Result<void> check_choice(const Key& key, const Value& value) {
  const auto allowed = choices(key.allowed);
  if (allowed.empty() || std::ranges::find(allowed, value.text) != allowed.end())
    return {};
  return wrong(key, value, base::did_you_mean(value.text, allowed));
}

std::optional<double> scaled(std::string_view text,
                             std::initializer_list<std::pair<std::string_view, double>> units,
                             double bare) {
  text = base::trim(text);
  std::size_t end = 0;
  while (end < text.size() &&
         ((text[end] >= '0' && text[end] <= '9') || text[end] == '.' || text[end] == '_'))
    ++end;
  const auto number = base::to_double(base::replace_all(text.substr(0, end), "_", ""));
  if (!number || *number < 0)
    return std::nullopt;
  const std::string unit = base::lower(base::trim(text.substr(end)));
  if (unit.empty())
    return *number * bare;
  for (const auto& [name, factor] : units)
    if (unit == name)
      return *number * factor;
  return std::nullopt;
}

}  // namespace

std::string_view type_name(KeyType type) {
  switch (type) {
    case KeyType::kBool: return "boolean";
    case KeyType::kInt: return "integer";
    case KeyType::kText: return "text";
    case KeyType::kChoice: return "choice";
    case KeyType::kDuration: return "duration";
    case KeyType::kSize: return "size";
    case KeyType::kList: return "list";
    case KeyType::kExpressions: return "range expressions";
    case KeyType::kMap: return "map of strings";
    case KeyType::kAny: return "anything";
  }
  return "?";
}

std::string describe(const Key& key) {
  const auto range = [&]() -> std::string {
    const auto text = [](double limit) { return std::to_string(static_cast<std::int64_t>(limit)); };
    if (!std::isfinite(key.min))
      return {};
    if (!std::isfinite(key.max))
      return " of at least " + text(key.min);
    return " from " + text(key.min) + " to " + text(key.max);
  };
  switch (key.type) {
    case KeyType::kBool: return "a boolean (true or false)";
    case KeyType::kInt: return "a whole number" + range();
    case KeyType::kText: return "a text";
    case KeyType::kChoice: return "one of " + base::join(choices(key.allowed), ", ");
    case KeyType::kDuration: {
      const std::string least(key.allowed.substr(0, key.allowed.find("..")));
      const std::string examples = "(500ms, 30s, 5m, 2h)";
      if (least.empty())
        return "a duration " + examples;
      return "a duration of at least " + least + " " + examples;
    }
    case KeyType::kSize: return "a size (4096, 512K, 64M, 4G)";
    case KeyType::kList:
      if (key.allowed.empty())
        return "a list of strings";
      return "a list of " + base::join(choices(key.allowed), ", ");
    case KeyType::kExpressions:
      return "a range expression, several joined by ';', or a list of them";
    case KeyType::kMap: return "a map of strings";
    case KeyType::kAny: return "a value";
  }
  return {};
}

const Key* find_key(std::string_view path) {
  for (const Key& key : keys()) {
    if (key.path == path)
      return &key;
    const bool open = key.type == KeyType::kMap || key.type == KeyType::kAny;
    if (open && path.size() > key.path.size() + 1 && path.starts_with(key.path) &&
        path[key.path.size()] == '.')
      return &key;
  }
  return nullptr;
}

bool is_section(std::string_view path) {
  if (path.empty())
    return true;
  for (const Key& key : keys())
    if (key.path.size() > path.size() && key.path.starts_with(path) && key.path[path.size()] == '.')
      return true;
  return false;
}

const Key* find_flag(std::string_view flag) {
  for (const Key& key : keys())
    if (!key.flag.empty() && key.flag == flag)
      return &key;
  return nullptr;
}

base::Error unknown_key(std::string_view path,
                        const Origin& origin,
                        std::span<const std::string> other_names) {
  std::vector<std::string> known(other_names.begin(), other_names.end());
  for (const Key& key : keys())
    known.emplace_back(key.path);
  std::string hint = base::removal_hint(path);
  if (hint.empty())
    hint = base::did_you_mean(path, known);
  if (hint.empty()) {  // perhaps only the section is missing or wrong: compare the last name alone
    std::vector<std::string> same;
    for (const std::string& key : known)
      if (last_name(key) == last_name(path))
        same.push_back(key);
    if (!same.empty() && same.size() <= 3)
      hint = "did you mean " + base::join(same, " or ") + "?";
  }
  if (hint.empty())
    hint = "List the keys with `rangescope config show`.";
  return {
      base::Code::kConfig, "unknown key '" + base::printable(path) + "'", to_string(origin), hint};
}

base::Result<void> check_names(const std::string& path, const Value& value) {
  if (find_key(path) != nullptr)
    return {};
  if (!is_section(path))
    return tl::make_unexpected(unknown_key(path, value.origin));
  for (const Entry& entry : value.entries) {
    if (const auto dot = entry.key.find('.'); dot != std::string::npos)
      return refused("key '" + base::printable(entry.key) + "' has a dot in it",
                     entry.value.origin,
                     "Write `" + base::printable(entry.key.substr(0, dot)) + ":` and below it `" +
                         base::printable(entry.key.substr(dot + 1)) + ": ...`.");
    TRY(check_names(joined_path(path, entry.key), entry.value));
  }
  return {};
}

base::Result<void> check(const Key& key, Value& value) {
  if (value.is_null() || key.type == KeyType::kAny)
    return {};
  if (key.type == KeyType::kMap) {
    if (!value.is_map())
      return wrong(key, value);
    return {};
  }
  if (key.type == KeyType::kList || key.type == KeyType::kExpressions) {
    if (value.is_map())
      return wrong(key, value);
    if (value.is_scalar()) {
      Value list;
      list.kind = Kind::kList;
      list.origin = value.origin;
      if (!value.text.empty() || value.kind != Kind::kText)
        list.items.push_back(value);
      value = std::move(list);
    }
    for (const Value& item : value.items) {
      if (!item.is_scalar() || item.is_null())
        return refused("an item is not text", item.origin);
      TRY(check_choice(key, item));
    }
    return {};
  }
  if (!value.is_scalar())
    return wrong(key, value);
  switch (key.type) {
    case KeyType::kBool: {
      const auto boolean = as_bool(value);
      if (!boolean)
        return wrong(key, value);
      value.kind = Kind::kBool;
      value.boolean = *boolean;
      value.text = *boolean ? "true" : "false";
      return {};
    }
    case KeyType::kInt: {
      Value typed = value;
      if (value.kind == Kind::kText)
        typed = plain_scalar(base::trim(value.text), value.origin);
      if (typed.kind != Kind::kInt || typed.number < key.min || typed.number > key.max)
        return wrong(key, value);
      value = std::move(typed);
      return {};
    }
    case KeyType::kChoice: {
      // YAML and Hydra type `none`-like words as text already; on/off/true/false were typed as
      // booleans by their spelling.
      value.kind = Kind::kText;
      return check_choice(key, value);
    }
    case KeyType::kDuration: {
      const auto ns = parse_duration(value.text);
      if (!ns || static_cast<double>(*ns) < key.min)
        return wrong(key, value);
      return {};
    }
    case KeyType::kSize:
      if (!parse_size(value.text))
        return wrong(key, value);
      return {};
    default: value.kind = Kind::kText; return {};
  }
}

namespace {

/// The value of the key `path`, and that of every name in a map of texts.
base::Result<void> check_key(const Key& key, const std::string& path, Value& value) {
  if (auto checked = check(key, value); !checked) {
    base::Error error = std::move(checked).error();
    error.what = path + ": " + error.what;
    return tl::make_unexpected(std::move(error));
  }
  if (key.type != KeyType::kMap)
    return {};
  for (const Entry& entry : value.entries)
    if (!entry.value.is_scalar())
      return refused(joined_path(path, entry.key) + ": a text is expected, not a list or a map",
                     entry.value.origin);
  return {};
}

base::Result<void> check_below(Value& section, const std::string& path) {
  for (auto& [name, value] : section.entries) {
    const std::string value_path = joined_path(path, name);
    if (const Key* key = find_key(value_path); key != nullptr && key->path == value_path) {
      TRY(check_key(*key, value_path, value));
      continue;
    }
    if (!is_section(value_path))
      return tl::make_unexpected(unknown_key(value_path, value.origin));
    if (value.is_null())
      continue;
    if (!value.is_map())
      return refused(
          value_path + " is a section of keys and cannot be '" + base::printable(to_flow(value)) +
              "'",
          value.origin,
          "Set one of its keys: `rangescope config show " + value_path + "` lists them.");
    TRY(check_below(value, value_path));
  }
  return {};
}

}  // namespace

base::Result<void> check_tree(Value& root) {
  return check_below(root, "");
}

std::optional<std::int64_t> parse_duration(std::string_view text) {
  const auto ns = scaled(text,
                         {{"ns", 1},
                          {"us", 1e3},
                          {"ms", 1e6},
                          {"s", 1e9},
                          {"sec", 1e9},
                          {"m", 60e9},
                          {"min", 60e9},
                          {"h", 3600e9},
                          {"d", 86400e9}},
                         1e9);
  if (!ns || *ns > 3.2e17)
    return std::nullopt;
  return static_cast<std::int64_t>(*ns);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr double kKi = 1024;
  const auto bytes = scaled(text,
                            {{"b", 1},
                             {"k", kKi},
                             {"kb", kKi},
                             {"kib", kKi},
                             {"m", kKi * kKi},
                             {"mb", kKi * kKi},
                             {"mib", kKi * kKi},
                             {"g", kKi * kKi * kKi},
                             {"gb", kKi * kKi * kKi},
                             {"gib", kKi * kKi * kKi},
                             {"t", kKi * kKi * kKi * kKi},
                             {"tib", kKi * kKi * kKi * kKi}},
                            1);
  if (!bytes || *bytes > 1e18)
    return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

std::optional<double> parse_share(std::string_view text) {
  text = base::trim(text);
  const bool is_percent = text.ends_with('%');
  if (is_percent)
    text = base::trim(text.substr(0, text.size() - 1));
  const auto number = base::to_double(text);
  if (!number || !(*number > 0) || *number > 1000)
    return std::nullopt;
  if (is_percent)
    return *number / 100;
  if (*number >= 1)
    return std::nullopt;
  return number;
}

}  // namespace rangescope::config
