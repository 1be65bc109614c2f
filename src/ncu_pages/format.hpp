// Numbers, units and quoting as Nsight Compute prints them.
//
// Found by comparing the values of recorded reports with what ncu 2025.3.1 and 2024.1.1 printed of them:
//   plain        integral numbers without decimals, others with two; separators of the locale
//   raw, auto    a metric with a unit: the whole column scaled by its largest value, six decimals, no separators; an
//                integer that was not scaled without decimals; a column of zeros as 0. A metric without a unit: plain
//   raw, base    plain
//   details      every value scaled by itself: two decimals where it was scaled, else plain
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "model/metric_unit.hpp"
#include "ncu_pages/pages.hpp"
#include "read/csv.hpp"
#include "read/ncu/report/file.hpp"

namespace rangescope::ncu_pages {

using read::csv_cell;
using read::quote;

struct Scale {
  std::string unit;
  double factor = 1;  ///< values are multiplied with 1 / factor, as ncu does: division would round other digits
};

/// The unit and factor in which ncu shows values up to `largest` of a metric whose base unit is `unit`.
[[nodiscard]] Scale auto_scale(std::string_view unit, double largest, model::UnitSpelling spelling);

class Formatter {
 public:
  explicit Formatter(const PageOptions& options);

  /// Appends a number in the plain form; `decimals` forces two of them.
  void plain(std::string& out, double value, bool decimals) const;
  void plain(std::string& out, const Value& value) const;
  /// Six decimals, no separators.
  static void six(std::string& out, double value);
  /// The value of a details row: its text and unit.
  struct Shown {
    std::string value, unit;
  };
  [[nodiscard]] Shown details(const Value& value, std::string_view unit) const;

 private:
  void group(std::string& out, std::string_view digits) const;
  std::string_view thousands_, point_;
  bool decimals_, scale_;
  model::UnitSpelling spelling_;
};

/// Where `mode` wants them and the metric has some: appends " (8; 8)" or, in detail, " (IMAD: 5; 0x7fe1: 8)":
/// correlation ids that are code addresses in hexadecimal.
void append_instances(std::string& out, const MetricEntry& metric, const Formatter& format, Instances mode);
/// Correlation ids that are code addresses: of instructions, hence multiples of 16 far from zero and below 2^57. Those
/// of PM samples (ncu 2025) are times, in nanoseconds since 1970, often multiples of 16 too.
[[nodiscard]] bool by_address(const std::vector<Instance>& all);

inline void csv_cells(std::string& out, std::initializer_list<std::string_view> cells) {
  for (const std::string_view cell : cells) csv_cell(out, cell);
}
/// A line of CSV.
template <class Cells>
void csv_line(std::string& out, const Cells& cells) {
  for (const auto& cell : cells) csv_cell(out, cell);
  out += '\n';
}
/// "Uint64" of 1, and of the other kinds of NVTX payloads.
[[nodiscard]] std::string_view payload_kind(std::uint32_t type);

/// The push/pop and the start/end cell of a result's NVTX state, not yet quoted.
[[nodiscard]] std::string push_pop_cell(const NvtxState& state);
[[nodiscard]] std::string start_end_cell(const NvtxState& state);
/// name:payload type:payload:color type:color:message type:message
[[nodiscard]] std::string range_cell(const NvtxState& state, const NvtxRange& range);
[[nodiscard]] std::string payload_text(const NvtxAttributes& attributes);
/// "ASCII"; "" where it has no message.
[[nodiscard]] std::string_view text_kind(const NvtxAttributes& attributes);

/// "0x7fe1"
[[nodiscard]] std::string hex_text(std::uint64_t number);
/// "(16, 16, 1)", or "n/a"
[[nodiscard]] std::string dimensions_text(const std::optional<std::array<std::uint32_t, 3>>& xyz);
/// The last component of a path: what ncu calls the process name.
[[nodiscard]] std::string_view base_name(std::string_view path);
/// Names of groups of metrics: an entry of that name holds theirs, separated by commas.
[[nodiscard]] bool is_container(std::string_view name);

}  // namespace rangescope::ncu_pages
