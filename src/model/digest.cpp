#include "model/digest.hpp"

#include <algorithm>
#include <utility>

namespace rangescope::model {
namespace {

bool has_range_named(const Digest& digest, std::string_view name) {
  return std::ranges::any_of(digest.regions, [&](const DigestRegion& region) {
    return region.domain.empty() && region.path.size() == 1 && region.path.front() == name;
  });
}

/// The row of these numbers; nullptr where it is not added.
DigestRegion* add_run_row(RunNumbers&& numbers, std::string_view name, Digest& digest) {
  const bool has_time = numbers.wall_ns && *numbers.wall_ns > 0;
  const bool is_known = has_time || numbers.peak_memory_bytes;
  if (!is_known || has_range_named(digest, name))
    return nullptr;
  DigestRegion& row = digest.regions.emplace_back();
  row.path = {std::string(name)};
  row.occurrences = 1;
  if (has_time) {
    row.values["wall_ns.inclusive"] = *numbers.wall_ns;
    row.values["wall_ns.median"] = *numbers.wall_ns;
    row.wall_ns = {*numbers.wall_ns};
  }
  if (numbers.busy_ns)
    row.values["gpu.busy_ns"] = *numbers.busy_ns;
  if (numbers.peak_memory_bytes)
    row.values["memory.peak_bytes"] = *numbers.peak_memory_bytes;
  row.cpu_interval_ns = numbers.cpu_interval_ns;
  row.functions = std::move(numbers.functions);
  row.own_functions = std::move(numbers.own_functions);
  return &row;
}

}  // namespace

void add_run_rows(RunNumbers whole_run, RunNumbers outside, Digest& digest) {
  const bool has_ranges = !digest.regions.empty();
  if (has_ranges) {
    DigestRegion* row = add_run_row(std::move(outside), kOutsideRanges, digest);
    if (row != nullptr)
      row->is_outside_ranges = true;
  } else {
    whole_run.cpu_interval_ns = outside.cpu_interval_ns;
    whole_run.functions = std::move(outside.functions);
    whole_run.own_functions = std::move(outside.own_functions);
  }
  DigestRegion* row = add_run_row(std::move(whole_run), kWholeRun, digest);
  if (row != nullptr)
    row->is_whole_run = true;
}

}  // namespace rangescope::model
