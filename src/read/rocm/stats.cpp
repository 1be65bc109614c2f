// Totals by name:
//
//   "Name","Calls","TotalDurationNs","AverageNs","Percentage"                            rocprof
//   "Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"   rocprofv3
//
// The file's name says what the names are: results.hip_stats.csv, ..._memory_copy_stats.csv. Where
// it does not, copies and functions of HIP and HSA are recognized by their names, and all else are
// kernels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "read/csv.hpp"
#include "read/rocm/events.hpp"
#include "read/rocm/reader.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::rocm {
namespace {

constexpr std::string_view kColumns[] = {
    "Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage", "MinNs", "MaxNs", "StdDev"};
constexpr std::size_t kLeast = 5;

enum class Kind { kKernel, kCopy, kCall, kRange, kNothing };

Kind kind_of(std::string_view name, std::string_view file) {
  constexpr std::pair<std::string_view, Kind> kFiles[] = {{"domain_stats", Kind::kNothing},
                                                          {"marker", Kind::kRange},
                                                          {"roctx", Kind::kRange},
                                                          {"kernel_stats", Kind::kKernel},
                                                          {"copy_stats", Kind::kCopy},
                                                          {"hip_stats", Kind::kCall},
                                                          {"hsa_stats", Kind::kCall},
                                                          {"api_stats", Kind::kCall}};
  for (const auto& [word, kind] : kFiles)
    if (file.find(word) != std::string_view::npos)
      return kind;
  constexpr std::pair<std::string_view, Kind> kNames[] = {{"CopyHostTo", Kind::kCopy},
                                                          {"CopyDeviceTo", Kind::kCopy},
                                                          {"MEMORY_COPY_", Kind::kCopy},
                                                          {"FillBuffer", Kind::kCopy},
                                                          {"__hip", Kind::kCall},
                                                          {"hip", Kind::kCall},
                                                          {"hsa_", Kind::kCall}};
  for (const auto& [begin, kind] : kNames)
    if (name.starts_with(begin))
      return kind;
  return Kind::kKernel;
}

/// The columns that a row has, as numbers from "Calls" on.
std::optional<std::vector<double>> numbers(const Row& row) {
  std::vector<double> out;
  for (std::size_t i = 1; i < row.cells.size(); ++i) {
    const auto value = base::to_double(base::trim(row.cells[i]));
    if (!value || !(*value >= 0) || *value > 9e15)
      return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

void add(std::string_view name, const std::vector<double>& row, Kind kind, model::Session& s) {
  const auto calls = std::llround(row[0]);
  model::SummarySpread spread;
  spread.mean = row[2];
  if (row.size() > kLeast)
    spread.min = row[4], spread.max = row[5];
  switch (kind) {
    case Kind::kKernel: {
      model::KernelSummary& out = s.summary.kernels.emplace_back();
      out.name = s.strings.intern(kernel_name(name));
      out.calls = calls;
      out.total_ns = row[1];
      out.duration_ns = spread;
      break;
    }
    case Kind::kCopy:
      s.summary.copies.push_back({copy_kind(name),
                                  is_fill(name),
                                  calls,
                                  row[1],
                                  std::numeric_limits<double>::quiet_NaN()});
      break;
    case Kind::kCall: s.summary.calls.push_back({s.strings.intern(name), calls, row[1]}); break;
    case Kind::kRange: {
      model::RangeSummary& out = s.summary.ranges.emplace_back();
      out.name = s.strings.intern(name);
      out.occurrences = calls;
      out.total_ns = row[1];
      out.per_occurrence_ns = spread;
      break;
    }
    case Kind::kNothing: break;
  }
}

bool is_header(const Row& row) {
  return row.cells.size() >= kLeast && row.cells.size() <= std::size(kColumns) &&
         std::equal(row.cells.begin(), row.cells.end(), std::begin(kColumns));
}

}  // namespace

bool is_stats(std::string_view head) {
  std::size_t offset = 0;
  std::uint64_t line = 1;
  Row row;
  return next_row(head, offset, line, row) && is_header(row);
}

base::Result<model::Session> read_stats(std::string_view text, const std::string& name) {
  model::Session session;
  std::size_t offset = 0, columns = 0;
  std::uint64_t line = 1, bad = 0;
  const std::string_view file = base::file_name(name);
  for (Row row; next_row(text, offset, line, row);) {
    if (is_header(row)) {
      columns = row.cells.size();
      continue;
    }
    if (base::trim(row.text).empty())
      continue;
    const auto values = row.cells.size() == columns ? numbers(row) : std::nullopt;
    if (values)
      add(row.cells[0], *values, kind_of(row.cells[0], file), session);
    else
      ++bad;
  }
  if (session.summary.empty())
    return base::fail(base::Code::kBadData,
                      "a table of rocprof without rows of kernels, copies, calls or ranges",
                      name,
                      "Give kernel_stats, hip_stats or the trace itself (--output-format rocpd).");
  if (bad > 0)
    session.losses.push_back({"bad_rows", bad, "rows that do not fit their header were left out"});
  session.losses.push_back(
      {"totals_only", 0, "tables of sums hold totals by name: overlap cannot be known"});
  session.sources.push_back({name, "rocm", "rocprof statistics", {}});
  return session;
}

}  // namespace rangescope::read::rocm
