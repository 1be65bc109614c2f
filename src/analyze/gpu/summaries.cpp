#include "analyze/gpu/gpu.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "analyze/tree/groups.hpp"
#include "model/kernel_name.hpp"

namespace rangescope::analyze {
namespace {

using model::kNan;
constexpr std::int64_t kUnknownCount = -1;

model::Spread spread(const model::SummarySpread& known) {
  return {known.min.value_or(kNan),
          known.median.value_or(kNan),
          kNan,
          known.max.value_or(kNan),
          known.mean.value_or(kNan),
          known.stddev.value_or(kNan)};
}

/// The kernels of one region (or of the run): rows of one name are put together, since a table has
/// one a thread.
void add_kernels(const model::Session& session,
                 const std::vector<const model::KernelSummary*>& rows,
                 std::size_t top,
                 model::GpuWork& work,
                 std::vector<model::KernelRow>& out) {
  work.kernels = work.nccl_kernels = 0;
  work.kernel_ns = work.nccl_ns = 0;
  std::map<model::StringId, model::KernelRow> by_name;
  for (const model::KernelSummary* row : rows) {
    auto [at, added] = by_name.try_emplace(row->name);
    model::KernelRow& kernel = at->second;
    const std::string_view name = session.strings.view(row->name);
    if (added) {
      kernel.name = name;
      kernel.short_name = model::short_kernel_name(name);
      kernel.shapes = kUnknownCount;
      kernel.nccl = model::is_nccl(name);
      kernel.duration_ns = spread(row->duration_ns);
    } else {  // two rows: extremes and mean can be put together, the middle cannot
      model::Spread& all = kernel.duration_ns;
      all.min = std::min(all.min, row->duration_ns.min.value_or(kNan));
      all.max = std::max(all.max, row->duration_ns.max.value_or(kNan));
      all.median = all.stddev = kNan;
    }
    kernel.calls += row->calls;
    kernel.total_ns += row->total_ns;
    if (kernel.calls > 0)
      kernel.duration_ns.mean = kernel.total_ns / static_cast<double>(kernel.calls);
    work.kernels += row->calls;
    work.kernel_ns += row->total_ns;
    if (kernel.nccl) {
      work.nccl_kernels += row->calls;
      work.nccl_ns += row->total_ns;
    }
  }
  work.distinct_kernels = static_cast<std::int64_t>(by_name.size());
  out.clear();
  for (auto& [name, row] : by_name) {
    row.share = work.kernel_ns > 0 ? row.total_ns / work.kernel_ns : 0;
    out.push_back(std::move(row));
  }
  std::ranges::stable_sort(out, &model::KernelRow::comes_before);
  if (out.size() > top)
    out.resize(top);
}

/// Functions of the GPU's API by name, the longest first. What they did on the GPU is unknown.
void add_calls(const model::Session& session, std::vector<model::OperatorRow>& out) {
  std::map<model::StringId, model::OperatorRow> rows;
  for (const model::CallSummary& summary : session.summary.calls) {
    model::OperatorRow& row = rows[summary.name];
    row.name = session.strings.view(summary.name);
    row.calls += summary.calls;
    row.cpu_ns += summary.total_ns;
    row.exclusive_cpu_ns = row.cpu_ns;
    row.gpu_ns = row.exclusive_gpu_ns = kNan;
  }
  for (auto& [name, row] : rows)
    out.push_back(std::move(row));
  std::ranges::stable_sort(out, std::ranges::greater{}, &model::OperatorRow::cpu_ns);
}

struct Key {
  model::StringId domain, name;
  model::RangeKind kind;
  auto operator<=>(const Key&) const = default;
};

}  // namespace

model::GpuWork unknown_work() {
  model::GpuWork work;
  for (const auto count : model::kGpuCounts)
    work.*count = kUnknownCount;
  work.distinct_kernels = kUnknownCount;
  work.recorded_occurrences = 0;
  for (const auto value : model::kGpuTimes)
    work.*value = kNan;
  work.copy_busy_ns = kNan;
  work.share = kNan;
  work.kernel_ns_per_occurrence = work.busy_ns_per_occurrence = model::kNoSpread;
  return work;
}

base::Result<void> add_summaries(const model::Session& session,
                                 const Options& options,
                                 model::Report& report) {
  const model::Summary& summary = session.summary;
  if (summary.empty())
    return {};
  std::map<Key, const model::RangeSummary*> ranges;
  std::map<Key, std::vector<const model::KernelSummary*>> kernels;
  std::vector<const model::KernelSummary*> of_run, outside;
  std::vector<Key> order;
  const auto see = [&](const Key& key) {
    if (!ranges.contains(key))
      order.push_back(key);
    return ranges.try_emplace(key, nullptr).first;
  };
  for (const model::RangeSummary& range : summary.ranges)
    see({range.domain, range.name, range.kind})->second = &range;
  for (const model::KernelSummary& kernel : summary.kernels) {
    if (!kernel.in_range) {
      of_run.push_back(&kernel);
    } else if (kernel.outside) {
      outside.push_back(&kernel);
    } else {
      const Key key{kernel.domain, kernel.range, kernel.kind};
      see(key);
      kernels[key].push_back(&kernel);
    }
  }
  std::map<std::pair<Key, std::vector<std::string>>, std::uint32_t>
      placed;  // of domain and kind alone, and path
  for (const Key& key : order) {
    const std::string_view domain = session.strings.view(key.domain);
    std::vector<std::string_view> path{session.strings.view(key.name)};
    if (const auto nested = summary.paths.find(key.name); nested != summary.paths.end()) {
      path.clear();
      for (const model::StringId each : nested->second)
        path.push_back(session.strings.view(each));
    }
    if (!options.ranges.chooses(domain, path, key.kind))
      continue;
    model::Region region;
    region.id = static_cast<std::uint32_t>(report.regions.size());
    region.path.assign(path.begin(), path.end());
    const Key stack{key.domain, 0, key.kind};
    placed.emplace(std::pair(stack, region.path), region.id);
    const auto around = placed.find({stack, {region.path.begin(), region.path.end() - 1}});
    if (around != placed.end()) {
      region.parent = around->second;
      region.depth = report.regions[region.parent].depth + 1;
    }
    region.domain = domain;
    region.kind = key.kind;
    region.unclosed = region.threads = region.processes = kUnknownCount;
    region.wall.inclusive_ns = region.wall.exclusive_ns = region.wall.share = kNan;
    region.wall.per_occurrence_ns = model::kNoSpread;
    if (const model::RangeSummary* range = ranges[key]) {
      region.occurrences = range->occurrences;
      region.wall.inclusive_ns = range->total_ns.value_or(kNan);
      region.wall.per_occurrence_ns = spread(range->per_occurrence_ns);
      if (range->gpu_span_ns) {
        region.gpu = unknown_work();
        region.gpu->span_ns = *range->gpu_span_ns;
      }
    }
    if (const auto found = kernels.find(key); found != kernels.end()) {
      if (!region.gpu)
        region.gpu = unknown_work();
      add_kernels(
          session, found->second, options.top_kernels, *region.gpu, region.gpu->top_kernels);
      if (ranges[key] == nullptr) {  // the table repeats it for every kernel of a thread
        std::map<std::uint64_t, std::int64_t> by_thread;
        for (const model::KernelSummary* row : found->second) {
          std::int64_t& most = by_thread[std::uint64_t{row->pid} << 32 | row->tid];
          most = std::max(most, row->occurrences);
        }
        for (const auto& [thread, occurrences] : by_thread)
          region.occurrences += occurrences;
      }
    }
    report.regions.push_back(std::move(region));
  }
  if (!of_run.empty()) {
    report.total = unknown_work();
    add_kernels(
        session, of_run, std::numeric_limits<std::size_t>::max(), *report.total, report.kernels);
  }
  if (!outside.empty()) {
    report.unattributed = unknown_work();
    add_kernels(session,
                outside,
                options.top_kernels,
                *report.unattributed,
                report.unattributed->top_kernels);
  }
  if (!summary.copies.empty()) {
    if (!report.total)
      report.total = unknown_work();
    report.total->copies = report.total->memsets = 0;
    report.total->copy_ns = report.total->copy_bytes = 0;
    for (const model::CopySummary& copy : summary.copies) {
      (copy.memset ? report.total->memsets : report.total->copies) += copy.calls;
      if (copy.memset)
        continue;
      report.total->copy_ns += copy.total_ns;
      report.total->copy_bytes += copy.bytes;
      if (std::isnan(copy.bytes))
        continue;  // a row of a kind has bytes
      report.total->copies_by_kind.push_back({copy.kind, copy.calls, copy.bytes, copy.total_ns});
    }
  }
  add_calls(session, report.operators);
  if (!summary.paths.empty())
    report.notes.emplace_back(
        "Regions are totals by path, from a profile without a timeline: no exclusive times.");
  else if (summary.calls.empty())
    report.notes.emplace_back(
        "Regions are totals by name, from tables without a timeline: no nesting, no exclusive "
        "times. Ranges of one "
        "name inside each other count their kernels twice.");
  return {};
}

}  // namespace rangescope::analyze
