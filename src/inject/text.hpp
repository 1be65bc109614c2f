// C strings inside the profiled process, where nothing of base is linked.
#pragma once

#include <cstring>

namespace rangescope::inject {

/// A text that may be null.
[[nodiscard]] inline const char* text_or(const char* text, const char* fallback) {
  if (text == nullptr)
    return fallback;
  return text;
}

/// What follows the last `separator`; all of `text` if it has none.
[[nodiscard]] inline const char* after_last(const char* text, char separator) {
  const char* last = std::strrchr(text, separator);
  if (last == nullptr)
    return text;
  return last + 1;
}

}  // namespace rangescope::inject
