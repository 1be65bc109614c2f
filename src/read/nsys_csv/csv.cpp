#include "read/nsys_csv/csv.hpp"

namespace rangescope::read::nsys_csv {
namespace {

/// Parses one record; false when a quote is left open at the end of the text.
bool parse(std::string_view text, std::vector<std::string>& fields, std::size_t& used) {
  fields.assign(1, {});
  bool quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++i;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  used = i;
  return !quoted;
}

}  // namespace

std::vector<std::string> take_record(std::string_view& text) {
  std::vector<std::string> fields;
  std::size_t used = 0;
  // A name with a line break in it closes its quote within a few lines; a stray quote does not.
  constexpr std::size_t kMost = 64 * 1024;
  const bool closed = parse(text.substr(0, kMost), fields, used);
  if (!closed || (used == kMost && text.size() > kMost)) {
    const std::size_t line = text.find('\n');
    used = line == std::string_view::npos ? text.size() : line + 1;
    std::size_t unused = 0;
    (void)parse(text.substr(0, used), fields, unused);
  }
  text.remove_prefix(used);
  return fields;
}

}  // namespace rangescope::read::nsys_csv
