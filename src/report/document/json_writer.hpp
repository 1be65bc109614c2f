// Writes JSON as a stream: commas, indentation, escapes, and numbers that read back as they were.
//
// Bytes that are not UTF-8 are written as the text \xNN; take_escaped() reports that. NaN and
// infinity, which JSON lacks, become null.
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
  /// `page`: the JSON goes into a <script> element. Texts are made printable (base::printable), and
  /// < > & and the line ends of JavaScript are escaped.
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

  /// A value of any kind: an empty optional is null, a list is an array on one line.
  template <class T>
  void value(const T& item) {
    if constexpr (std::is_same_v<T, bool>) {
      boolean(item);
    } else if constexpr (std::is_floating_point_v<T>) {
      number(static_cast<double>(item));
    } else if constexpr (std::is_integral_v<T>) {
      if (std::in_range<std::int64_t>(item))
        number(static_cast<std::int64_t>(item));
      else
        number(static_cast<double>(item));  // readers have only doubles beyond 2^63
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      text(item);
    } else if constexpr (requires { item.has_value(); }) {
      if (item)
        value(*item);
      else
        null();
    } else {
      open_line_array();
      for (const auto& element : item)
        value(element);
      close();
    }
  }
  template <class T>
  void field(std::string_view name, const T& item) {
    key(name);
    value(item);
  }
  /// An object on one line, of names and values in turn.
  template <class... Fields>
  void line_object(std::string_view name, const Fields&... names_and_values) {
    open_line_object(name);
    fields(names_and_values...);
    close();
  }
  /// An array on one line, of values of any kind.
  template <class... Values>
  void line_array(const Values&... values) {
    open_line_array();
    (value(values), ...);
    close();
  }
  void null_field(std::string_view name) { key(name), null(); }

  /// "name": [{...}, ...]: write() fills the object of each element of `list`.
  template <class List, class Write>
  void objects(std::string_view name, const List& list, Write write) {
    array_of_objects(name, false, list, write);
  }
  /// The same, one object a line.
  template <class List, class Write>
  void line_objects(std::string_view name, const List& list, Write write) {
    array_of_objects(name, true, list, write);
  }

  /// Has a text since the last call needed \xNN?
  [[nodiscard]] bool take_escaped();
  /// Ends the last line.
  void finish();

 private:
  /// Names and values in turn.
  template <class T, class... Rest>
  void fields(std::string_view name, const T& item, const Rest&... rest) {
    field(name, item);
    if constexpr (sizeof...(rest) > 0)
      fields(rest...);
  }

  struct Level {
    bool one_line, empty;
    char closing;
  };
  void open(char bracket, bool one_line);
  template <class List, class Write>
  void array_of_objects(std::string_view name, bool one_line, const List& list, Write write) {
    open_array(name);
    for (const auto& element : list) {
      open('{', one_line);
      write(element);
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

/// The text; nothing if it is empty.
[[nodiscard]] inline std::optional<std::string_view> or_null(const std::string& text) {
  if (text.empty())
    return std::nullopt;
  return text;
}
/// The number; nothing if it is 0 or less.
template <class Number>
[[nodiscard]] std::optional<Number> or_null(Number number) {
  if (number > 0)
    return number;
  return std::nullopt;
}

// Parts that the JSON report and the data of the HTML page have in common.

void write_run(JsonWriter& json, const model::RunInfo& run);
void write_processes(JsonWriter& json,
                     std::string_view name,
                     const std::vector<model::ReportProcess>& list);
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
