#include "read/nsys_csv/header.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.hpp"

namespace rangescope::read::nsys_csv {
namespace {

std::optional<double> time_unit(std::string_view unit) {
  if (unit == "ns" || unit == "nsec" || unit == "nanoseconds") return 1;
  if (unit == "us" || unit == "usec" || unit == "\xce\xbcs" || unit == "\xc2\xb5s" || unit == "microseconds")
    return 1e3;
  if (unit == "ms" || unit == "msec" || unit == "milliseconds") return 1e6;
  if (unit == "s" || unit == "sec" || unit == "seconds") return 1e9;
  return std::nullopt;
}

std::optional<double> size_unit(std::string_view unit) {
  if (unit == "B" || unit == "bytes") return 1;
  if (unit == "KB" || unit == "kB") return 1e3;
  if (unit == "MB") return 1e6;
  if (unit == "GB") return 1e9;
  if (unit == "KiB") return 1024;
  if (unit == "MiB") return 1024 * 1024;
  if (unit == "GiB") return 1024.0 * 1024 * 1024;
  return std::nullopt;
}

/// What stands in brackets at the end of a column's name; "" where nothing does.
std::string_view bracketed(std::string_view field) {
  const std::size_t bracket = field.rfind('(');
  if (bracket == std::string_view::npos || !field.ends_with(")")) return {};
  return field.substr(bracket + 1, field.size() - bracket - 2);
}

/// Names that changed with versions of nsys, in lower case and without unit.
std::string canonical(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kOld[] = {
      {"average", "avg"}, {"minimum", "min"},          {"maximum", "max"},
      {"median", "med"},  {"operations", "operation"}, {"start time", "start"}};
  for (const auto& [old, now] : kOld) {
    if (name == old) return std::string(now);
  }
  return std::string(name);
}

Table table_of(const Header& header) {
  const auto has = [&](auto... names) { return (header.columns.contains(std::string_view(names)) && ...); };
  if (has("projected start", "projected duration", "orig start", "name")) return Table::kProjectionTrace;
  if (has("start", "duration", "name", "pid", "tid", "rangeid", "durnonchild")) return Table::kRangeTrace;
  if (has("api start", "kernel start", "kernel dur", "kernel name", "pid", "tid")) return Table::kExecTrace;
  if (has("start", "duration", "corrid", "grdx", "strm", "name")) return Table::kGpuTrace;
  if (has("start", "duration", "name", "result", "corrid", "pid", "tid")) return Table::kCallTrace;
  if (has("nvtx range", "kernel name", "total time")) return Table::kRangeKernels;
  if (has("range", "total proj time", "range instances")) return Table::kProjection;
  if (has("range", "total time", "instances")) return has("style") ? Table::kRangesByStyle : Table::kRanges;
  if (has("name", "total time", "instances")) return Table::kKernels;
  if (has("operation", "total time", "count")) return Table::kCopyTimes;
  if (has("operation", "total", "count")) return Table::kCopySizes;
  return Table::kNone;
}

/// "1,234,567.5" without its separators; other text as it is.
std::string plain(std::string_view text) {
  text = base::trim(text);
  std::string out;
  std::size_t digits = 0;  // since the last comma
  bool grouped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',') {
      if (digits == 0 || digits > 3 || (grouped && digits != 3)) return std::string(text);
      grouped = true;
      digits = 0;
      continue;
    }
    if (c == '.' && grouped && digits != 3) return std::string(text);
    if (c == '.') return out.append(text.substr(i));
    if (c >= '0' && c <= '9') ++digits;
    out += c;
  }
  return grouped && digits != 3 ? std::string(text) : out;
}

}  // namespace

const std::vector<ReportName>& report_names() {
  static const std::vector<ReportName> names{
      {"nvtx_sum", "nvtxsum"},
      {"nvtx_kern_sum", "nvtxkernsum"},
      {"nvtx_pushpop_sum", "nvtxppsum"},
      {"nvtx_startend_sum", "nvtxsesum"},
      {"nvtx_gpu_proj_sum", {}},
      {"cuda_gpu_kern_sum", "gpukernsum"},
      {"cuda_gpu_mem_time_sum", "gpumemtimesum"},
      {"cuda_gpu_mem_size_sum", "gpumemsizesum"},
      {"nvtx_pushpop_trace", "nvtxpptrace"},
      {"nvtx_gpu_proj_trace", "nvtxgpuproj"},
      {"cuda_gpu_trace", "gputrace"},
      {"cuda_kern_exec_trace", "kernexectrace"},
      {"cuda_api_trace", "cudaapitrace"},
  };
  return names;
}

Header parse_header(const std::vector<std::string>& fields) {
  Header header;
  header.width = fields.size();
  double main_scale = 1;
  std::vector<std::string> without_unit;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::string name = base::lower(base::trim(fields[i]));
    Column column{i, 1};
    if (const std::string_view unit = bracketed(fields[i]); !unit.empty()) {
      const auto size = size_unit(unit);
      column.scale = time_unit(unit).value_or(size.value_or(1));
      column.rounded = size && *size > 1;
      name = base::trim(base::lower(std::string_view(fields[i]).substr(0, fields[i].rfind('('))));
      if (name == "total time" || name == "total") main_scale = column.scale;
    } else {
      without_unit.push_back(canonical(name));
    }
    header.columns.emplace(canonical(name), column);
  }
  header.bare_names = std::find(fields.begin(), fields.end(), "Average") != fields.end();
  for (const std::string& name : without_unit) {  // 2020 printed `Average` next to `Total Time (ns)`
    if (name == "avg" || name == "min" || name == "max" || name == "med" || name == "stddev")
      header.columns[name].scale = main_scale;
  }
  header.table = table_of(header);
  return header;
}

bool looks_like_header(const std::vector<std::string>& fields) {
  return fields.size() >= 3 && std::any_of(fields.begin(), fields.end(), [](const std::string& field) {
           if (!time_unit(bracketed(field))) return false;
           const std::string name = base::lower(field);
           return name.starts_with("total time") || name.starts_with("start") || name.starts_with("duration");
         });
}

std::string_view Row::text(std::string_view column) const {
  const auto found = header_.columns.find(column);
  return found == header_.columns.end() ? std::string_view{} : std::string_view(fields_[found->second.at]);
}

std::optional<double> Row::number(std::string_view column) const {
  const auto found = header_.columns.find(column);
  if (found == header_.columns.end()) return std::nullopt;
  const auto value = base::to_double(plain(fields_[found->second.at]));
  if (!value || !std::isfinite(*value)) return std::nullopt;
  const double scaled = *value * found->second.scale;
  return std::isfinite(scaled) ? std::optional(scaled) : std::nullopt;
}

std::int64_t Row::count(std::string_view column) const {
  const double value = number(column).value_or(0);
  return std::abs(value) < 9e18 ? static_cast<std::int64_t>(value) : 0;
}

std::optional<std::uint32_t> Row::id(std::string_view column) const {
  const auto value = number(column);
  if (!value || *value < 0 || *value >= std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::optional<Moment> Row::moment(std::string_view column) const {
  const auto found = header_.columns.find(column);
  if (found == header_.columns.end()) return std::nullopt;
  // Digit by digit: a double has too few of them for nanoseconds since 1970.
  const std::string text = plain(fields_[found->second.at]);
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  const auto whole = base::to_uint(digits.substr(0, point));
  const auto scale = static_cast<std::int64_t>(found->second.scale);
  if (!whole || *whole > static_cast<std::uint64_t>(kMost / scale)) return std::nullopt;
  Moment moment{static_cast<std::int64_t>(*whole) * scale, static_cast<double>(scale)};
  double worth = static_cast<double>(scale), fraction = 0;
  for (const char c : digits.substr(std::min(point + 1, digits.size()))) {
    if (c < '0' || c > '9') return std::nullopt;
    worth /= 10;
    fraction += worth * (c - '0');
  }
  moment.ns += std::llround(fraction);
  if (moment.ns >= kMost) return std::nullopt;
  if (negative) moment.ns = -moment.ns;
  moment.resolution_ns = std::max(1.0, worth);
  return moment;
}

bool Row::rounded(std::string_view column) const {
  const auto found = header_.columns.find(column);
  return found != header_.columns.end() && found->second.rounded;
}

}  // namespace rangescope::read::nsys_csv
