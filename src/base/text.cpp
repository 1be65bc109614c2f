#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace rangescope::base {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty())
    return std::string(text);
  std::string out;
  for (;;) {
    const auto place = text.find(from);
    out += text.substr(0, place);
    if (place == std::string_view::npos)
      return out;
    out += to;
    text.remove_prefix(place + from.size());
  }
}

namespace {

/// C1 controls: terminals obey them. Direction overrides and isolates: they turn around the text
/// after the name.
bool is_obeyed(char32_t point) {
  return (point >= 0x7F && point < 0xA0) || (point >= 0x202A && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069);
}

template <class T>
std::optional<T> number(std::string_view text) {
  if (!text.empty() && text.front() == '+')
    text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

// Length of the valid UTF-8 sequence at the front of `text` (0 when there is none) and its code
// point.
std::size_t utf8_sequence(std::string_view text, char32_t& point) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    point = lead;
    return 1;
  }
  std::size_t length = 0;
  char32_t least = 0;
  if (lead >= 0xC2 && lead <= 0xDF)
    length = 2, least = 0x80, point = lead & 0x1Fu;
  else if ((lead & 0xF0) == 0xE0)
    length = 3, least = 0x800, point = lead & 0x0Fu;
  else if (lead >= 0xF0 && lead <= 0xF4)
    length = 4, least = 0x10000, point = lead & 0x07u;
  if (length == 0 || text.size() < length)
    return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  const bool is_surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < least || point > 0x10FFFF || is_surrogate)
    return 0;
  return length;
}

void append_hex(std::string& out, char byte) {
  out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

// Wide and zero-width blocks of Unicode 15 (East Asian Width W and F, combining marks), coarse but
// locale-free.
std::size_t column_width(char32_t c) {
  const auto in = [c](char32_t a, char32_t b) { return c >= a && c <= b; };
  if (in(0x300, 0x36F) || in(0x200B, 0x200F) || in(0xFE00, 0xFE0F) || in(0x20D0, 0x20FF))
    return 0;
  if (in(0x1100, 0x115F) || in(0x2E80, 0x303E) || in(0x3041, 0xA4CF) || in(0xAC00, 0xD7A3) ||
      in(0xF900, 0xFAFF) || in(0xFE30, 0xFE6F) || in(0xFF00, 0xFF60) || in(0xFFE0, 0xFFE6) ||
      in(0x1F300, 0x1F64F) || in(0x1F900, 0x1F9FF) || in(0x20000, 0x3FFFD))
    return 2;
  return 1;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row_two_above(b.size() + 1), row_above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row_above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({row_above[j] + 1, row[j - 1] + 1, row_above[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], row_two_above[j - 2] + 1);
    }
    std::swap(row_two_above, row_above);
    std::swap(row_above, row);
  }
  return row_above[b.size()];
}

}  // namespace

std::optional<std::int64_t> to_int(std::string_view text) {
  return number<std::int64_t>(text);
}
std::optional<std::uint64_t> to_uint(std::string_view text) {
  return number<std::uint64_t>(text);
}
std::optional<double> to_double(std::string_view text) {
  return number<double>(text);
}

bool is_utf8(std::string_view text) {
  char32_t point = 0;
  while (!text.empty()) {
    const std::size_t n = utf8_sequence(text, point);
    if (n == 0)
      return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (true) {
    // How all of them begin.
    const auto first = std::min(json.find_first_of("\x7f\xc2\xe2"), json.size());
    out += json.substr(0, first);
    json.remove_prefix(first);
    if (json.empty())
      return out;
    char32_t point = 0;
    const std::size_t n = std::max<std::size_t>(utf8_sequence(json, point), 1);
    if (is_obeyed(point))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(point));
    else
      out += json.substr(0, n);
    json.remove_prefix(n);
  }
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  char32_t point = 0;
  while (!text.empty()) {
    std::size_t n = utf8_sequence(text, point);
    if (n == 0) {
      append_hex(out, text.front());
      n = 1;
    } else if (point == '\n') {
      out += "\\n";
    } else if (point == '\t') {
      out += "\\t";
    } else if (point < 0x20 || is_obeyed(point)) {
      for (const char byte : text.substr(0, n))
        append_hex(out, byte);
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n);
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  char32_t point = 0;
  while (!text.empty()) {
    const std::size_t n = utf8_sequence(text, point);
    width += n == 0 ? 1 : column_width(point);
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return width;
}

std::string elide(std::string_view text, std::size_t width) {
  if (display_width(text) <= width)
    return std::string(text);
  if (width == 0)
    return {};
  std::vector<std::string_view> glyphs;
  char32_t point = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t n = std::max<std::size_t>(utf8_sequence(rest, point), 1);
    glyphs.push_back(rest.substr(0, n));
    rest.remove_prefix(n);
  }
  std::size_t head = 0, tail = glyphs.size(), used = 1;
  for (bool front = true; head < tail; front = !front) {
    const std::size_t next = display_width(front ? glyphs[head] : glyphs[tail - 1]);
    if (used + next > width)
      break;
    used += next;
    if (front)
      ++head;
    else
      --tail;
  }
  std::string out;
  for (std::size_t i = 0; i < head; ++i)
    out += glyphs[i];
  out += "…";
  for (std::size_t i = tail; i < glyphs.size(); ++i)
    out += glyphs[i];
  return out;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::vector<std::string> lines;
  std::string line;
  for (const std::string_view word : split(text, ' ')) {
    if (!line.empty() && width > 0 && display_width(line) + 1 + display_width(word) > width) {
      lines.push_back(line);
      line.assign(indent, ' ');
      line += word;
      continue;
    }
    if (!line.empty())
      line += ' ';
    line += word;
  }
  lines.push_back(line);
  return lines;
}

std::vector<std::string> nearest(std::string_view name,
                                 std::span<const std::string> known,
                                 std::size_t max_count) {
  const std::string wanted = lower(name);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& candidate : known) {
    const std::string folded = lower(candidate);
    std::size_t distance = edit_distance(wanted, folded);
    const std::size_t allowed =
        std::max<std::size_t>(1, std::max(wanted.size(), folded.size()) / 3);
    const bool part = wanted.size() >= 3 && folded.find(wanted) != std::string::npos;
    if (part)
      distance = std::min(distance, allowed);
    if (distance <= allowed)
      found.emplace_back(distance, candidate);
  }
  std::stable_sort(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [distance, candidate] : found) {
    if (names.size() == max_count)
      break;
    if (std::find(names.begin(), names.end(), candidate) == names.end())
      names.push_back(std::move(candidate));
  }
  return names;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  const auto names = nearest(name, known);
  if (names.empty())
    return {};
  std::vector<std::string> quoted;
  for (const std::string& candidate : names)
    quoted.push_back("'" + candidate + "'");
  const std::string last = quoted.back();
  quoted.pop_back();
  if (quoted.empty())
    return "did you mean " + last + "?";
  return "did you mean " + join(quoted, ", ") + " or " + last + "?";
}

std::string shell_quote(std::string_view argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(argument);
  return "'" + replace_all(argument, "'", "'\\''") + "'";
}

std::string shell_quote(std::span<const std::string> argv) {
  std::vector<std::string> words;
  for (const std::string& argument : argv)
    words.push_back(shell_quote(argument));
  return join(words, " ");
}

}  // namespace rangescope::base
