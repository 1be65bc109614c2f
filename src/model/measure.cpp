#include "model/measure.hpp"

#include "base/text.hpp"

namespace rangescope::model {
namespace {

using Value = std::optional<double>;
constexpr std::string_view kUnits[] = {"ns", "count", "byte", "ratio"};

/// NaN and negative counts: an input without a timeline does not have the value.
Value known(double value) {
  return value != value ? Value{} : Value(value);
}
Value known(std::int64_t count) {
  return count < 0 ? Value{} : Value(static_cast<double>(count));
}

Value known(Value value) {
  return value;
}

/// A number of a part that not every region has.
template <auto Part, auto Field>
Value of(const Region& region) {
  return region.*Part ? known((*(region.*Part)).*Field) : Value{};
}

#define RANGESCOPE_REGION(field) [](const Region& r) -> Value { return known(r.field); }
/// A range that never ended has no wall time: not 0.
#define RANGESCOPE_WALL(field) \
  [](const Region& r) { return r.occurrences == 0 ? Value{} : known(r.wall.field); }

Value launch_latency(const Region& region, double Spread::*field) {
  if (!region.gpu || !region.gpu->launch_latency_ns)
    return {};
  return (*region.gpu->launch_latency_ns).*field;
}

Value busy_share(const Region& region) {
  if (!region.gpu)
    return {};
  const double busy = region.gpu->busy_ns, wall = region.wall.inclusive_ns;
  if (region.gpu->partial) {
    const bool has_recorded = region.steady && region.gpu->recorded_occurrences > 0;
    return has_recorded ? region.steady->busy_share : Value{};
  }
  return busy >= 0 && wall > 0 ? Value(busy / wall) : Value{};
}

using enum Unit;

/// Tag, title (head of a column), unit, source, formula, how to get it; in the order in which a
/// full table shows them.
// clang-format off
constexpr Measure kMeasures[] = {
    {"occurrences", "count", kCount, "NVTX", "instances of the range path that ended",
     [](const Region& r) -> Value { return r.sampled() ? Value{} : known(r.occurrences); }},
    {"unclosed", "unclosed", kCount, "NVTX",
     "instances that started and never ended; not in the statistics", RANGESCOPE_REGION(unclosed)},
    {"threads", "threads", kCount, "NVTX", "threads that opened the range",
     RANGESCOPE_REGION(threads)},
    {"processes", "procs", kCount, "NVTX", "processes that opened the range",
     RANGESCOPE_REGION(processes)},
    {"wall_ns.inclusive", "wall", kNs, "NVTX", "sum of end - start over instances",
     RANGESCOPE_WALL(inclusive_ns)},
    {"wall_ns.exclusive", "self time", kNs, "NVTX", "inclusive - sum of inclusive of child regions",
     RANGESCOPE_WALL(exclusive_ns)},
    {"wall_ns.min", "min", kNs, "NVTX", "shortest instance",
     RANGESCOPE_WALL(per_occurrence_ns.min)},
    {"wall_ns.median", "median", kNs, "NVTX", "median of the instances",
     RANGESCOPE_WALL(per_occurrence_ns.median)},
    {"wall_ns.p95", "p95", kNs, "NVTX", "95th percentile of the instances (linear interpolation)",
     RANGESCOPE_WALL(per_occurrence_ns.p95)},
    {"wall_ns.max", "max", kNs, "NVTX", "longest instance", RANGESCOPE_WALL(per_occurrence_ns.max)},
    {"wall_ns.mean", "mean", kNs, "NVTX", "inclusive / instances",
     RANGESCOPE_WALL(per_occurrence_ns.mean)},
    {"wall_ns.stddev", "stddev", kNs, "NVTX", "sample standard deviation of the instances (n - 1)",
     RANGESCOPE_WALL(per_occurrence_ns.stddev)},
    {"wall_ns.profiler", "profiler", kNs, "NVTX",
     "time added by measuring (counters, recording of short ranges); not in the other columns",
     RANGESCOPE_WALL(profiler_ns)},
    {"wall_ns.share", "share", kShare, "NVTX", "inclusive / duration of the run",
     RANGESCOPE_WALL(share)},
    {"across.min_ns", "least", kNs, "NVTX, each process or thread",
     "shortest of the processes' (else threads') times in which it was open",
     of<&Region::across, &Across::min_ns>},
    {"across.max_ns", "most", kNs, "NVTX, each process or thread",
     "longest of the processes' (else threads') times in which it was open",
     of<&Region::across, &Across::max_ns>},
    {"across.imbalance", "imbalance", kShare, "NVTX, each process or thread",
     "longest / mean of them - 1", of<&Region::across, &Across::imbalance>},
    {"ranks.mean_ns", "rank mean", kNs, "NVTX, each rank of a job",
     "mean over ranks of their inclusive wall times", of<&Region::ranks, &OverRanks::mean_ns>},
    {"ranks.min_ns", "rank min", kNs, "NVTX, each rank of a job", "the shortest of them",
     of<&Region::ranks, &OverRanks::min_ns>},
    {"ranks.max_ns", "rank max", kNs, "NVTX, each rank of a job", "the longest of them",
     of<&Region::ranks, &OverRanks::max_ns>},
    {"ranks.stddev_ns", "rank stddev", kNs, "NVTX, each rank of a job",
     "their sample standard deviation (n - 1)", of<&Region::ranks, &OverRanks::stddev_ns>},
    {"ranks.imbalance", "rank imbalance", kShare, "NVTX, each rank of a job",
     "longest / mean of them - 1", of<&Region::ranks, &OverRanks::imbalance>},
    {"communication.time_ns", "comm", kNs, "joined calls of NCCL and MPI",
     "time of NCCL's kernels and of MPI's functions, summed over ranks: transfer + wait + overlap",
     of<&Region::communication, &Communication::time_ns>},
    {"communication.transfer_ns", "comm transfer", kNs, "joined calls of NCCL and MPI",
     "of it, the time of the last rank to arrive, while no other kernel ran on the GPU",
     of<&Region::communication, &Communication::transfer_ns>},
    {"communication.wait_ns", "comm wait", kNs, "joined calls of NCCL and MPI",
     "of it, waiting for ranks that arrived later, while no other kernel ran on the GPU",
     of<&Region::communication, &Communication::wait_ns>},
    {"communication.overlap_ns", "comm overlapped", kNs, "joined calls of NCCL and MPI",
     "of it, overlapped with other kernels on the same GPU",
     of<&Region::communication, &Communication::overlap_ns>},
    {"gpu.kernels", "kernels", kCount, "CUPTI activity",
     "kernel executions launched inside the range, children included",
     of<&Region::gpu, &GpuWork::kernels>},
    {"gpu.exclusive_kernels", "kernels self", kCount, "CUPTI activity",
     "kernels not launched inside a child region", of<&Region::gpu, &GpuWork::exclusive_kernels>},
    {"gpu.inherited_kernels", "inherited", kCount, "CUPTI activity",
     "kernels launched by a thread that inherited the range",
     of<&Region::gpu, &GpuWork::inherited_kernels>},
    {"gpu.graph_kernels", "graph kernels", kCount, "CUPTI activity",
     "kernels run by CUDA graph launches", of<&Region::gpu, &GpuWork::graph_kernels>},
    {"gpu.graph_launches", "graphs", kCount, "CUPTI activity", "CUDA graph launches",
     of<&Region::gpu, &GpuWork::graph_launches>},
    {"gpu.distinct_kernels", "distinct", kCount, "CUPTI activity", "distinct kernel names",
     of<&Region::gpu, &GpuWork::distinct_kernels>},
    {"gpu.kernel_ns", "kernel time", kNs, "CUPTI activity", "sum of kernel durations",
     of<&Region::gpu, &GpuWork::kernel_ns>},
    {"gpu.exclusive_kernel_ns", "kernel self", kNs, "CUPTI activity",
     "kernel_ns of exclusive_kernels", of<&Region::gpu, &GpuWork::exclusive_kernel_ns>},
    {"gpu.busy_ns", "GPU busy", kNs, "CUPTI activity",
     "union of kernel, copy and memset intervals per device, summed over devices",
     of<&Region::gpu, &GpuWork::busy_ns>},
    {"gpu.busy_share", "GPU busy %", kShare, "CUPTI activity",
     "busy_ns / wall_ns.inclusive; in steady state where the timeline was paused for counters",
     busy_share},
    {"gpu.share", "GPU share", kShare, "CUPTI activity", "kernel_ns / kernel_ns of the whole run",
     of<&Region::gpu, &GpuWork::share>},
    {"gpu.launch_ns", "launching", kNs, "CUPTI activity",
     "CPU time inside the calls that launch kernels and graphs",
     of<&Region::gpu, &GpuWork::launch_ns>},
    {"gpu.exclusive_busy_ns", "busy self", kNs, "CUPTI activity",
     "busy_ns of work not launched inside a child region",
     of<&Region::gpu, &GpuWork::exclusive_busy_ns>},
    {"gpu.span_ns", "GPU span", kNs, "CUPTI activity",
     "sum over instances of last end - first start on the GPU",
     of<&Region::gpu, &GpuWork::span_ns>},
    {"gpu.idle_ns", "GPU idle", kNs, "CUPTI activity", "span_ns - busy_ns within the spans",
     of<&Region::gpu, &GpuWork::idle_ns>},
    {"gpu.copies", "copies", kCount, "CUPTI activity", "memory copies",
     of<&Region::gpu, &GpuWork::copies>},
    {"gpu.memsets", "memsets", kCount, "CUPTI activity", "memsets",
     of<&Region::gpu, &GpuWork::memsets>},
    {"gpu.copy_ns", "copy time", kNs, "CUPTI activity", "sum of copy durations",
     of<&Region::gpu, &GpuWork::copy_ns>},
    {"gpu.copy_bytes", "copied", kBytes, "CUPTI activity", "bytes copied",
     of<&Region::gpu, &GpuWork::copy_bytes>},
    {"gpu.overlap_ns", "overlap", kNs, "CUPTI activity",
     "time in which a copy and a kernel of the region ran at once",
     of<&Region::gpu, &GpuWork::overlap_ns>},
    {"gpu.syncs", "syncs", kCount, "CUPTI activity", "synchronizations",
     of<&Region::gpu, &GpuWork::syncs>},
    {"gpu.sync_ns", "sync", kNs, "CUPTI activity", "CPU time spent waiting for the GPU",
     of<&Region::gpu, &GpuWork::sync_ns>},
    {"gpu.nccl_kernels", "NCCL", kCount, "CUPTI activity",
     "kernels of NCCL: their names start with nccl", of<&Region::gpu, &GpuWork::nccl_kernels>},
    {"gpu.nccl_ns", "NCCL time", kNs, "CUPTI activity", "sum of NCCL kernel durations",
     of<&Region::gpu, &GpuWork::nccl_ns>},
    {"gpu.launch_latency_ns.median", "latency", kNs, "CUPTI activity",
     "median of kernel start - launch call start",
     [](const Region& r) { return launch_latency(r, &Spread::median); }},
    {"gpu.launch_latency_ns.p95", "latency p95", kNs, "CUPTI activity",
     "95th percentile of kernel start - launch call start",
     [](const Region& r) { return launch_latency(r, &Spread::p95); }},
    {"utilization.executed", "util", kShare, "hardware counters",
     "sum over precisions of executed FLOP / peak FLOP/s, over GPU busy time; padding of tiles is "
     "executed",
     of<&Region::utilization, &Utilization::executed>},
    {"utilization.useful", "MFU", kShare, "--flops",
     "useful FLOP per instance / (peak FLOP/s of the precision used most * wall time; of a module: "
     "GPU busy time)",
     of<&Region::utilization, &Utilization::useful>},
    {"utilization.bandwidth", "MBU", kShare, "--flops auto",
     "bytes of weights and cache per instance / (peak byte/s of the memory * wall time)",
     of<&Region::utilization, &Utilization::bandwidth>},
    {"memory.peak_bytes", "peak memory", kBytes, "allocator", "most in use on one GPU",
     of<&Region::memory, &RegionMemory::peak_bytes>},
    {"memory.allocated_bytes", "allocated", kBytes, "allocator", "GPU memory allocated inside",
     of<&Region::memory, &RegionMemory::allocated_bytes>},
    {"memory.allocations", "allocations", kCount, "allocator", "allocations of GPU memory inside",
     of<&Region::memory, &RegionMemory::allocations>},
    {"memory.held_bytes", "held after", kBytes, "allocator", "allocated and not freed inside",
     of<&Region::memory, &RegionMemory::held_bytes>},
    {"cuda_memory.allocations", "CUDA allocs", kCount, "CUPTI memory", "calls that took memory",
     of<&Region::cuda_memory, &RegionCudaMemory::allocations>},
    {"cuda_memory.frees", "CUDA frees", kCount, "CUPTI memory", "calls that gave it back",
     of<&Region::cuda_memory, &RegionCudaMemory::frees>},
    {"cuda_memory.allocated_bytes", "CUDA allocated", kBytes, "CUPTI memory", "of any kind",
     of<&Region::cuda_memory, &RegionCudaMemory::allocated_bytes>},
    {"cuda_memory.call_ns", "alloc calls", kNs, "CUPTI memory", "time in these calls",
     of<&Region::cuda_memory, &RegionCudaMemory::call_ns>},
    {"cuda_memory.peak_bytes", "CUDA peak", kBytes, "CUPTI memory", "most in use on one GPU",
     of<&Region::cuda_memory, &RegionCudaMemory::peak_bytes>},
    {"cuda_memory.kept_bytes", "never freed", kBytes, "CUPTI memory", "taken inside and not freed",
     of<&Region::cuda_memory, &RegionCudaMemory::kept_bytes>},
};
// clang-format on

#undef RANGESCOPE_WALL
#undef RANGESCOPE_REGION

}  // namespace

std::string_view unit_name(Unit unit) {
  return kUnits[static_cast<std::size_t>(unit)];
}

std::span<const Measure> measures() {
  return kMeasures;
}

const Measure* find_measure(std::string_view tag) {
  for (const Measure& measure : measures()) {
    if (measure.tag == tag || measure.title == tag)
      return &measure;
  }
  return nullptr;
}

std::optional<double> value_of(const Region& region, std::string_view tag) {
  if (const Measure* measure = find_measure(tag))
    return measure->get(region);
  constexpr std::string_view kPrefix = "metrics.";
  if (tag.starts_with(kPrefix))
    tag.remove_prefix(kPrefix.size());
  const Metric* found = known_metric(region.metrics, std::string(tag));
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

std::vector<std::string> measure_tags() {
  std::vector<std::string> tags;
  for (const Measure& measure : measures())
    tags.emplace_back(measure.tag);
  return tags;
}

std::string path_text(const std::string& domain, const std::vector<std::string>& path) {
  return (domain.empty() ? std::string() : domain + "@") + base::join(path, " > ");
}

std::string path_text(const Region& region) {
  return path_text(region.domain, region.path);
}

bool is_counted(const Measure& measure) {
  if (measure.tag == "cuda_memory.call_ns")
    return false;
  return measure.tag.starts_with("memory.") || measure.tag.starts_with("cuda_memory.");
}

bool adds_up(const Measure& measure) {
  if (measure.tag == "wall_ns.inclusive" || measure.tag == "wall_ns.exclusive")
    return true;
  if (measure.tag.starts_with("communication."))
    return true;
  if (measure.tag == "memory.allocated_bytes" || measure.tag == "memory.allocations")
    return true;
  if (measure.tag.starts_with("cuda_memory."))
    return measure.tag != "cuda_memory.peak_bytes";
  return measure.tag.starts_with("gpu.") && measure.tag != "gpu.distinct_kernels" &&
         measure.tag != "gpu.share" && measure.tag != "gpu.busy_share" &&
         !measure.tag.starts_with("gpu.launch_latency_ns.");
}

}  // namespace rangescope::model
