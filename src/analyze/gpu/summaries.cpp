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
    auto [entry, added] = by_name.try_emplace(row->name);
    model::KernelRow& kernel = entry->second;
    const std::string_view name = session.strings.view(row->name);
    if (added) {
      kernel.name = name;
      kernel.short_name = model::short_kernel_name(name);
      kernel.shapes = kUnknownCount;
      kernel.nccl = model::is_nccl(name);
      kernel.duration_ns = spread(row->duration_ns);
    } else {  // two rows: extremes and mean can be put together, the middle cannot
      model::Spread& duration = kernel.duration_ns;
      duration.min = std::min(duration.min, row->duration_ns.min.value_or(kNan));
      duration.max = std::max(duration.max, row->duration_ns.max.value_or(kNan));
      duration.median = duration.stddev = kNan;
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

using KernelSummaries = std::vector<const model::KernelSummary*>;

/// The rows of a summary by the range that they are of.
struct SummaryRows {
  std::vector<Key> order;  ///< ranges as they first appear
  std::map<Key, const model::RangeSummary*> ranges;
  std::map<Key, KernelSummaries> kernels;
  KernelSummaries of_run, outside;
};

SummaryRows rows_by_range(const model::Summary& summary) {
  SummaryRows rows;
  const auto range_of = [&](const Key& key) -> const model::RangeSummary*& {
    const auto [range, added] = rows.ranges.try_emplace(key, nullptr);
    if (added)
      rows.order.push_back(key);
    return range->second;
  };
  for (const model::RangeSummary& range : summary.ranges)
    range_of({range.domain, range.name, range.kind}) = &range;
  for (const model::KernelSummary& kernel : summary.kernels) {
    if (!kernel.in_range) {
      rows.of_run.push_back(&kernel);
    } else if (kernel.outside) {
      rows.outside.push_back(&kernel);
    } else {
      const Key key{kernel.domain, kernel.range, kernel.kind};
      range_of(key);
      rows.kernels[key].push_back(&kernel);
    }
  }
  return rows;
}

/// How often a range was opened, by its kernels: the table repeats it for every kernel of a thread.
std::int64_t reported_occurrences(const KernelSummaries& kernels) {
  std::map<std::uint64_t, std::int64_t> by_thread;
  for (const model::KernelSummary* kernel : kernels) {
    std::int64_t& occurrences = by_thread[std::uint64_t{kernel->pid} << 32 | kernel->tid];
    occurrences = std::max(occurrences, kernel->occurrences);
  }
  std::int64_t sum = 0;
  for (const auto& [thread, occurrences] : by_thread)
    sum += occurrences;
  return sum;
}

/// Makes the regions of a summary.
class SummaryRegions {
 public:
  SummaryRegions(const model::Session& session,
                 const Options& options,
                 const SummaryRows& rows,
                 std::vector<model::Region>& regions)
      : session_(session), options_(options), rows_(rows), regions_(regions) {}

  void add(const Key& key) {
    const std::string_view domain = session_.strings.view(key.domain);
    const std::vector<std::string_view> path = path_of(key);
    if (!options_.ranges.chooses(domain, path, key.kind))
      return;
    model::Region region;
    region.id = static_cast<std::uint32_t>(regions_.size());
    region.path.assign(path.begin(), path.end());
    region.domain = domain;
    region.kind = key.kind;
    place(key, region);
    region.unclosed = region.threads = region.processes = kUnknownCount;
    region.wall.inclusive_ns = region.wall.exclusive_ns = region.wall.share = kNan;
    region.wall.per_occurrence_ns = model::kNoSpread;
    const model::RangeSummary* range = rows_.ranges.at(key);
    if (range != nullptr)
      add_range(*range, region);
    const auto kernels = rows_.kernels.find(key);
    if (kernels != rows_.kernels.end()) {
      if (!region.gpu)
        region.gpu = unknown_work();
      const std::size_t max_rows = options_.top_kernels;
      add_kernels(session_, kernels->second, max_rows, *region.gpu, region.gpu->top_kernels);
      if (range == nullptr)
        region.occurrences += reported_occurrences(kernels->second);
    }
    regions_.push_back(std::move(region));
  }

 private:
  [[nodiscard]] std::vector<std::string_view> path_of(const Key& key) const {
    const auto& paths = session_.summary.paths;
    const auto nested = paths.find(key.name);
    if (nested == paths.end())
      return {session_.strings.view(key.name)};
    std::vector<std::string_view> path;
    for (const model::StringId name : nested->second)
      path.push_back(session_.strings.view(name));
    return path;
  }

  /// Puts the region below the one with the path around its own.
  void place(const Key& key, model::Region& region) {
    const Key stack{key.domain, 0, key.kind};
    placed_.emplace(std::pair(stack, region.path), region.id);
    const auto around = placed_.find({stack, {region.path.begin(), region.path.end() - 1}});
    if (around == placed_.end())
      return;
    region.parent = around->second;
    region.depth = regions_[region.parent].depth + 1;
  }

  static void add_range(const model::RangeSummary& range, model::Region& region) {
    region.occurrences = range.occurrences;
    region.wall.inclusive_ns = range.total_ns.value_or(kNan);
    region.wall.per_occurrence_ns = spread(range.per_occurrence_ns);
    if (!range.gpu_span_ns)
      return;
    region.gpu = unknown_work();
    region.gpu->span_ns = *range.gpu_span_ns;
  }

  const model::Session& session_;
  const Options& options_;
  const SummaryRows& rows_;
  std::vector<model::Region>& regions_;
  /// By domain and kind alone, and path.
  std::map<std::pair<Key, std::vector<std::string>>, std::uint32_t> placed_;
};

void add_copies(const std::vector<model::CopySummary>& copies, model::GpuWork& work) {
  work.copies = work.memsets = 0;
  work.copy_ns = work.copy_bytes = 0;
  for (const model::CopySummary& copy : copies) {
    if (copy.memset) {
      work.memsets += copy.calls;
      continue;
    }
    work.copies += copy.calls;
    work.copy_ns += copy.total_ns;
    work.copy_bytes += copy.bytes;
    if (std::isnan(copy.bytes))
      continue;  // a row of a kind has bytes
    work.copies_by_kind.push_back({copy.kind, copy.calls, copy.bytes, copy.total_ns});
  }
}

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
  const SummaryRows rows = rows_by_range(summary);
  SummaryRegions regions(session, options, rows, report.regions);
  for (const Key& key : rows.order)
    regions.add(key);
  if (!rows.of_run.empty()) {
    constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
    report.total = unknown_work();
    add_kernels(session, rows.of_run, kAll, *report.total, report.kernels);
  }
  if (!rows.outside.empty()) {
    report.unattributed = unknown_work();
    add_kernels(session,
                rows.outside,
                options.top_kernels,
                *report.unattributed,
                report.unattributed->top_kernels);
  }
  if (!summary.copies.empty()) {
    if (!report.total)
      report.total = unknown_work();
    add_copies(summary.copies, *report.total);
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
