#include "analyze/gpu/gpu.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "analyze/gpu/stalls.hpp"
#include "analyze/samples/samples.hpp"
#include "analyze/statistics/order.hpp"
#include "analyze/statistics/spread.hpp"
#include "analyze/time/steady.hpp"
#include "base/units.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::GpuWork;
using model::KernelRow;
using model::Session;

struct CopySum {
  std::uint64_t calls = 0, bytes = 0, ns = 0;
};

/// What is not a kernel, summed by set.
struct SetSums {
  std::map<model::CopyKind, CopySum> copies;
  std::uint64_t memsets = 0, syncs = 0, sync_ns = 0, graph_launches = 0;
};

struct OtherWork {
  std::map<std::uint32_t, SetSums> of_set;
  std::vector<std::uint64_t> launch_ns;  ///< by set: CPU time inside launching calls
  bool launches_timed = false;
  std::uint64_t without_launch = 0, backward = 0;
};

/// Time of a record, 0 if it ends before it starts.
template <class Record>
std::uint64_t nonnegative_ns(const Record& record) {
  return static_cast<std::uint64_t>(length_ns(record.start_ns, record.end_ns));
}

/// Sums all but kernels.
class OtherWorkSums {
 public:
  OtherWorkSums(const Session& session, const Contexts& contexts, const Sets& sets)
      : session_(session), contexts_(contexts), sets_(sets) {}

  OtherWork run() {
    add_copies();
    add_memsets();
    add_synchronizations();
    add_launches();
    add_graph_launches();
    return std::move(out_);
  }

 private:
  template <class Item>
  std::uint32_t set_of(const std::vector<std::uint32_t>& of_item, std::size_t i, const Item& item) {
    if (!launched(session_, item.launch, item.stream)) {
      ++out_.without_launch;
      return Sets::kNoLaunch;
    }
    return sets_.of_context[context_of(session_, contexts_, of_item, i, item.launch, item.stream)];
  }

  void add_copies() {
    for (std::size_t i = 0; i < session_.copies.size(); ++i) {
      const model::Copy& copy = session_.copies[i];
      const bool has_launch = launched(session_, copy.launch, copy.stream);
      const bool needs_none = copy.migration && !has_launch;
      const std::uint32_t set = needs_none ? Sets::kNoLaunch : set_of(contexts_.of_copy, i, copy);
      CopySum& sum = out_.of_set[set].copies[copy.kind];
      ++sum.calls;
      sum.bytes += copy.bytes;
      sum.ns += nonnegative_ns(copy);
      if (copy.end_ns < copy.start_ns)
        ++out_.backward;
    }
  }

  void add_memsets() {
    for (std::size_t i = 0; i < session_.memsets.size(); ++i)
      ++out_.of_set[set_of(contexts_.of_memset, i, session_.memsets[i])].memsets;
  }

  void add_synchronizations() {
    for (std::size_t i = 0; i < session_.synchronizations.size(); ++i) {
      const model::Synchronization& sync = session_.synchronizations[i];
      if (sync.kind == model::SyncKind::kStreamWaitEvent)
        continue;  // a stream waits, not the CPU
      SetSums& sums = out_.of_set[set_of({}, i, sync)];
      ++sums.syncs;
      sums.sync_ns += nonnegative_ns(sync);
    }
  }

  void add_launches() {
    out_.launch_ns.resize(sets_.size());
    for (std::size_t l = 0; l < session_.launches.size(); ++l) {
      const model::Launch& call = session_.launches[l];
      const std::uint32_t set = sets_.of_context[contexts_.of_launch[l]];
      const bool is_graph = call.kind == model::LaunchKind::kGraph;
      const bool is_launch = is_graph || call.kind == model::LaunchKind::kKernel;
      if (is_launch && call.end_ns != kOpen) {
        out_.launch_ns[set] += nonnegative_ns(call);
        out_.launches_timed = true;
      }
      if (is_graph)
        ++out_.of_set[set].graph_launches;
    }
  }

  /// Those that are not counted by their call.
  void add_graph_launches() {
    for (std::size_t i = 0; i < session_.graph_launches.size(); ++i) {
      const model::GraphLaunch& graph = session_.graph_launches[i];
      const bool is_counted = graph.launch < session_.launches.size() &&
                              session_.launches[graph.launch].kind == model::LaunchKind::kGraph;
      if (!is_counted)
        ++out_.of_set[set_of({}, i, graph)].graph_launches;
    }
  }

  const Session& session_;
  const Contexts& contexts_;
  const Sets& sets_;
  OtherWork out_;
};

/// A group as a region sees it.
struct GroupUse {
  std::uint32_t group;
  bool exclusive, inherited;
};

template <class T>
class Tables {
 public:
  Tables(const Session& session, const KernelGroups& groups, const KernelTimes<T>& times)
      : session_(session), groups_(groups), times_(times) {}

  /// Kernel counts, latency and the table of kernels by name, at most so many rows.
  void fill(const std::vector<GroupUse>& uses, std::size_t max_rows, GpuWork& work) {
    std::uint64_t total = 0, exclusive = 0, nccl = 0;
    pieces_.clear();
    by_name_.clear();
    for (const GroupUse& use : uses) {
      const Group& group = groups_.groups[use.group];
      const auto calls = static_cast<std::int64_t>(group.calls);
      work.kernels += calls;
      total += group.total_ns;
      if (use.exclusive) {
        work.exclusive_kernels += calls;
        exclusive += group.total_ns;
      }
      if (use.inherited)
        work.inherited_kernels += calls;
      if (group.graph)
        work.graph_kernels += calls;
      if (groups_.names[group.name].nccl) {
        work.nccl_kernels += calls;
        nccl += group.total_ns;
      }
      // A graph's later kernels wait for its earlier ones: that is no launch latency.
      if (!group.graph && group.set != Sets::kNoLaunch)
        pieces_.push_back(times_of(times_.latency, group));
      by_name_.push_back(use.group);
    }
    work.kernel_ns = static_cast<double>(total);
    work.exclusive_kernel_ns = static_cast<double>(exclusive);
    work.nccl_ns = static_cast<double>(nccl);
    if (!pieces_.empty())
      work.launch_latency_ns = spread_of<T>(std::span<const std::span<const T>>(pieces_), scratch_);
    add_rows(max_rows, total, work);
  }

 private:
  struct NameRun {
    std::uint32_t name;
    std::size_t first, last;  ///< in by_name_
    std::uint64_t total, calls;
  };

  std::span<const T> times_of(const std::vector<T>& times, const Group& group) const {
    return {times.data() + group.begin, group.calls};
  }
  std::string_view text_of(std::uint32_t name) const {
    return session_.strings.view(
        shown_name(session_.kernel_names[groups_.names[name].kernel_name]));
  }

  /// Fills `runs_`: the groups of each name are neighbours in `by_name_`.
  void find_runs() {
    std::sort(by_name_.begin(), by_name_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Group& group_a = groups_.groups[a];
      const Group& group_b = groups_.groups[b];
      return std::tie(group_a.name, group_a.shape, a) < std::tie(group_b.name, group_b.shape, b);
    });
    runs_.clear();
    for (std::size_t i = 0; i < by_name_.size(); ++i) {
      const Group& group = groups_.groups[by_name_[i]];
      if (runs_.empty() || runs_.back().name != group.name)
        runs_.push_back({group.name, i, i, 0, 0});
      NameRun& run = runs_.back();
      run.last = i + 1;
      run.total += group.total_ns;
      run.calls += group.calls;
    }
  }

  void add_rows(std::size_t max_rows, std::uint64_t total, GpuWork& work) {
    find_runs();
    work.distinct_kernels = static_cast<std::int64_t>(runs_.size());
    const std::size_t shown = std::min(max_rows, runs_.size());
    const auto is_first = [&](const NameRun& a, const NameRun& b) {
      if (a.total != b.total)
        return a.total > b.total;
      return text_of(a.name) < text_of(b.name);
    };
    const auto end = runs_.begin() + static_cast<std::ptrdiff_t>(shown);
    std::partial_sort(runs_.begin(), end, runs_.end(), is_first);
    for (std::size_t r = 0; r < shown; ++r)
      work.top_kernels.push_back(row(runs_[r], total));
  }

  KernelRow row(const NameRun& run, std::uint64_t region_total) {
    KernelRow row;
    const KernelGroups::ShownKernel& name = groups_.names[run.name];
    row.name = std::string(text_of(run.name));
    const model::KernelName& kernel_name = session_.kernel_names[name.kernel_name];
    row.short_name = std::string(session_.strings.view(kernel_name.short_name));
    row.nccl = name.nccl;
    row.calls = static_cast<std::int64_t>(run.calls);
    row.total_ns = static_cast<double>(run.total);
    row.share = 0;
    if (region_total > 0)
      row.share = row.total_ns / static_cast<double>(region_total);
    add_shapes(run, row);
    pieces_.clear();
    for (std::size_t i = run.first; i < run.last; ++i)
      pieces_.push_back(times_of(times_.duration, groups_.groups[by_name_[i]]));
    row.duration_ns = spread_of<T>(std::span<const std::span<const T>>(pieces_), scratch_);
    return row;
  }

  /// The number of shapes, and the one of most calls.
  void add_shapes(const NameRun& run, KernelRow& row) const {
    std::uint64_t calls = 0, main_calls = 0;
    std::uint32_t shape = kNone, main_shape = kNone;
    row.shapes = 0;
    for (std::size_t i = run.first; i < run.last; ++i) {  // groups of a shape are adjacent
      const Group& group = groups_.groups[by_name_[i]];
      if (i == run.first || group.shape != shape) {
        ++row.shapes;
        calls = 0;
        shape = group.shape;
      }
      calls += group.calls;
      if (calls > main_calls) {
        main_calls = calls;
        main_shape = shape;
      }
    }
    if (main_shape < session_.kernel_shapes.size())
      row.shape = session_.kernel_shapes[main_shape];
  }

  const Session& session_;
  const KernelGroups& groups_;
  const KernelTimes<T>& times_;
  std::vector<std::span<const T>> pieces_;
  std::vector<T> scratch_;
  std::vector<std::uint32_t> by_name_;
  std::vector<NameRun> runs_;
};

void add_other(const SetSums& sums, GpuWork& work) {
  for (const auto& [kind, sum] : sums.copies) {
    auto row = std::find_if(work.copies_by_kind.begin(),
                            work.copies_by_kind.end(),
                            [k = kind](const auto& r) { return r.kind == k; });
    if (row == work.copies_by_kind.end()) {
      row = std::find_if(work.copies_by_kind.begin(),
                         work.copies_by_kind.end(),
                         [k = kind](const auto& r) { return r.kind > k; });
      row = work.copies_by_kind.insert(row, {kind, 0, 0, 0});
    }
    row->calls += static_cast<std::int64_t>(sum.calls);
    row->bytes += static_cast<double>(sum.bytes);
    row->total_ns += static_cast<double>(sum.ns);
    work.copies += static_cast<std::int64_t>(sum.calls);
    work.copy_bytes += static_cast<double>(sum.bytes);
    work.copy_ns += static_cast<double>(sum.ns);
  }
  work.memsets += static_cast<std::int64_t>(sums.memsets);
  work.syncs += static_cast<std::int64_t>(sums.syncs);
  work.sync_ns += static_cast<double>(sums.sync_ns);
  work.graph_launches += static_cast<std::int64_t>(sums.graph_launches);
}

/// Takes out what would be a zero, or too small, only because the input does not have it.
void leave_out(const model::Unrecorded& unrecorded, GpuWork& work) {
  const GpuWork unknown = unknown_work();
  if (unrecorded.kernels) {
    GpuWork kept = unknown;
    for (const auto field :
         {&GpuWork::copies, &GpuWork::memsets, &GpuWork::syncs, &GpuWork::graph_launches})
      kept.*field = work.*field;
    for (const auto field : {&GpuWork::copy_ns, &GpuWork::copy_bytes, &GpuWork::sync_ns})
      kept.*field = work.*field;
    work = std::move(kept);
  }
  if (unrecorded.copies) {
    for (const auto field : {&GpuWork::copies, &GpuWork::memsets})
      work.*field = unknown.*field;
    constexpr std::array kTimesWithCopies = {&GpuWork::copy_ns,
                                             &GpuWork::copy_bytes,
                                             &GpuWork::copy_busy_ns,
                                             &GpuWork::overlap_ns,
                                             &GpuWork::busy_ns,
                                             &GpuWork::exclusive_busy_ns,
                                             &GpuWork::span_ns,
                                             &GpuWork::idle_ns};
    for (const auto field : kTimesWithCopies)
      work.*field = unknown.*field;
    work.busy_ns_per_occurrence = unknown.busy_ns_per_occurrence;
  }
  if (unrecorded.calls) {
    work.syncs = unknown.syncs;
    work.graph_launches = unknown.graph_launches;
    work.sync_ns = unknown.sync_ns;
  }
}

void report_losses(const KernelGroups& groups,
                   const OtherWork& other,
                   const Contexts& contexts,
                   model::Report& report) {
  const auto add =
      [&](model::LossKind kind, std::uint64_t count, const char* singular, const char* detail) {
        if (count > 0)
          report.losses.push_back({kind, count, base::counted(count, singular) + detail});
      };
  add("kernel_without_launch",
      groups.without_launch,
      "kernel",
      " without a record of the launching call: under unattributed.");
  add("gpu_work_without_launch",
      other.without_launch,
      "GPU operation",
      " (copy, set, synchronization or graph) without a record of the call: under unattributed.");
  add("backward_gpu_work",
      groups.backward + other.backward,
      "GPU operation",
      " with its end before its start: counted without its time.");
  add("foreign_launch",
      contexts.foreign_launches,
      "launch call",
      " of a thread or a process that the recording does not have.");
}

/// Report::processes[].kernels.
void count_kernels(const Session& session, const KernelGroups& groups, model::Report& report) {
  for (std::size_t k = 0; k < session.kernels.size(); ++k) {
    const std::uint32_t stream = session.kernels[k].stream;
    if (stream >= session.streams.size() || groups.of_kernel[k] == kNone)
      continue;
    const std::uint32_t process = session.streams[stream].process;
    if (process < report.processes.size())
      ++report.processes[process].kernels;
  }
}

/// By region: what is not a kernel.
std::vector<GpuWork> works_of_others(const OtherWork& other, const Sets& sets) {
  std::vector<GpuWork> works(sets.regions);
  for (const auto& [set, sums] : other.of_set) {
    for (const SetEntry& entry : sets.of(set))
      add_other(sums, works[entry.region]);
  }
  for (std::uint32_t set = 0; set < other.launch_ns.size(); ++set) {
    for (const SetEntry& entry : sets.of(set))
      works[entry.region].launch_ns += static_cast<double>(other.launch_ns[set]);
  }
  return works;
}

/// The GPU work of regions, from sums by set, groups of kernels and busy times.
class RegionGpuWork {
 public:
  RegionGpuWork(const Regions& regions, const GpuDetails& sums, const OtherWork& other)
      : regions_(regions), session_(regions.session), sums_(sums), other_(other), uses_(uses()) {}

  /// How many groups of kernels count in the region: what its work costs.
  [[nodiscard]] std::size_t group_count(std::size_t r) const { return uses_[r].size(); }

  /// `work`: has what is not a kernel already.
  void add_kernels(std::size_t r, GpuWork& work) const {
    const KernelGroups& groups = sums_.groups;
    const bool is_total = r == sums_.sets.total_region;
    const std::size_t max_rows = is_total ? groups.names.size() : regions_.options.top_kernels;
    if (groups.wide)
      Tables<std::int64_t>(session_, groups, groups.times64).fill(uses_[r], max_rows, work);
    else
      Tables<std::uint32_t>(session_, groups, groups.times32).fill(uses_[r], max_rows, work);
    const RegionBusy& measured = sums_.busy.regions[r];
    work.busy_ns = static_cast<double>(measured.busy);
    work.exclusive_busy_ns = static_cast<double>(measured.exclusive_busy);
    work.copy_busy_ns = static_cast<double>(measured.copies);
    work.overlap_ns = static_cast<double>(measured.overlap);
    if (!other_.launches_timed)
      work.launch_ns = unknown_work().launch_ns;
  }

  /// For the run and what is outside all ranges: the run is its own one occurrence.
  void add_run(std::size_t r, GpuWork& work) const {
    const RegionBusy& measured = sums_.busy.regions[r];
    work.partial = !session_.gpu_pauses.empty() && session_.pc.samples.empty();
    work.idle_ns = static_cast<double>(measured.gaps);
    work.span_ns = static_cast<double>(measured.busy + measured.gaps);
  }

  void add_occurrences(std::size_t r, GpuWork& work) const {
    std::uint64_t gaps = 0, spans = 0;
    for (const std::uint32_t cell : regions_.cells(r)) {
      gaps += sums_.busy.cell_gaps[cell];
      for (const std::uint32_t o : regions_.by_cell.of(cell)) {
        spans += sums_.busy.occurrence_busy[o];
        work.partial |= is_partial(o);
      }
    }
    work.idle_ns = static_cast<double>(gaps);
    work.span_ns = static_cast<double>(gaps + spans);
    const OccurrenceWork occurrences = occurrence_work(regions_, r, sums_.busy, sums_.paused);
    std::vector<std::int64_t> scratch;
    work.recorded_occurrences =
        std::ssize(occurrences.busy_ns) + static_cast<std::int64_t>(occurrences.without.moments.n);
    work.kernel_ns_per_occurrence = spread_of(occurrences.kernel_ns, occurrences.without, scratch);
    work.busy_ns_per_occurrence = spread_of(occurrences.busy_ns, occurrences.without, scratch);
  }

 private:
  [[nodiscard]] std::vector<std::vector<GroupUse>> uses() const {
    std::vector<std::vector<GroupUse>> uses(sums_.sets.regions);
    for (std::uint32_t g = 0; g < sums_.groups.groups.size(); ++g) {
      for (const SetEntry& entry : sums_.sets.of(sums_.groups.groups[g].set))
        uses[entry.region].push_back({g, entry.exclusive, entry.inherited});
    }
    return uses;
  }

  /// Nothing was recorded of it, or not all; kernels whose program counter was sampled are, one
  /// after the other.
  [[nodiscard]] bool is_partial(std::uint32_t occurrence) const {
    const bool is_paused = !sums_.paused.empty() && sums_.paused[occurrence] != 0;
    return is_paused && session_.pc.samples.empty();
  }

  const Regions& regions_;
  const Session& session_;
  const GpuDetails& sums_;
  const OtherWork& other_;
  const std::vector<std::vector<GroupUse>> uses_;
};

/// The report has all kernels of the run, its total the first ones.
void set_total(GpuWork total, std::size_t top_kernels, model::Report& report) {
  report.kernels = total.top_kernels;
  if (total.top_kernels.size() > top_kernels)
    total.top_kernels.resize(top_kernels);
  report.total = std::move(total);
}

/// PyTorch's annotations of a GPU's own timeline launch nothing: what ran in them is not known.
bool is_annotation(const Session& session, const model::Region& region) {
  return !session.processes.empty() && session.processes.front().operators &&
         region.domain == "gpu_annotation";
}

}  // namespace

OccurrenceWork occurrence_work(const Regions& regions,
                               std::size_t r,
                               const Busy& busy,
                               const std::vector<char>& paused) {
  OccurrenceWork out;
  for (const std::uint32_t cell : regions.cells(r)) {
    if (const UnlistedOfCell* unlisted = regions.tree.unlisted(cell))
      out.without.add(0, unlisted->count());
    for (const std::uint32_t o : regions.by_cell.of(cell)) {
      const std::uint32_t range = regions.tree.range_of[o];  // none: a replay
      if (!paused.empty() && paused[o] != 0)
        continue;
      if (range != kNone && regions.session.ranges[range].end_ns == kOpen)
        continue;
      out.kernel_ns.push_back(static_cast<std::int64_t>(busy.occurrence_kernel[o]));
      out.busy_ns.push_back(static_cast<std::int64_t>(busy.occurrence_busy[o]));
    }
  }
  return out;
}

std::vector<std::uint64_t> add_gpu_work(const Regions& regions,
                                        const Contexts& contexts,
                                        const std::vector<std::vector<std::uint32_t>>& sampled,
                                        const std::vector<char>& chosen_kernels,
                                        model::Report& report,
                                        GpuDetails* details) {
  const Session& session = regions.session;
  const Options& options = regions.options;
  const Tree& tree = regions.tree;
  GpuDetails sums;
  sums.sets = build_sets(tree, contexts, regions.keys);
  const Sets& sets = sums.sets;
  sums.groups = group_kernels(session, contexts, sets, chosen_kernels, options.threads);
  const OtherWork other = OtherWorkSums(session, contexts, sets).run();
  sums.busy = measure_busy(session, tree, contexts, sets, sums.groups, options.threads);
  report_losses(sums.groups, other, contexts, report);
  count_kernels(session, sums.groups, report);
  sums.paused = touched_by_pause(session, tree);

  const RegionGpuWork region_work(regions, sums, other);
  std::vector<GpuWork> works = works_of_others(other, sets);
  const auto order =
      largest_first(sets.regions, [&](std::size_t r) { return region_work.group_count(r); });
  const int threads = threads_for(session.kernels.size(), options.threads);
  const bool has_all_work = !session.unrecorded.kernels && !session.unrecorded.copies;
  base::parallel_for(sets.regions, threads, [&](std::size_t task) {
    const std::uint32_t r = order[task];
    GpuWork& work = works[r];
    region_work.add_kernels(r, work);
    const bool is_run = r >= regions.keys.size();
    if (is_run)
      region_work.add_run(r, work);
    else
      region_work.add_occurrences(r, work);
    leave_out(session.unrecorded, work);
    if (is_run)
      return;
    model::Region& region = report.regions[r];
    for (std::size_t s = 0; has_all_work && s < sampled[r].size(); ++s)
      region.samples[s].busy_ns = static_cast<double>(sums.busy.occurrence_busy[sampled[r][s]]);
    if (!is_annotation(session, region))
      region.gpu = std::move(work);
  });
  report.unattributed = std::move(works[sets.unattributed_region]);
  set_total(std::move(works[sets.total_region]), options.top_kernels, report);
  add_samples(session, contexts, sets, sums.groups, report);
  add_stalls(session, contexts, sets, report);
  if (details == nullptr)
    return std::move(sums.busy.occurrence_busy);
  *details = std::move(sums);
  return details->busy.occurrence_busy;
}

void add_projections(const Regions& regions, model::Report& report) {
  std::vector<std::int64_t> span_of(regions.session.ranges.size(), -1);
  for (const model::Projection& projection : regions.session.projections)
    span_of[projection.range] = projection.span_ns;
  for (std::size_t r = 0; r < regions.keys.size(); ++r) {
    std::int64_t span = -1;
    regions.for_each_closed(r, [&](std::uint32_t o, const model::Range&) {
      const std::int64_t projected_ns = span_of[regions.tree.range_of[o]];
      if (projected_ns >= 0)
        span = std::max<std::int64_t>(span, 0) + projected_ns;
    });
    if (span < 0)
      continue;
    if (!report.regions[r].gpu)
      report.regions[r].gpu = unknown_work();
    report.regions[r].gpu->span_ns = static_cast<double>(span);
  }
}

}  // namespace rangescope::analyze
