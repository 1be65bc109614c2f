#include "report/document/json_writer.hpp"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace rangescope::report {
namespace {
constexpr std::size_t kBuffer = 32 * 1024;
}

void JsonWriter::put(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() < kBuffer) return;
  sink_.write(buffer_);
  buffer_.clear();
}

void JsonWriter::newline() {
  put("\n");
  for (std::size_t i = 0; i < levels_.size(); ++i) put("  ");
}

// What stands before a key or an element.
void JsonWriter::separate() {
  if (std::exchange(after_key_, false) || levels_.empty()) return;
  Level& level = levels_.back();
  if (!std::exchange(level.empty, false)) put(level.one_line ? ", " : ",");
  if (!level.one_line) newline();
}

void JsonWriter::open(char bracket, bool one_line) {
  separate();
  const bool within = !levels_.empty() && levels_.back().one_line;
  put(std::string_view(&bracket, 1));
  levels_.push_back({one_line || within, true, bracket == '{' ? '}' : ']'});
}

void JsonWriter::close() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.one_line) newline();
  put(std::string_view(&level.closing, 1));
}

void JsonWriter::key(std::string_view name) {
  separate();
  quoted(name);
  put(": ");
  after_key_ = true;
}

void JsonWriter::quoted(std::string_view value) {
  std::string shown;
  const bool foreign = !base::is_utf8(value);
  if (foreign || printable_) {
    shown = base::printable(value);
    value = shown;
    escaped_ |= foreign;
  }
  std::string out = "\"";
  for (const char c : value) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          constexpr char kDigits[] = "0123456789abcdef";
          out += "\\u00";
          out += kDigits[(c >> 4) & 15];
          out += kDigits[c & 15];
        } else {
          out += c;
        }
    }
  }
  put(base::printable_json(out) + "\"");
}

void JsonWriter::text(std::string_view value) {
  separate();
  quoted(value);
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  char text[64];
  // Whole numbers without exponent or fraction, as far as doubles hold them exactly.
  const bool whole = std::fabs(value) < 9007199254740992.0 && value == std::floor(value);
  const auto end = whole ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value)).ptr
                         : std::to_chars(text, text + sizeof text, value).ptr;
  put(std::string_view(text, static_cast<std::size_t>(end - text)));
}

void JsonWriter::number(std::int64_t value) {
  separate();
  put(std::to_string(value));
}

void JsonWriter::boolean(bool value) {
  separate();
  put(value ? "true" : "false");
}

void JsonWriter::null() {
  separate();
  put("null");
}

bool JsonWriter::take_escaped() {
  return std::exchange(escaped_, false);
}

void JsonWriter::finish() {
  put("\n");
  sink_.write(buffer_);
  buffer_.clear();
}

}  // namespace rangescope::report
