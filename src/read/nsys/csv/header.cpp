#include "read/nsys/csv/header.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/find.hpp"
#include "base/text.hpp"
#include "read/number.hpp"

namespace rangescope::read::nsys_csv {
namespace {

using Units = std::span<const std::pair<std::string_view, double>>;
constexpr std::pair<std::string_view, double> kTimes[] = {{"ns", 1},
                                                          {"nsec", 1},
                                                          {"nanoseconds", 1},
                                                          {"us", 1e3},
                                                          {"usec", 1e3},
                                                          {"\xce\xbcs", 1e3},
                                                          {"\xc2\xb5s", 1e3},
                                                          {"microseconds", 1e3},
                                                          {"ms", 1e6},
                                                          {"msec", 1e6},
                                                          {"milliseconds", 1e6},
                                                          {"s", 1e9},
                                                          {"sec", 1e9},
                                                          {"seconds", 1e9}};
constexpr std::pair<std::string_view, double> kSizes[] = {{"B", 1},
                                                          {"bytes", 1},
                                                          {"KB", 1e3},
                                                          {"kB", 1e3},
                                                          {"MB", 1e6},
                                                          {"GB", 1e9},
                                                          {"KiB", 1024},
                                                          {"MiB", 1 << 20},
                                                          {"GiB", 1 << 30}};

/// To nanoseconds, or to bytes.
std::optional<double> scale_of(std::string_view unit, Units units) {
  for (const auto& [name, scale] : units)
    if (name == unit)
      return scale;
  return std::nullopt;
}

/// The text in brackets at the end of a column's name; "" without any.
std::string_view bracketed(std::string_view field) {
  const std::size_t bracket = field.rfind('(');
  if (bracket == std::string_view::npos || !field.ends_with(")"))
    return {};
  return field.substr(bracket + 1, field.size() - bracket - 2);
}

/// Names that changed with versions of nsys, in lower case and without unit.
std::string canonical(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kOld[] = {{"average", "avg"},
                                                                    {"minimum", "min"},
                                                                    {"maximum", "max"},
                                                                    {"median", "med"},
                                                                    {"operations", "operation"},
                                                                    {"start time", "start"}};
  for (const auto& [old, now] : kOld) {
    if (name == old)
      return std::string(now);
  }
  return std::string(name);
}

/// The columns that tell a table, the most telling table first.
struct Shape {
  Table table;
  std::vector<std::string_view> columns;
};
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{
      {Table::kProjectionTrace, {"projected start", "projected duration", "orig start", "name"}},
      {Table::kRangeTrace, {"start", "duration", "name", "pid", "tid", "rangeid", "durnonchild"}},
      {Table::kExecTrace, {"api start", "kernel start", "kernel dur", "kernel name", "pid", "tid"}},
      {Table::kGpuTrace, {"start", "duration", "corrid", "grdx", "strm", "name"}},
      {Table::kCallTrace, {"start", "duration", "name", "result", "corrid", "pid", "tid"}},
      {Table::kRangeKernels, {"nvtx range", "kernel name", "total time"}},
      {Table::kProjection, {"range", "total proj time", "range instances"}},
      {Table::kRanges, {"range", "total time", "instances"}},
      {Table::kKernels, {"name", "total time", "instances"}},
      {Table::kCopyTimes, {"operation", "total time", "count"}},
      {Table::kCopySizes, {"operation", "total", "count"}},
  };
  return all;
}

/// Other names for a column that tells a table, as scripts and other tools write them.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"name", "kernel name"},
    {"name", "function name"},
    {"name", "kernel"},
    {"name", "function"},
    {"range", "nvtx range name"},
    {"range", "range name"},
    {"range", "nvtx range"},
    {"range", "nvtx name"},
    {"nvtx range", "nvtx range name"},
    {"nvtx range", "range name"},
    {"kernel name", "function name"},
    {"kernel name", "kernel"},
    {"total time", "total duration"},
    {"kern inst", "kernel instances"},
    {"nvtx inst", "nvtx instances"},
};

/// The place of a column under its own or another name; nullptr where it has neither.
const Column* find_column(const Header& header, std::string_view name) {
  if (const auto named = header.columns.find(name); named != header.columns.end())
    return &named->second;
  for (const auto& [column, alias] : kAliases) {
    if (column != name)
      continue;
    if (const auto other = header.columns.find(alias); other != header.columns.end())
      return &other->second;
  }
  return nullptr;
}

void add_columns_by_alias(Header& header) {
  for (const auto& [column, alias] : kAliases)
    if (const Column* place = find_column(header, column))
      header.columns.emplace(column, *place);
}

Table table_by(Header& header) {
  for (const bool aliases : {false, true}) {
    for (const Shape& shape : shapes()) {
      const bool has_columns = std::ranges::all_of(shape.columns, [&](std::string_view column) {
        return aliases ? find_column(header, column) != nullptr : header.columns.contains(column);
      });
      if (!has_columns)
        continue;
      if (aliases)
        add_columns_by_alias(header);
      if (shape.table == Table::kRanges && header.columns.contains("style"))
        return Table::kRangesByStyle;
      return shape.table;
    }
  }
  return Table::kNone;
}

}  // namespace

Header parse_header(const Fields& fields) {
  Header header;
  header.width = fields.size();
  double main_scale = 1;
  std::vector<std::string> without_unit;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::string name = base::replace_all(base::lower(base::trim(fields[i])), "_", " ");
    Column column{i, 1};
    if (const std::string_view unit = bracketed(fields[i]); !unit.empty()) {
      const auto size = scale_of(unit, kSizes);
      column.scale = scale_of(unit, kTimes).value_or(size.value_or(1));
      column.rounded = size && *size > 1;
      name = base::trim(std::string_view(name).substr(0, name.rfind('(')));
      if (name == "total time" || name == "total")
        main_scale = column.scale;
    } else if (const std::size_t word = name.rfind(' '); word != std::string::npos &&
                                                         name.size() - word == 3 &&
                                                         scale_of(name.substr(word + 1), kTimes)) {
      column.scale =
          *scale_of(name.substr(word + 1), kTimes);  // "total_time_ns", as scripts write it
      name.resize(word);
      if (name == "total time")
        main_scale = column.scale;
    } else {
      without_unit.push_back(canonical(name));
    }
    header.columns.emplace(canonical(name), column);
  }
  header.bare_names = std::ranges::find(fields, "Average") != fields.end();
  for (const std::string& name :
       without_unit) {  // 2020 printed `Average` next to `Total Time (ns)`
    if (name == "avg" || name == "min" || name == "max" || name == "med" || name == "stddev")
      header.columns[name].scale = main_scale;
  }
  header.table = table_by(header);
  return header;
}

bool looks_like_header(const Fields& fields) {
  return fields.size() >= 3 && std::ranges::any_of(fields, [](std::string_view field) {
           if (!scale_of(bracketed(field), kTimes))
             return false;
           const std::string name = base::lower(field);
           return name.starts_with("total time") || name.starts_with("start") ||
                  name.starts_with("duration");
         });
}

std::string missing_column(const Fields& fields) {
  const Header header = parse_header(fields);
  std::string_view missing;
  if (header.columns.contains("num calls"))
    return {};  // cuda_api_sum and its like are whole, and not read
  for (const Shape& shape : shapes()) {
    std::string_view absent;
    std::size_t count = 0;
    for (const std::string_view column : shape.columns) {
      if (find_column(header, column) != nullptr)
        continue;
      absent = column;
      ++count;
    }
    if (count == 1 && shape.columns.size() > 2)
      missing = absent;
  }
  return std::string(missing);
}

const Column* Row::find(std::string_view column) const {
  return base::find_value(header_.columns, column);
}

std::string_view Row::text(std::string_view column) const {
  const Column* found = find(column);
  if (found == nullptr)
    return {};
  return fields_[found->index];
}

std::optional<double> Row::number(std::string_view column) const {
  const Column* found = find(column);
  if (found == nullptr)
    return std::nullopt;
  const auto value = parse_number(base::trim(fields_[found->index]), Point::kDot);
  if (!value || !std::isfinite(*value))
    return std::nullopt;
  const double scaled = *value * found->scale;
  if (!std::isfinite(scaled))
    return std::nullopt;
  return scaled;
}

std::int64_t Row::count(std::string_view column) const {
  const double value = number(column).value_or(0);
  const bool fits = std::abs(value) < 9e18;
  if (!fits)
    return 0;
  return static_cast<std::int64_t>(value);
}

std::optional<std::uint32_t> Row::id(std::string_view column) const {
  const auto value = number(column);
  if (!value || *value < 0 || *value >= std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::optional<Moment> Row::moment(std::string_view column) const {
  const Column* found = find(column);
  if (found == nullptr)
    return std::nullopt;
  // Digit by digit: a double has too few of them for nanoseconds since 1970.
  const std::string text =
      plain_number(base::trim(fields_[found->index]), Point::kDot).value_or("");
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative)
    digits.remove_prefix(1);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  const auto units = base::to_uint(digits.substr(0, point));
  const auto scale = static_cast<std::int64_t>(found->scale);
  if (!units || *units > static_cast<std::uint64_t>(kMost / scale))
    return std::nullopt;
  Moment moment{static_cast<std::int64_t>(*units) * scale, static_cast<double>(scale)};
  double worth = static_cast<double>(scale);  // of the digit that is read
  double fraction = 0;
  for (const char c : digits.substr(std::min(point + 1, digits.size()))) {
    if (c < '0' || c > '9')
      return std::nullopt;
    worth /= 10;
    fraction += worth * (c - '0');
  }
  moment.ns += std::llround(fraction);
  if (moment.ns >= kMost)
    return std::nullopt;
  if (negative)
    moment.ns = -moment.ns;
  moment.resolution_ns = std::max(1.0, worth);
  return moment;
}

}  // namespace rangescope::read::nsys_csv
