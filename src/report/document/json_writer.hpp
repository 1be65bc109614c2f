// Writes JSON as a stream: commas, indentation, escapes, and numbers that read back as they were.
//
// Text that is not UTF-8 is written with \xNN for each foreign byte (as text: a backslash, an x,
// two digits); `escaped` then says so. NaN and infinity become null, as JSON has neither.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/report.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

class JsonWriter {
 public:
  /// `page`: within <script> of a page, whose texts are printable (base::printable); < > & and the
  /// line ends of JavaScript are escaped.
  explicit JsonWriter(Sink& sink, bool page = false) : sink_(sink), page_(page) {}
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

  /// A value of any kind: nothing in an optional is null, a list is an array on one line.
  template <class T>
  void value(const T& of) {
    if constexpr (std::is_same_v<T, bool>) {
      boolean(of);
    } else if constexpr (std::is_floating_point_v<T>) {
      number(static_cast<double>(of));
    } else if constexpr (std::is_integral_v<T>) {
      // Beyond 2^63 a reader has doubles anyway.
      std::in_range<std::int64_t>(of) ? number(static_cast<std::int64_t>(of))
                                      : number(static_cast<double>(of));
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      text(of);
    } else if constexpr (requires { of.has_value(); }) {
      of ? value(*of) : null();
    } else {
      open_line_array();
      for (const auto& one : of) value(one);
      close();
    }
  }
  template <class T>
  void field(std::string_view name, const T& of) {
    key(name), value(of);
  }
  /// Names and values in turn.
  template <class T, class... More>
  void fields(std::string_view name, const T& of, const More&... more) {
    field(name, of);
    if constexpr (sizeof...(more) > 0) fields(more...);
  }
  /// An object on one line, of names and values in turn.
  template <class... Fields>
  void line_object(std::string_view name, const Fields&... of) {
    open_line_object(name);
    fields(of...);
    close();
  }
  /// An array on one line, of values of any kinds.
  template <class... Values>
  void line_array(const Values&... of) {
    open_line_array();
    (value(of), ...);
    close();
  }
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
  bool page_;
  std::string buffer_;
  std::vector<Level> levels_;
  bool after_key_ = false;
  bool escaped_ = false;
};

/// A text, nothing where it is "".
[[nodiscard]] inline std::optional<std::string_view> or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}
/// A number, nothing where it is 0 or less.
template <class Number>
[[nodiscard]] std::optional<Number> or_null(Number number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

// Parts of the JSON report that the data of the HTML page has too, in the same form.

void write_run(JsonWriter& json, const model::RunInfo& run);
void write_processes(JsonWriter& json, const std::vector<model::ReportProcess>& list);
void write_devices(JsonWriter& json, const model::Report& report);
void write_losses(JsonWriter& json, const std::vector<model::Loss>& list);
/// "metrics": {NAME: {"value": N, "unit": ...}}
void write_metrics(JsonWriter& json, const std::map<std::string, model::Metric>& map);
/// [{"kind": "host_to_device", "calls": N, "bytes": N, "total_ns": N}]
void write_copies(JsonWriter& json, std::string_view name, const std::vector<model::CopyRow>& rows);
void write_bound(JsonWriter& json, const base::Held<model::Bound>& bound);
void write_utilization(JsonWriter& json, const base::Held<model::Utilization>& value);
void write_roofline(JsonWriter& json, const std::vector<model::RooflinePoint>& points);

}  // namespace rangescope::report
