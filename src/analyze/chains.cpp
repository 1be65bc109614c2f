#include "analyze/chains.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "model/measure.hpp"
#include "model/table_row.hpp"

namespace rangescope::analyze {
namespace {

using model::Region;
using model::Report;
using model::TableRow;

constexpr double kSameWithin = 0.01;

constexpr std::string_view kSameCounts[] = {
    "occurrences",
    "unclosed",
    "threads",
    "processes",
    "gpu.kernels",
    "gpu.graph_launches",
    "gpu.copies",
    "gpu.memsets",
    "gpu.syncs",
    "memory.allocations",
    "cuda_memory.frees",
    "cuda_memory.allocations",
};
// The columns that a table shows, but for self times and the profiler's own.
constexpr std::string_view kSameAmounts[] = {
    "wall_ns.inclusive",     "wall_ns.median",
    "wall_ns.p95",           "wall_ns.max",
    "across.min_ns",         "across.max_ns",
    "ranks.mean_ns",         "ranks.min_ns",
    "ranks.max_ns",          "communication.time_ns",
    "communication.wait_ns", "communication.transfer_ns",
    "gpu.kernel_ns",         "gpu.busy_ns",
    "gpu.copy_bytes",        "gpu.sync_ns",
    "memory.peak_bytes",     "memory.allocated_bytes",
    "memory.held_bytes",     "cuda_memory.peak_bytes",
    "cuda_memory.call_ns",   "cuda_memory.kept_bytes",
    "utilization.executed",  "utilization.useful",
    "utilization.bandwidth",
};

bool is_close(std::optional<double> outer, std::optional<double> inner) {
  if (!outer || !inner)
    return outer.has_value() == inner.has_value();
  const double larger = std::max(std::fabs(*outer), std::fabs(*inner));
  return std::fabs(*outer - *inner) <= kSameWithin * larger;
}

bool same_metrics(const Region& outer, const Region& inner) {
  const auto is_same = [](const auto& a, const auto& b) {
    const bool same_state = a.second.absent.empty() == b.second.absent.empty();
    return a.first == b.first && same_state && is_close(a.second.value, b.second.value);
  };
  return std::ranges::equal(outer.metrics, inner.metrics, is_same);
}

bool same_bound(const Region& outer, const Region& inner) {
  if (!outer.bound || !inner.bound)
    return outer.bound.has_value() == inner.bound.has_value();
  return outer.bound->kind == inner.bound->kind;
}

bool same_slowest_rank(const Region& outer, const Region& inner) {
  if (!outer.ranks || !inner.ranks)
    return outer.ranks.has_value() == inner.ranks.has_value();
  return outer.ranks->slowest == inner.ranks->slowest;
}

bool same_numbers(const Region& outer, const Region& inner) {
  const auto equal = [&](std::string_view tag) {
    return model::value_of(outer, tag) == model::value_of(inner, tag);
  };
  const auto close = [&](std::string_view tag) {
    return is_close(model::value_of(outer, tag), model::value_of(inner, tag));
  };
  return std::ranges::all_of(kSameCounts, equal) && std::ranges::all_of(kSameAmounts, close) &&
         same_metrics(outer, inner) && same_bound(outer, inner) && same_slowest_rank(outer, inner);
}

/// Both are modules, links of one path that can be written and selected as `A > B`, and the outer
/// one has nothing to say of its own. Ranges are the program's own words: each has its row, however
/// little its times differ from those of the range around it.
bool can_join(const TableRow& outer_row,
              const Region& outer,
              const TableRow& inner_row,
              const Region& inner) {
  const bool same_stack = outer.domain == inner.domain &&
                          outer.kind == model::RangeKind::kPushPop && inner.kind == outer.kind;
  const bool are_modules = outer.module && inner.module;
  const bool one_has_one_name = outer_row.siblings == 1 || inner_row.siblings == 1;
  const bool outer_has_remarks = outer.unclosed != 0 || !outer.notes.empty();
  return same_stack && are_modules && one_has_one_name && !outer_has_remarks;
}

}  // namespace

void find_chains(Report& report) {
  std::vector<std::uint32_t> children(report.rows.size());
  for (const TableRow& row : report.rows)
    if (row.parent != model::kNone)
      ++children[row.parent];
  for (std::size_t row = 0; row + 1 < report.rows.size(); ++row) {
    if (children[row] != 1)
      continue;
    TableRow& outer = report.rows[row];
    const TableRow& inner = report.rows[row + 1];  // depth first
    const Region& outer_region = model::region_of(report, outer);
    const Region& inner_region = model::region_of(report, inner);
    outer.joins_child = can_join(outer, outer_region, inner, inner_region) &&
                        same_numbers(outer_region, inner_region);
  }
}

}  // namespace rangescope::analyze
