// Small things done to text: trimming, splitting, numbers, UTF-8, and the nearest known name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::base {

/// In the C locale.
[[nodiscard]] constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);
[[nodiscard]] std::string lower(std::string_view text);
/// What stands behind the last slash; all of it where there is none.
[[nodiscard]] constexpr std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}
/// A C string that may be null.
[[nodiscard]] constexpr const char* text_or(const char* text, const char* fallback) noexcept {
  if (text == nullptr)
    return fallback;
  return text;
}
/// `text`, or `fallback` if it is empty.
[[nodiscard]] constexpr std::string_view non_empty_or(std::string_view text,
                                                      std::string_view fallback) noexcept {
  if (text.empty())
    return fallback;
  return text;
}
[[nodiscard]] std::string replace_all(std::string_view text,
                                      std::string_view from,
                                      std::string_view to);

/// Whole-string numbers in the C locale; nothing when a single character is left over.
[[nodiscard]] std::optional<std::int64_t> to_int(std::string_view text);
[[nodiscard]] std::optional<std::uint64_t> to_uint(std::string_view text);
[[nodiscard]] std::optional<double> to_double(std::string_view text);

/// `text` with every byte that is not valid UTF-8 shown as \xNN, and control characters as \n, \t
/// or \xNN. Valid text without control characters comes back unchanged.
[[nodiscard]] std::string printable(std::string_view text);
/// A JSON text of valid UTF-8 with what terminals obey (DEL, C1 controls, direction overrides)
/// written as \uNNNN.
[[nodiscard]] std::string printable_json(std::string_view json);
[[nodiscard]] bool is_utf8(std::string_view text);

/// Columns that a terminal needs for valid UTF-8 `text` (wide CJK characters count two, combining
/// marks none).
[[nodiscard]] std::size_t display_width(std::string_view text);

/// `text` cut to at most `width` columns, the cut shown as one ellipsis character in the middle.
[[nodiscard]] std::string elide(std::string_view text, std::size_t width);

/// Lines of at most `width` columns (0: one line), broken at spaces; from the second one on they
/// begin with `indent` spaces.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text,
                                               std::size_t width,
                                               std::size_t indent);

/// Names of `known` nearest to `name` by Damerau-Levenshtein distance (optimal string alignment,
/// O(|a||b|) each), best first, only those near enough to be a likely slip (at most a third of the
/// letters), case ignored.
[[nodiscard]] std::vector<std::string> nearest(std::string_view name,
                                               std::span<const std::string> known,
                                               std::size_t max_count = 3);

/// "did you mean 'a' or 'b'?" from nearest(), or an empty string.
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// One argument quoted so that a POSIX shell reads it back as it is; plain words stay plain.
[[nodiscard]] std::string shell_quote(std::string_view argument);
[[nodiscard]] std::string shell_quote(std::span<const std::string> argv);

}  // namespace rangescope::base
