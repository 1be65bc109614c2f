// A configuration value: null, bool, number, text, list or map, with the place that set it.
//
// Scalars keep their spelling and their type, so that a key that wants text gets `007` as it was
// written. Maps keep their order and hold each key once. Plain data; a tree of a few hundred nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/origin.hpp"

namespace rangescope::config {

enum class Kind : std::uint8_t { kNull, kBool, kInt, kDouble, kText, kList, kMap };

struct Entry;

struct Value {
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;           ///< of kDouble, and of kInt too
  std::string text;            ///< scalars: as written
  std::vector<Value> items;    ///< of kList
  std::vector<Entry> entries;  ///< of kMap, in order
  Origin origin;
  bool literal = false;  ///< text that holds no interpolation, whatever it looks like
  bool secret = false;   ///< came from a secret-looking environment variable: never printed

  [[nodiscard]] bool is_map() const { return kind == Kind::kMap; }
  [[nodiscard]] bool is_list() const { return kind == Kind::kList; }
  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
  [[nodiscard]] bool is_scalar() const { return kind != Kind::kList && kind != Kind::kMap; }
  /// The entry of a map, or nullptr.
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value* find(std::string_view key);
  /// The entry of a map, added (null) when it is not there; a value that is no map becomes an empty
  /// one first.
  Value& get_or_add(std::string_view key, const Origin& added_by);
  bool erase(std::string_view key);
};

struct Entry {
  std::string key;
  Value value;
};

/// A plain (unquoted) scalar typed as YAML 1.2 and Hydra type it: null, true, false, 12, 1_000,
/// 0.5, inf, nan, else text.
/// "run" of "run.keep"; "" of "run".
[[nodiscard]] std::string_view parent_of(std::string_view path);
/// "keep" of "run.keep".
[[nodiscard]] std::string_view last_name(std::string_view path);
[[nodiscard]] Value plain_scalar(std::string_view text, Origin origin);
[[nodiscard]] Value text_value(std::string_view text, Origin origin);
[[nodiscard]] Value list_value(const std::vector<std::string>& items, const Origin& origin);

/// "pipeline.ncu" of "pipeline" and "ncu"; "" is the root.
[[nodiscard]] std::string joined_path(std::string_view section, std::string_view name);
/// The value at a dotted path ("pipeline.ncu.top_n", "pipeline.nsys.trace.0"), or nullptr. "" is
/// the root.
[[nodiscard]] const Value* at_path(const Value& root, std::string_view path);

/// Lays `over` on `base`: maps merge key by key, everything else replaces.
void merge(Value& base, const Value& over);

/// One line in flow style: `[cuda, nvtx]`, `{a: 1}`, `null`. Secrets show as <redacted>.
[[nodiscard]] std::string to_flow(const Value& value);
/// Block-style YAML that the reader of this room reads back as the same value. `comments`: adds `#
/// origin` to each scalar.
[[nodiscard]] std::string to_yaml(const Value& value, bool comments = false);

}  // namespace rangescope::config
