// Every configuration key: type, range, allowed values, flag and one line of explanation, as one
// visible table (keys.tsv).
//
// Nothing else in the program knows a key's type. A key that is not in this table does not exist
// (78, with the nearest one), except below maps of text (`workload.env.NAME`) and below `vars`,
// which belongs to the user.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/value.hpp"

namespace rangescope::config {

enum class KeyType : std::uint8_t {
  kBool,  ///< true, false; yes, no, on, off are understood
  kInt,
  kText,         ///< any scalar, as it was written
  kChoice,       ///< one of `allowed`
  kDuration,     ///< 500ms, 30s, 5m, 2h; a bare number is seconds
  kSize,         ///< bytes: 4096, 512K, 64M, 4G (binary)
  kList,         ///< list of texts; a single scalar is a list of one
  kExpressions,  ///< range expressions: a text, a `;`-separated text, or a list
  kMap,          ///< map of texts, any names
  kAny,          ///< anything at all
};

struct Key {
  std::string_view path;
  KeyType type;
  std::string_view about;  ///< one line
  std::string_view flag =
      {};  ///< "--set": the flag of `rangescope profile` that is an alias of this key
  /// kChoice: "a|b|c"; kList: of each item; kDuration: "1ms..", its least; "" for anything
  std::string_view allowed = {};
  double min = -std::numeric_limits<double>::infinity();  ///< of a duration in nanoseconds
  double max = std::numeric_limits<double>::infinity();
  bool free = false;  ///< a project file of a stranger may set it (config/trust.hpp)
};

/// All keys, in the order in which `config show` lists them. Static storage.
[[nodiscard]] std::span<const Key> keys();
/// The key of exactly that path, the open map that holds it, or nullptr.
[[nodiscard]] const Key* find_key(std::string_view path);
/// True when some key is below `path` ("pipeline.ncu").
[[nodiscard]] bool is_section(std::string_view path);
/// The key whose flag this is, or nullptr.
[[nodiscard]] const Key* find_flag(std::string_view flag);
/// "one of kernel, range ..., e.g. ..." for messages and the manual.
[[nodiscard]] std::string describe(const Key& key);
[[nodiscard]] std::string_view type_name(KeyType type);

/// kConfig with the nearest key, or the nearest of `other_names`, when `path` is none.
[[nodiscard]] base::Error unknown_key(std::string_view path,
                                      const Origin& origin,
                                      std::span<const std::string> other_names = {});

/// Checks that `path` is a key or a section, and that all names inside `value` are too. kConfig
/// with the nearest key.
[[nodiscard]] base::Result<void> check_names(const std::string& path, const Value& value);
/// Checks one value against its key and brings it into the key's type (a scalar becomes a list of
/// one, "on" becomes true). Null is allowed everywhere and means "not set". kConfig with the
/// value's place: "'-5' is not a duration".
[[nodiscard]] base::Result<void> check(const Key& key, Value& value);
/// Checks a whole tree: every leaf has a key and fits it.
[[nodiscard]] base::Result<void> check_tree(Value& root);

/// "5%", "2.5 %", "0.05": more than 0, as a share.
[[nodiscard]] std::optional<double> parse_share(std::string_view text);
/// Nanoseconds of "30s", "1.5m", "250ms", "2h", "90"; nothing for anything else or more than 10
/// years.
[[nodiscard]] std::optional<std::int64_t> parse_duration(std::string_view text);
/// Bytes of "4096", "64M", "1.5G", "4 GiB".
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace rangescope::config
