// Command line overrides, in the grammar of Hydra 1.3 (hydra.cc, "Basic Override syntax"), without its sweeps.
//
//   key=value      set a key that exists            group=option           choose a configuration group's option
//   +key=value     add a key                        +group=option          add a group to the defaults list
//   ++key=value    add or set                       ~group                 take a group out of the defaults list
//   ~key           delete
//   ~key=value     delete, if it has that value
//
// value: null, true, false, numbers; plain text; 'quoted' or "quoted"; [lists, of, values]; {maps: of, values};
// ${interpolations}. A key has a type, so there are no casts. In plain text \ escapes \ ( ) [ ] { } : = , and
// white space; in quoted text only the quote (and backslashes before it). Beyond Hydra, plain text may hold any other
// character (`;`, parentheses inside a word, brackets inside a word), since nothing else could be meant by it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/value.hpp"

namespace rangescope::config {

struct Override {
  enum class Kind : std::uint8_t { kSet, kAdd, kForce, kDelete };
  Kind kind = Kind::kSet;
  std::string key;             ///< "run.keep", "ncu", "group/sub"
  std::optional<Value> value;  ///< absent for `~key`
  std::string where;           ///< "argument 3: run.keep=5"
};

/// One override. kConfig with the column for what cannot be read; sweeps (`a,b` at the top, choice(), range()) are
/// refused with the list or the quotes that were probably meant.
[[nodiscard]] base::Result<Override> parse_override(std::string_view text, const std::string& where);

/// A value alone, as after the '='.
[[nodiscard]] base::Result<Value> parse_value(std::string_view text, const std::string& where);

/// What a flag means: `key` set to a value that is taken as it stands, with no grammar.
[[nodiscard]] Override set_text(std::string key, std::string_view text, std::string where);
[[nodiscard]] Override set_list(std::string key, const std::vector<std::string>& items, const std::string& where);

/// True when `word` has the form of an override (and not of a flag or a file): `[+|++|~]name[.name...]=...`.
[[nodiscard]] bool looks_like_override(std::string_view word);

}  // namespace rangescope::config
