// The library's settings: from the environment of the program, or, after `attach` to a running
// program, from the process that attached. The program's environment is never changed.
#pragma once

#include <stdlib.h>
#include <string.h>

namespace rangescope::inject {

/// "NAME=VALUE" strings, each terminated, with an empty one at the end; null: use the environment.
inline const char* given_settings = nullptr;

/// The value of `name`, or null.
[[nodiscard]] inline const char* setting(const char* name) {
  if (given_settings == nullptr)
    return getenv(name);
  const size_t length = strlen(name);
  for (const char* entry = given_settings; *entry != '\0'; entry += strlen(entry) + 1)
    if (strncmp(entry, name, length) == 0 && entry[length] == '=')
      return entry + length + 1;
  return nullptr;
}

/// Whether the setting has this value; null: any value that is not empty.
[[nodiscard]] inline bool is_set(const char* name, const char* value) {
  const char* text = setting(name);
  if (text == nullptr)
    return false;
  if (value == nullptr)
    return text[0] != '\0';
  return strcmp(text, value) == 0;
}

}  // namespace rangescope::inject
