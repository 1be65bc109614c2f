// Writes JSON as a stream: commas, indentation, escapes, and numbers that read back as they were.
//
// Text that is not UTF-8 is written with \xNN for each foreign byte (as text: a backslash, an x, two digits); `escaped`
// then says so. NaN and infinity become null, as JSON has neither.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/exporter.hpp"

namespace rangescope::report {

class JsonWriter {
 public:
  explicit JsonWriter(Sink& sink) : sink_(sink) {}
  void open_object() { open('{', false); }
  void open_array() { open('[', false); }
  void open_line_object() { open('{', true); }
  void open_line_array() { open('[', true); }
  void open_object(std::string_view name) { key(name), open_object(); }
  void open_array(std::string_view name) { key(name), open_array(); }
  void open_line_object(std::string_view name) { key(name), open_line_object(); }
  void open_line_array(std::string_view name) { key(name), open_line_array(); }
  void close();
  void key(std::string_view name);
  void text(std::string_view value);
  void number(double value);
  void number(std::int64_t value);
  void boolean(bool value);
  void null();

  void field(std::string_view name, std::string_view value) { key(name), text(value); }
  void field(std::string_view name, const std::string& value) { key(name), text(value); }
  void field(std::string_view name, const char* value) { key(name), text(value); }
  void field(std::string_view name, double value) { key(name), number(value); }
  void field(std::string_view name, std::int64_t value) { key(name), number(value); }
  void field(std::string_view name, std::uint32_t value) { key(name), number(std::int64_t{value}); }
  void field(std::string_view name, bool value) { key(name), boolean(value); }
  /// "name": ["...", ...] on one line
  void texts(std::string_view name, std::span<const std::string> list);
  void null_field(std::string_view name) { key(name), null(); }

  /// "name": [{...}, ...]: write() fills the object of each.
  template <class List, class Write>
  void objects(std::string_view name, const List& list, Write write) {
    each(name, false, list, write);
  }
  /// The same, an object a line.
  template <class List, class Write>
  void line_objects(std::string_view name, const List& list, Write write) {
    each(name, true, list, write);
  }

  /// Did a text since the last call need \xNN?
  [[nodiscard]] bool take_escaped();
  /// Ends the last line.
  void finish();

 private:
  struct Level {
    bool one_line, empty;
    char closing;
  };
  void open(char bracket, bool one_line);
  template <class List, class Write>
  void each(std::string_view name, bool one_line, const List& list, Write write) {
    open_array(name);
    for (const auto& one : list) {
      open('{', one_line);
      write(one);
      close();
    }
    close();
  }
  void separate();
  void newline();
  void quoted(std::string_view value);
  void put(std::string_view bytes);

  Sink& sink_;
  std::string buffer_;
  std::vector<Level> levels_;
  bool after_key_ = false;
  bool escaped_ = false;
};

}  // namespace rangescope::report
