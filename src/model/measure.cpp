#include "model/measure.hpp"

#include "base/embedded.hpp"

RANGESCOPE_EMBED(measures, RANGESCOPE_TSV);

namespace rangescope::model {
namespace {

using Value = std::optional<double>;
constexpr std::string_view kUnits[] = {"ns", "count", "byte", "ratio"};

/// NaN and negative counts stand for what an input without a timeline cannot say.
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

/// How to get each of the table.
constexpr std::pair<std::string_view, Value (*)(const Region&)> kGetters[] = {
    {"occurrences", RANGESCOPE_REGION(occurrences)},
    {"unclosed", RANGESCOPE_REGION(unclosed)},
    {"threads", RANGESCOPE_REGION(threads)},
    {"processes", RANGESCOPE_REGION(processes)},
    {"wall_ns.inclusive", RANGESCOPE_WALL(inclusive_ns)},
    {"wall_ns.exclusive", RANGESCOPE_WALL(exclusive_ns)},
    {"wall_ns.min", RANGESCOPE_WALL(per_occurrence_ns.min)},
    {"wall_ns.median", RANGESCOPE_WALL(per_occurrence_ns.median)},
    {"wall_ns.p95", RANGESCOPE_WALL(per_occurrence_ns.p95)},
    {"wall_ns.max", RANGESCOPE_WALL(per_occurrence_ns.max)},
    {"wall_ns.mean", RANGESCOPE_WALL(per_occurrence_ns.mean)},
    {"wall_ns.stddev", RANGESCOPE_WALL(per_occurrence_ns.stddev)},
    {"wall_ns.profiler", RANGESCOPE_WALL(profiler_ns)},
    {"wall_ns.share", RANGESCOPE_WALL(share)},
    {"across.min_ns", of<&Region::across, &Across::min_ns>},
    {"across.max_ns", of<&Region::across, &Across::max_ns>},
    {"across.imbalance", of<&Region::across, &Across::imbalance>},
    {"ranks.mean_ns", of<&Region::ranks, &OverRanks::mean_ns>},
    {"ranks.min_ns", of<&Region::ranks, &OverRanks::min_ns>},
    {"ranks.max_ns", of<&Region::ranks, &OverRanks::max_ns>},
    {"ranks.stddev_ns", of<&Region::ranks, &OverRanks::stddev_ns>},
    {"ranks.imbalance", of<&Region::ranks, &OverRanks::imbalance>},
    {"communication.time_ns", of<&Region::communication, &Communication::time_ns>},
    {"communication.transfer_ns", of<&Region::communication, &Communication::transfer_ns>},
    {"communication.wait_ns", of<&Region::communication, &Communication::wait_ns>},
    {"communication.overlap_ns", of<&Region::communication, &Communication::overlap_ns>},
    {"gpu.kernels", of<&Region::gpu, &GpuWork::kernels>},
    {"gpu.exclusive_kernels", of<&Region::gpu, &GpuWork::exclusive_kernels>},
    {"gpu.inherited_kernels", of<&Region::gpu, &GpuWork::inherited_kernels>},
    {"gpu.graph_kernels", of<&Region::gpu, &GpuWork::graph_kernels>},
    {"gpu.graph_launches", of<&Region::gpu, &GpuWork::graph_launches>},
    {"gpu.distinct_kernels", of<&Region::gpu, &GpuWork::distinct_kernels>},
    {"gpu.kernel_ns", of<&Region::gpu, &GpuWork::kernel_ns>},
    {"gpu.exclusive_kernel_ns", of<&Region::gpu, &GpuWork::exclusive_kernel_ns>},
    {"gpu.busy_ns", of<&Region::gpu, &GpuWork::busy_ns>},
    {"gpu.busy_share", busy_share},
    {"gpu.share", of<&Region::gpu, &GpuWork::share>},
    {"gpu.launch_ns", of<&Region::gpu, &GpuWork::launch_ns>},
    {"gpu.exclusive_busy_ns", of<&Region::gpu, &GpuWork::exclusive_busy_ns>},
    {"gpu.span_ns", of<&Region::gpu, &GpuWork::span_ns>},
    {"gpu.idle_ns", of<&Region::gpu, &GpuWork::idle_ns>},
    {"gpu.copies", of<&Region::gpu, &GpuWork::copies>},
    {"gpu.memsets", of<&Region::gpu, &GpuWork::memsets>},
    {"gpu.copy_ns", of<&Region::gpu, &GpuWork::copy_ns>},
    {"gpu.copy_bytes", of<&Region::gpu, &GpuWork::copy_bytes>},
    {"gpu.overlap_ns", of<&Region::gpu, &GpuWork::overlap_ns>},
    {"gpu.syncs", of<&Region::gpu, &GpuWork::syncs>},
    {"gpu.sync_ns", of<&Region::gpu, &GpuWork::sync_ns>},
    {"gpu.nccl_kernels", of<&Region::gpu, &GpuWork::nccl_kernels>},
    {"gpu.nccl_ns", of<&Region::gpu, &GpuWork::nccl_ns>},
    {"gpu.launch_latency_ns.median", [](const Region& r) { return launch_latency(r, &Spread::median); }},
    {"gpu.launch_latency_ns.p95", [](const Region& r) { return launch_latency(r, &Spread::p95); }},
    {"utilization.executed", of<&Region::utilization, &Utilization::executed>},
    {"utilization.useful", of<&Region::utilization, &Utilization::useful>},
    {"utilization.bandwidth", of<&Region::utilization, &Utilization::bandwidth>},
};

#undef RANGESCOPE_WALL
#undef RANGESCOPE_REGION

}  // namespace

std::string_view unit_name(Unit unit) {
  return kUnits[static_cast<std::size_t>(unit)];
}

std::span<const Measure> measures() {
  static const auto all = [] {
    std::vector<Measure> out;
    for (const auto& [tag, title, unit, source, formula] : base::rows<5>(rangescope_measures))
      for (const auto& [name, get] : kGetters)
        if (name == tag)
          out.push_back({tag, title, static_cast<Unit>(base::place_of(unit, kUnits)), source, formula, get});
    return out;
  }();
  return all;
}

const Measure* find_measure(std::string_view tag) {
  for (const Measure& measure : measures()) {
    if (measure.tag == tag || measure.title == tag) return &measure;
  }
  return nullptr;
}

std::optional<double> value_of(const Region& region, std::string_view tag) {
  if (const Measure* measure = find_measure(tag)) return measure->get(region);
  constexpr std::string_view kPrefix = "metrics.";
  if (tag.starts_with(kPrefix)) tag.remove_prefix(kPrefix.size());
  const Metric* found = known_metric(region.metrics, std::string(tag));
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

std::vector<std::string> measure_tags() {
  std::vector<std::string> tags;
  for (const Measure& measure : measures()) tags.emplace_back(measure.tag);
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
