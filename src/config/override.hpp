// Command line overrides, in the grammar of Hydra 1.3 (hydra.cc, "Basic Override syntax") as far as
// it is of use here.
//
//   key=value      set a key (+key=value too)       group=option           choose a configuration
//   group's option ~key           delete                           ~group                 choose
//   none of a group's options
//
// value: null, true, false, numbers; plain text; 'quoted' or "quoted"; [lists, of, values]; {maps:
// of, values};
// ${interpolations}. A key has a type, so there are no casts, and sweeps (`a,b` at the top) are
// refused. A backslash takes the meaning off \ ( ) [ ] { } : = , and white space in plain text, and
// off the quote in quoted text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/value.hpp"

namespace rangescope::config {

struct Override {
  std::string key;             ///< "run.keep", "ncu"
  std::optional<Value> value;  ///< absent for `~key`
  Origin origin;
};

/// One override. kConfig for what cannot be read, with what was probably meant.
[[nodiscard]] base::Result<Override> parse_override(std::string_view text, const Origin& origin);

/// A value alone, as after the '='.
[[nodiscard]] base::Result<Value> parse_value(std::string_view text, const Origin& origin);

/// What a flag means: `key` set to a value that is taken literally, with no grammar.
[[nodiscard]] Override set_text(std::string key, std::string_view text, Origin origin);
[[nodiscard]] Override set_list(std::string key,
                                const std::vector<std::string>& items,
                                const Origin& origin);

/// True when `word` has the form of an override (and not of a flag or a file):
/// `[+|~]name[.name...]=...`, or `~name`.
[[nodiscard]] bool looks_like_override(std::string_view word);

}  // namespace rangescope::config
