// What the library is told: by the environment that its program was started with, or, where it was
// loaded into a program that ran already (`attach`), by whoever loaded it. The program's
// environment is never changed.
#pragma once

#include <stdlib.h>
#include <string.h>

namespace rangescope::inject {

/// "NAME=VALUE", each terminated, with an empty one behind the last; null: the environment says it.
inline const char* given_settings = nullptr;

/// The value of `name`, or null.
[[nodiscard]] inline const char* setting(const char* name) {
  if (given_settings == nullptr) return getenv(name);
  const size_t length = strlen(name);
  for (const char* at = given_settings; *at != '\0'; at += strlen(at) + 1)
    if (strncmp(at, name, length) == 0 && at[length] == '=') return at + length + 1;
  return nullptr;
}

/// Whether it has this value; null: any but an empty one.
[[nodiscard]] inline bool is_set(const char* name, const char* value) {
  const char* text = setting(name);
  return text != nullptr && (value == nullptr ? text[0] != '\0' : strcmp(text, value) == 0);
}

}  // namespace rangescope::inject
