// What a table shows of a report: its columns, its rows and their order, and the text of each cell.
// Shared by the formats for people (terminal, Markdown). It chooses and formats, and computes
// nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/digest.hpp"
#include "model/measure.hpp"
#include "model/report.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

/// Columns of text: what limits the region, and its slowest rank.
inline constexpr std::string_view kBoundTag = "bound";
inline constexpr std::string_view kSlowestTag = "ranks.slowest";
/// A column of the default table: the share of the run, else of all kernels' time, with a bar.
inline constexpr std::string_view kShareTag = "share_bar";

using MetricNames = std::span<const std::string>;

struct ColumnView {
  std::string tag;  ///< measure tag, metrics.<name>, or kBoundTag
  std::string title;
  std::string unit;    ///< base unit
  int importance = 1;  ///< a narrow terminal drops the lowest first
};

/// A row before it is chosen.
struct RowView {
  const model::Region* region = nullptr;
  std::string label;  ///< the range's own name, printable; with its domain where the domain changes
  std::size_t depth = 0;
  std::uint32_t parent = model::kNone;  ///< index of another row
  std::size_t regions = 1;              ///< how many it combines
  std::string siblings = {};            ///< " x32", the end of `label`
};

/// One table: the aggregate, a process or a thread.
struct ScopeView {
  std::string title;  ///< "all processes", "process 123 python3", "thread 124 of process 123"
  std::vector<RowView> rows;
  std::size_t hidden = 0;  ///< regions that --depth or --top left out
};

/// The columns that style names, else a choice that fits the data: no GPU column without GPU data.
/// kUsage with the nearest name for a column that no region can have.
[[nodiscard]] base::Result<std::vector<ColumnView>> columns(const model::Report& report,
                                                            const Style& style);

/// kUsage for a name in style.columns or style.sort that no report can have: known before the
/// program runs. `metrics`: names that metric groups give their results.
[[nodiscard]] base::Result<void> check_values(const Style& style, MetricNames metrics);
/// Takes metrics that no region of the report has from what the style shows and sorts by; their
/// names. After a run its table is worth more without them than not at all.
std::vector<std::string> remove_absent_metrics(const model::Report& report, Style& style);

/// The tag that rows are sorted by, "" for tree order. kUsage for an unknown one.
[[nodiscard]] base::Result<std::string> sort_tag(const model::Report& report, const Style& style);
/// Every region of every scope.
[[nodiscard]] std::vector<ScopeView> all_scopes(const model::Report& report);
/// Keeps the `top` rows that cost most (by the measure `cost`) and the rows above them; all if
/// `top` is 0. Siblings keep the order of the tree, or are sorted by the measure `sort`, largest
/// first.
void choose_rows(
    ScopeView& scope, int depth, std::size_t top, std::string_view sort, std::string_view cost);
/// The tables by style.sort, style.depth and style.top.
[[nodiscard]] base::Result<std::vector<ScopeView>> scopes(const model::Report& report,
                                                          const Style& style);

/// Is it known what limits the region or kernel?
[[nodiscard]] inline bool has_limiter(const base::Held<model::Bound>& bound) {
  return bound && bound->kind != "unknown";
}
/// The share of the run's duration; without a timeline that of all kernels' time.
[[nodiscard]] std::optional<double> share_of(const model::Region& region);
/// In columns of the terminal. Longer titles would push other columns out of the table.
inline constexpr std::size_t kLongTitle = 16;
/// What lies outside every range, in tables and as a range for --cpu.
inline constexpr const char* kOutsideRanges = model::kOutsideRanges.data();
/// The range's own name, printable; with its domain where that changes, the whole path where a
/// filter hid its parent.
[[nodiscard]] std::string label_of(const model::Region& region, const model::Region* parent);

/// "12.3 ms"; "-" if the region has no such value.
[[nodiscard]] std::string cell(const model::Region& region, const ColumnView& column);
/// A value in the base unit `unit`, as people read it.
[[nodiscard]] std::string format_value(double value, std::string_view unit);
/// A share of the GPU's peak, with enough digits that only 0 prints as 0 ("0.0004 %").
[[nodiscard]] std::string format_utilization(double share);

/// The GPUs, each model once: "NVIDIA H200", "8x NVIDIA H100". Every process lists its GPUs, so
/// GPUs without a UUID are counted by the process that saw most. A GPU without a name is "GPU
/// (compute capability 9.0)"; without that too it is left out.
[[nodiscard]] std::vector<std::string> device_texts(const model::Report& report);

/// The text of a value, by `format`; "-" without a value.
template <class Value, class Format>
[[nodiscard]] std::string or_dash(const std::optional<Value>& value, Format format) {
  if (!value)
    return "-";
  return format(*value);
}
/// The text, or `otherwise` if it is empty.
[[nodiscard]] inline std::string text_or(const std::string& text, const std::string& otherwise) {
  return text.empty() ? otherwise : text;
}

/// The pid of the process with that index, if the report has it.
[[nodiscard]] std::optional<std::uint32_t> pid_of(const model::Report& report,
                                                  std::optional<std::uint32_t> process);
/// The index; nothing for kNone.
[[nodiscard]] inline std::optional<std::uint32_t> indexed(std::uint32_t index) {
  if (index == model::kNone)
    return std::nullopt;
  return index;
}
/// Every name that --columns and --sort take for this report.
[[nodiscard]] std::vector<std::string> value_names(const model::Report& report);

[[nodiscard]] std::string_view copy_kind_name(model::CopyKind kind);  ///< "host_to_device", ...

/// "12 kernels (3.4 ms), 2 copies (1 MiB, 80 us), GPU busy 3.5 ms"; empty without work.
[[nodiscard]] std::string work_sentence(const model::GpuWork& work);

}  // namespace rangescope::report
