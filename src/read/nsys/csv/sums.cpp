#include "read/nsys/csv/sums.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "read/nsys/csv/names.hpp"

namespace rangescope::read::nsys_csv {
namespace {

model::SummarySpread spread(const Row& row, const std::string& prefix = {}) {
  return {row.number(prefix + "avg"), row.number(prefix + "med"), row.number(prefix + "min"),
          row.number(prefix + "max"), row.number(prefix + "stddev")};
}

model::RangeKind kind_of(const Row& row, model::RangeKind otherwise) {
  const std::string style = base::lower(row.text("style"));
  if (style.starts_with("start")) return model::RangeKind::kStartEnd;
  return style.starts_with("push") ? model::RangeKind::kPushPop : otherwise;
}

/// A row with a total that so many of at most so long can come to; half as much again, and more, is rounding.
bool has_total(const Row& row, const char* count) {
  const auto total = row.number("total time"), longest = row.number("max");
  if (!total || !longest || *longest <= 0) return total.has_value();
  return *total <= 2 * *longest * static_cast<double>(row.count(count));
}

/// Two rows of one kernel: extremes and mean can be put together, the middle cannot.
void merge(model::KernelSummary& into, const model::KernelSummary& row) {
  into.calls += row.calls;
  into.total_ns += row.total_ns;
  model::SummarySpread& all = into.duration_ns;
  const auto extreme = [](std::optional<double>& known, const std::optional<double>& other, bool least) {
    if (!known || !other)
      known.reset();
    else
      known = least ? std::min(*known, *other) : std::max(*known, *other);
  };
  extreme(all.min, row.duration_ns.min, true);
  extreme(all.max, row.duration_ns.max, false);
  all.median = all.stddev = std::nullopt;
  if (into.calls > 0) all.mean = into.total_ns / static_cast<double>(into.calls);
}

}  // namespace

bool Sums::add(const Header& header, const Row& row, model::RangeKind kind) {
  bare_names_ = header.bare_names;
  switch (header.table) {
    case Table::kKernels: return add_kernel(row);
    case Table::kRanges:
    case Table::kRangesByStyle: return add_range(row, kind_of(row, kind));
    case Table::kRangeKernels: return add_range_kernel(row, kind_of(row, kind));
    case Table::kProjection: return add_projection(row, kind_of(row, kind));
    case Table::kCopyTimes:
    case Table::kCopySizes: return add_copy(row, header.table == Table::kCopySizes);
    default: return true;
  }
}

/// "LLM:decode", the default domain as ":decode"; tables of 2020 have bare names, colons and all.
std::pair<model::StringId, model::StringId> Sums::split(std::string_view range) {
  const std::size_t colon = bare_names_ ? std::string_view::npos : range.find(':');
  if (colon == std::string_view::npos) return {0, s_.strings.intern(range)};
  return {s_.strings.intern(range.substr(0, colon)), s_.strings.intern(range.substr(colon + 1))};
}

model::RangeSummary& Sums::range(const Row& row, std::string_view column, model::RangeKind kind) {
  const auto [domain, name] = split(row.text(column));
  const auto [at, added] = range_of_.emplace(std::tuple(domain, name, kind), s_.summary.ranges.size());
  if (added) s_.summary.ranges.push_back({domain, name, kind});
  return s_.summary.ranges[at->second];
}

bool Sums::add_range(const Row& row, model::RangeKind kind) {
  if (!has_total(row, "instances")) return false;
  model::RangeSummary& out =
      range(row, "range", kind);  // nvtx_sum and nvtx_pushpop_sum say the same: the last one stays
  out.occurrences = row.count("instances");
  out.total_ns = row.number("total time");
  out.per_occurrence_ns = spread(row);
  return true;
}

bool Sums::add_projection(const Row& row, model::RangeKind kind) {
  if (!row.number("total proj time")) return false;
  model::RangeSummary& out = range(row, "range", kind);
  out.gpu_span_ns = row.number("total proj time");
  out.gpu_operations = row.count("total gpu ops");
  if (out.occurrences == 0) {  // occurrences without GPU work are not in this table
    out.occurrences = row.count("range instances");
    out.total_ns = row.number("total range time");
  }
  return true;
}

bool Sums::add_kernel(const Row& row) {
  if (!has_total(row, "instances")) return false;
  model::KernelSummary out;
  out.name = s_.strings.intern(row.text("name"));
  out.calls = row.count("instances");
  out.total_ns = *row.number("total time");
  out.duration_ns = spread(row);
  // Tables with grid and block have a row for each launch configuration.
  const auto [at, added] = kernel_of_.emplace(out.name, s_.summary.kernels.size());
  if (!added) {
    merge(s_.summary.kernels[at->second], out);
    return true;
  }
  s_.summary.kernels.push_back(out);
  return true;
}

bool Sums::add_range_kernel(const Row& row, model::RangeKind kind) {
  if (!has_total(row, "kern inst")) return false;
  model::KernelSummary out;
  out.in_range = true;
  const std::string_view name = row.text("nvtx range");
  out.outside = name.empty() || name == "None";
  if (!out.outside) std::tie(out.domain, out.range) = split(name);
  out.kind = kind;
  out.name = s_.strings.intern(row.text("kernel name"));
  out.calls = row.count("kern inst");
  out.total_ns = *row.number("total time");
  out.duration_ns = spread(row);
  out.occurrences = row.count("nvtx inst");
  out.pid = row.id("pid").value_or(0);
  out.tid = row.id("tid").value_or(0);
  s_.summary.kernels.push_back(out);
  return true;
}

bool Sums::add_copy(const Row& row, bool sizes) {
  const auto value = row.number(sizes ? "total" : "total time");
  if (!value || (!sizes && !has_total(row, "count"))) return false;
  const std::string what = base::lower(row.text("operation"));
  const model::CopyKind kind = copy_kind(what);
  const bool memset = what.find("memset") != std::string::npos;
  const auto same = [&](const model::CopySummary& copy) { return copy.kind == kind && copy.memset == memset; };
  auto found = std::find_if(s_.summary.copies.begin(), s_.summary.copies.end(), same);
  if (found == s_.summary.copies.end()) found = s_.summary.copies.insert(found, {kind, memset});
  found->calls = row.count("count");
  (sizes ? found->bytes : found->total_ns) += *value;
  return true;
}

}  // namespace rangescope::read::nsys_csv
