#include "model/measure.hpp"

#include <array>

#include "base/text.hpp"

namespace rangescope::model {
namespace {

using Value = std::optional<double>;

/// NaN and negative counts stand for what an input without a timeline cannot say.
Value known(double value) {
  return value != value ? Value{} : Value(value);
}
Value known(std::int64_t count) {
  return count < 0 ? Value{} : Value(static_cast<double>(count));
}

template <class F>
Value gpu(const Region& region, F field) {
  return region.gpu ? known(field(*region.gpu)) : Value{};
}

#define RANGESCOPE_GPU(field) [](const Region& r) { return gpu(r, [](const GpuWork& g) { return g.field; }); }
#define RANGESCOPE_REGION(field) [](const Region& r) -> Value { return known(r.field); }
/// A range that never ended has no wall time: not 0.
#define RANGESCOPE_WALL(field) [](const Region& r) { return r.occurrences == 0 ? Value{} : known(r.wall.field); }

Value launch_latency(const Region& region, double Spread::*field) {
  if (!region.gpu || !region.gpu->launch_latency_ns) return {};
  return (*region.gpu->launch_latency_ns).*field;
}

Value busy_share(const Region& region) {
  if (!region.gpu) return {};
  const double busy = region.gpu->busy_ns, wall = region.wall.inclusive_ns;
  if (region.gpu->partial)
    return region.steady && region.gpu->recorded_occurrences > 0 ? region.steady->busy_share : Value{};
  return busy >= 0 && wall > 0 ? Value(busy / wall) : Value{};
}

Value across(const Region& region, double Across::*field) {
  return region.across ? Value((*region.across).*field) : Value{};
}

Value over_ranks(const Region& region, double OverRanks::*field) {
  return region.ranks ? Value((*region.ranks).*field) : Value{};
}

Value communication(const Region& region, double Communication::*field) {
  return region.communication ? Value((*region.communication).*field) : Value{};
}

Value utilization(const Region& region, std::optional<double> Utilization::*field) {
  return region.utilization ? (*region.utilization).*field : Value{};
}

constexpr std::string_view kEach = "NVTX, each process or thread";
constexpr std::string_view kOverRanks = "NVTX, each rank of a job";
constexpr std::string_view kCalls = "joined calls of NCCL and MPI";
constexpr std::string_view kCounters = "hardware counters";
constexpr std::string_view kNvtx = "NVTX";
constexpr std::string_view kActivity = "CUPTI activity";

constexpr auto kMeasures = std::to_array<Measure>({
    {"occurrences", "count", Unit::kCount, kNvtx, "instances of the range path that ended",
     RANGESCOPE_REGION(occurrences)},
    {"unclosed", "unclosed", Unit::kCount, kNvtx, "instances that began and never ended; not in the statistics",
     RANGESCOPE_REGION(unclosed)},
    {"threads", "threads", Unit::kCount, kNvtx, "threads that opened the range", RANGESCOPE_REGION(threads)},
    {"processes", "procs", Unit::kCount, kNvtx, "processes that opened the range", RANGESCOPE_REGION(processes)},
    {"wall_ns.inclusive", "wall", Unit::kNs, kNvtx, "sum of end - start over instances", RANGESCOPE_WALL(inclusive_ns)},
    {"wall_ns.exclusive", "self time", Unit::kNs, kNvtx, "inclusive - sum of inclusive of child regions",
     RANGESCOPE_WALL(exclusive_ns)},
    {"wall_ns.min", "min", Unit::kNs, kNvtx, "shortest instance", RANGESCOPE_WALL(per_occurrence_ns.min)},
    {"wall_ns.median", "median", Unit::kNs, kNvtx, "median of the instances",
     RANGESCOPE_WALL(per_occurrence_ns.median)},
    {"wall_ns.p95", "p95", Unit::kNs, kNvtx, "95th percentile of the instances (linear interpolation)",
     RANGESCOPE_WALL(per_occurrence_ns.p95)},
    {"wall_ns.max", "max", Unit::kNs, kNvtx, "longest instance", RANGESCOPE_WALL(per_occurrence_ns.max)},
    {"wall_ns.mean", "mean", Unit::kNs, kNvtx, "inclusive / instances", RANGESCOPE_WALL(per_occurrence_ns.mean)},
    {"wall_ns.stddev", "stddev", Unit::kNs, kNvtx, "sample standard deviation of the instances (n - 1)",
     RANGESCOPE_WALL(per_occurrence_ns.stddev)},
    {"wall_ns.profiler", "profiler", Unit::kNs, kNvtx,
     "time that measuring added: counters, and recording of short ranges; in none of the others",
     RANGESCOPE_WALL(profiler_ns)},
    {"wall_ns.share", "share", Unit::kShare, kNvtx, "inclusive / duration of the run", RANGESCOPE_WALL(share)},
    {"across.min_ns", "least", Unit::kNs, kEach, "shortest of the processes' (else threads') inclusive wall times",
     [](const Region& r) { return across(r, &Across::min_ns); }},
    {"across.max_ns", "most", Unit::kNs, kEach, "longest of the processes' (else threads') inclusive wall times",
     [](const Region& r) { return across(r, &Across::max_ns); }},
    {"across.imbalance", "imbalance", Unit::kShare, kEach, "longest / mean of them - 1",
     [](const Region& r) { return across(r, &Across::imbalance); }},
    {"ranks.mean_ns", "rank mean", Unit::kNs, kOverRanks, "mean over ranks of their inclusive wall times",
     [](const Region& r) { return over_ranks(r, &OverRanks::mean_ns); }},
    {"ranks.min_ns", "rank min", Unit::kNs, kOverRanks, "the shortest of them",
     [](const Region& r) { return over_ranks(r, &OverRanks::min_ns); }},
    {"ranks.max_ns", "rank max", Unit::kNs, kOverRanks, "the longest of them",
     [](const Region& r) { return over_ranks(r, &OverRanks::max_ns); }},
    {"ranks.stddev_ns", "rank stddev", Unit::kNs, kOverRanks, "their sample standard deviation (n - 1)",
     [](const Region& r) { return over_ranks(r, &OverRanks::stddev_ns); }},
    {"ranks.imbalance", "rank imbalance", Unit::kShare, kOverRanks, "longest / mean of them - 1",
     [](const Region& r) { return over_ranks(r, &OverRanks::imbalance); }},
    {"communication.time_ns", "comm", Unit::kNs, kCalls,
     "time of NCCL's kernels and of MPI's functions, summed over ranks: transfer + wait + overlap",
     [](const Region& r) { return communication(r, &Communication::time_ns); }},
    {"communication.transfer_ns", "comm transfer", Unit::kNs, kCalls,
     "of it, what the last rank to come takes, while no other kernel ran on the GPU",
     [](const Region& r) { return communication(r, &Communication::transfer_ns); }},
    {"communication.wait_ns", "comm wait", Unit::kNs, kCalls, "of it, waiting for ranks that came later, so too",
     [](const Region& r) { return communication(r, &Communication::wait_ns); }},
    {"communication.overlap_ns", "comm overlapped", Unit::kNs, kCalls,
     "of it, overlapped with other kernels on the same GPU",
     [](const Region& r) { return communication(r, &Communication::overlap_ns); }},
    {"gpu.kernels", "kernels", Unit::kCount, kActivity,
     "kernel executions launched inside the range, children included", RANGESCOPE_GPU(kernels)},
    {"gpu.exclusive_kernels", "kernels self", Unit::kCount, kActivity, "kernels not launched inside a child region",
     RANGESCOPE_GPU(exclusive_kernels)},
    {"gpu.inherited_kernels", "inherited", Unit::kCount, kActivity,
     "kernels launched by a thread that inherited the range", RANGESCOPE_GPU(inherited_kernels)},
    {"gpu.graph_kernels", "graph kernels", Unit::kCount, kActivity, "kernels run by CUDA graph launches",
     RANGESCOPE_GPU(graph_kernels)},
    {"gpu.graph_launches", "graphs", Unit::kCount, kActivity, "CUDA graph launches", RANGESCOPE_GPU(graph_launches)},
    {"gpu.distinct_kernels", "distinct", Unit::kCount, kActivity, "distinct kernel names",
     RANGESCOPE_GPU(distinct_kernels)},
    {"gpu.kernel_ns", "kernel time", Unit::kNs, kActivity, "sum of kernel durations", RANGESCOPE_GPU(kernel_ns)},
    {"gpu.exclusive_kernel_ns", "kernel self", Unit::kNs, kActivity, "kernel_ns of exclusive_kernels",
     RANGESCOPE_GPU(exclusive_kernel_ns)},
    {"gpu.busy_ns", "GPU busy", Unit::kNs, kActivity,
     "union of kernel, copy and set intervals per device, summed over devices", RANGESCOPE_GPU(busy_ns)},
    {"gpu.busy_share", "GPU busy %", Unit::kShare, kActivity,
     "busy_ns / wall_ns.inclusive; of steady instances where the timeline was paused for counters", busy_share},
    {"gpu.share", "GPU share", Unit::kShare, kActivity, "kernel_ns / kernel_ns of the whole run",
     RANGESCOPE_GPU(share)},
    {"gpu.launch_ns", "launching", Unit::kNs, kActivity, "CPU time inside the calls that launch kernels and graphs",
     RANGESCOPE_GPU(launch_ns)},
    {"gpu.exclusive_busy_ns", "busy self", Unit::kNs, kActivity, "busy_ns of work not launched inside a child region",
     RANGESCOPE_GPU(exclusive_busy_ns)},
    {"gpu.span_ns", "GPU span", Unit::kNs, kActivity, "sum over instances of last end - first start on the GPU",
     RANGESCOPE_GPU(span_ns)},
    {"gpu.idle_ns", "GPU idle", Unit::kNs, kActivity, "span_ns - busy_ns within the spans", RANGESCOPE_GPU(idle_ns)},
    {"gpu.copies", "copies", Unit::kCount, kActivity, "memory copies", RANGESCOPE_GPU(copies)},
    {"gpu.memsets", "memsets", Unit::kCount, kActivity, "memsets", RANGESCOPE_GPU(memsets)},
    {"gpu.copy_ns", "copy time", Unit::kNs, kActivity, "sum of copy durations", RANGESCOPE_GPU(copy_ns)},
    {"gpu.copy_bytes", "copied", Unit::kBytes, kActivity, "bytes copied", RANGESCOPE_GPU(copy_bytes)},
    {"gpu.overlap_ns", "overlap", Unit::kNs, kActivity, "time in which a copy and a kernel of the region ran at once",
     RANGESCOPE_GPU(overlap_ns)},
    {"gpu.syncs", "syncs", Unit::kCount, kActivity, "synchronizations", RANGESCOPE_GPU(syncs)},
    {"gpu.sync_ns", "sync", Unit::kNs, kActivity, "CPU time spent waiting for the GPU", RANGESCOPE_GPU(sync_ns)},
    {"gpu.nccl_kernels", "NCCL", Unit::kCount, kActivity, "kernels whose name starts with ncclKernel or ncclDevKernel",
     RANGESCOPE_GPU(nccl_kernels)},
    {"gpu.nccl_ns", "NCCL time", Unit::kNs, kActivity, "sum of NCCL kernel durations", RANGESCOPE_GPU(nccl_ns)},
    {"gpu.launch_latency_ns.median", "latency", Unit::kNs, kActivity, "median of kernel start - launch call start",
     [](const Region& r) { return launch_latency(r, &Spread::median); }},
    {"gpu.launch_latency_ns.p95", "latency p95", Unit::kNs, kActivity,
     "95th percentile of kernel start - launch call start",
     [](const Region& r) { return launch_latency(r, &Spread::p95); }},
    {"utilization.executed", "util", Unit::kShare, kCounters,
     "sum over precisions of executed FLOP / peak FLOP/s, over GPU busy time; padding of tiles is executed",
     [](const Region& r) { return utilization(r, &Utilization::executed); }},
    {"utilization.useful", "MFU", Unit::kShare, "--flops",
     "useful FLOP per instance / (peak FLOP/s of the precision used most * wall time)",
     [](const Region& r) { return utilization(r, &Utilization::useful); }},
    {"utilization.bandwidth", "MBU", Unit::kShare, "--flops auto",
     "bytes of weights and cache per instance / (peak byte/s of the memory * wall time)",
     [](const Region& r) { return utilization(r, &Utilization::bandwidth); }},
});

#undef RANGESCOPE_GPU
#undef RANGESCOPE_WALL
#undef RANGESCOPE_REGION

}  // namespace

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::kNs: return "ns";
    case Unit::kCount: return "count";
    case Unit::kBytes: return "byte";
    case Unit::kShare: return "ratio";
  }
  return "";
}

std::span<const Measure> measures() {
  return kMeasures;
}

const Measure* find_measure(std::string_view tag) {
  for (const Measure& measure : kMeasures) {
    if (measure.tag == tag || measure.title == tag) return &measure;
  }
  return nullptr;
}

std::optional<double> value_of(const Region& region, std::string_view tag) {
  if (const Measure* measure = find_measure(tag)) return measure->get(region);
  constexpr std::string_view kPrefix = "metrics.";
  if (tag.starts_with(kPrefix)) tag.remove_prefix(kPrefix.size());
  const auto found = region.metrics.find(std::string(tag));
  if (found == region.metrics.end() || !found->second.absent.empty()) return std::nullopt;
  return found->second.value;
}

std::vector<std::string> measure_tags() {
  std::vector<std::string> tags;
  for (const Measure& measure : kMeasures) tags.emplace_back(measure.tag);
  return tags;
}

std::string path_text(const std::string& domain, const std::vector<std::string>& path) {
  return (domain.empty() ? std::string() : domain + "@") + base::join(path, " > ");
}

std::string path_text(const Region& region) {
  return path_text(region.domain, region.path);
}

bool adds_up(const Measure& measure) {
  if (measure.tag == "wall_ns.inclusive" || measure.tag == "wall_ns.exclusive") return true;
  if (measure.tag.starts_with("communication.")) return true;
  return measure.tag.starts_with("gpu.") && measure.tag != "gpu.distinct_kernels" && measure.tag != "gpu.share" &&
         measure.tag != "gpu.busy_share" && !measure.tag.starts_with("gpu.launch_latency_ns.");
}

}  // namespace rangescope::model
