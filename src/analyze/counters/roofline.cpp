#include "analyze/counters/roofline.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "analyze/counters/useful.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

// Thresholds of classify(), 0..1. Every reason that it gives contains them.
constexpr double kIdleShare =
    0.5;  // GPU busy for less of the region's wall time: the GPU waits for work
constexpr double kBoundShare =
    0.5;  // a resource used at least this much of its peak bounds the region
constexpr double kBalancedShare =
    0.1;  // two resources nearer to each other than this bound it together

struct Precision {
  const char* metric;  // of conf/metrics/roofline.yaml
  const char* peak;    // key of Peaks::flop_per_s
  const char* title;
};

constexpr auto kPrecisions = std::to_array<Precision>({
    {"flop_tensor_bf16", "tensor_bf16", "tensor bf16"},
    {"flop_tensor_fp16", "tensor_fp16", "tensor fp16"},
    {"flop_tensor_tf32", "tensor_tf32", "tensor tf32"},
    {"flop_tensor_fp8", "tensor_fp8", "tensor fp8"},
    {"flop_tensor_fp64", "tensor_fp64", "tensor fp64"},
    {"flop_fp32", "fp32", "fp32"},
    {"flop_fp64", "fp64", "fp64"},
    {"flop_fp16", "fp16", "fp16"},
});

struct Level {
  const char* metric;
  const char* name;
};
constexpr auto kLevels =
    std::to_array<Level>({{"dram_bytes", "dram"}, {"l2_bytes", "l2"}, {"l1_bytes", "l1"}});

std::optional<double> metric(const model::Region& region, const char* name) {
  const auto* found = model::known_metric(region.metrics, name);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

double peak_of(const model::Peaks* peaks, const char* key) {
  if (peaks == nullptr)
    return 0;
  const auto found = peaks->flop_per_s.find(key);
  return found == peaks->flop_per_s.end() ? 0 : found->second;
}

/// 0 where it is not known.
double peak_bandwidth(const Level& level, const model::Peaks* peaks) {
  const std::string_view name = level.name;
  if (peaks == nullptr)
    return 0;
  if (name == "dram")
    return peaks->memory_bytes_per_s;
  return name == "l2" ? peaks->l2_bytes_per_s : 0;
}

// A resource and the share of its peak that was used while the GPU was busy.
struct Use {
  double share = 0;
  std::string name, numbers;
};

/// The level of memory that is nearest to its peak, as ncu's speed of light has it: the largest of
/// device memory, L2 and L1/TEX. Where the level is not known it is "memory", as for device memory.
std::optional<Use> memory_use(const model::Region& region,
                              const model::Peaks* peaks,
                              std::optional<double> busy_ns) {
  std::optional<Use> most;
  const auto consider = [&](Use use) {
    if (!most || use.share > most->share)
      most = std::move(use);
  };
  if (const auto bytes = metric(region, "dram_bytes");
      bytes && busy_ns && *busy_ns > 0 && peaks && peaks->memory_bytes_per_s > 0) {
    const double rate = *bytes / (*busy_ns / 1e9);
    consider({rate / peaks->memory_bytes_per_s,
              "memory",
              fmt::format("{:.3g} byte / {:.3g} ns busy = {:.3g} of {:.3g} byte/s",
                          *bytes,
                          *busy_ns,
                          rate,
                          peaks->memory_bytes_per_s)});
  } else if (const auto share = metric(region, "dram_throughput")) {
    consider({*share,
              "memory",
              fmt::format("dram_throughput {:.3g} of the peak, idle gaps included", *share)});
  }
  for (const auto& [name, level] :
       {std::pair("l2_throughput", "memory: L2"), std::pair("l1_throughput", "memory: L1/TEX")})
    if (const auto share = metric(region, name))
      consider(
          {*share, level, fmt::format("{} {:.3g} of the peak, idle gaps included", name, *share)});
  // The largest of the three and of what else the memory system has; the level's name where one of
  // them explains it.
  if (const auto share = metric(region, "memory_throughput");
      share && (!most || *share > 1.1 * most->share))
    consider({*share,
              most ? most->name : "memory: system",
              fmt::format("memory_throughput {:.3g} of the peak, idle gaps included", *share)});
  return most;
}

std::optional<Use> compute_use(const model::Region& region,
                               const model::Peaks* peaks,
                               std::optional<double> busy_ns) {
  std::optional<Use> most;
  for (const Precision& precision : kPrecisions) {
    const auto flop = metric(region, precision.metric);
    const double peak = peak_of(peaks, precision.peak);
    if (!flop || !busy_ns || *busy_ns <= 0 || peak <= 0)
      continue;
    const double rate = *flop / (*busy_ns / 1e9);
    Use use{rate / peak,
            std::string("compute: ") + precision.title,
            fmt::format("{:.3g} {} FLOP / {:.3g} ns busy = {:.3g} of {:.3g} FLOP/s",
                        *flop,
                        precision.title,
                        *busy_ns,
                        rate,
                        peak)};
    if (!most || use.share > most->share)
      most = std::move(use);
  }
  // Pipes can be full with instructions that are no FLOPs; the throughput metric sees them all.
  if (const auto share = metric(region, "sm_throughput");
      share && (!most || *share > most->share)) {
    most = Use{*share,
               "compute: SM pipes",
               fmt::format("sm_throughput {:.3g} of the peak, idle gaps included", *share)};
  }
  // Of kernels taken together the pipes are not known, and few FLOPs do not say that they were
  // empty.
  if (most && most->share < kBoundShare && region.metrics.contains("sm_throughput") &&
      !metric(region, "sm_throughput"))
    return std::nullopt;
  return most;
}

// How much of the region's wall time the GPU was busy, and the numbers. Where the timeline was
// paused for counters: of a median occurrence.
std::optional<std::pair<double, std::string>> busy_share(const model::Region& region) {
  if (!region.gpu)
    return std::nullopt;
  const model::GpuWork& gpu = *region.gpu;
  double busy = gpu.busy_ns, wall = region.wall.inclusive_ns;
  std::string details;
  if (gpu.partial) {
    if (gpu.recorded_occurrences <= 0)
      return std::nullopt;
    busy = gpu.busy_ns_per_occurrence.median;
    wall = region.wall.per_occurrence_ns.median;
    details = fmt::format(" (median instance, {} of {} with a timeline)",
                          gpu.recorded_occurrences,
                          region.occurrences);
  }
  if (region.steady && region.steady->busy_share.value_or(0) * wall > 1.01 * busy) {
    busy = *region.steady->busy_share * wall;
    details = " (including work of others)";
  }
  if (!(wall > 0) || !(busy >= 0))
    return std::nullopt;
  return std::pair(busy / wall,
                   fmt::format("GPU busy {} of {} wall = {:.2f}{}",
                               base::format_ns(busy),
                               base::format_ns(wall),
                               busy / wall,
                               details));
}

}  // namespace

std::optional<double> busy_per_occurrence_ns(const model::Region& region) {
  if (region.gpu && region.gpu->busy_ns_per_occurrence.median > 0)
    return region.gpu->busy_ns_per_occurrence.median;
  return metric(region, "gpu_time_ns");
}

std::vector<model::RooflinePoint> roofline(const model::Region& region, const model::Peaks* peaks) {
  const auto busy_ns = busy_per_occurrence_ns(region);
  if (!busy_ns || *busy_ns <= 0)
    return {};
  double total = 0;
  for (const Precision& precision : kPrecisions)
    total += metric(region, precision.metric).value_or(0);
  std::vector<model::RooflinePoint> points;
  for (const Precision& precision : kPrecisions) {
    const double flop = metric(region, precision.metric).value_or(0);
    if (flop <= 0 || flop < 0.01 * total)
      continue;
    for (const Level& level : kLevels) {
      const double bytes = metric(region, level.metric).value_or(0);
      if (bytes <= 0)
        continue;
      model::RooflinePoint point;
      point.level = level.name;
      point.precision = precision.title;
      point.flops = flop;
      point.bytes = bytes;
      point.intensity = flop / bytes;
      point.flop_per_s = flop / (*busy_ns / 1e9);
      point.roof_flop_per_s = peak_of(peaks, precision.peak);
      const double bandwidth = peak_bandwidth(level, peaks);
      point.peak_flop_per_s = point.roof_flop_per_s;
      point.peak_bytes_per_s = bandwidth;
      if (bandwidth > 0 && point.roof_flop_per_s > 0) {
        point.roof_flop_per_s = std::min(point.roof_flop_per_s, point.intensity * bandwidth);
      }
      points.push_back(std::move(point));
    }
  }
  return points;
}

model::Bound classify(const model::Region& region, const model::Peaks* peaks) {
  const auto busy_ns = busy_per_occurrence_ns(region);
  std::string busy_text;
  if (const auto share_and_text = busy_share(region)) {
    const double share = share_and_text->first;
    busy_text = share_and_text->second;
    if (region.gpu->kernels > 0 && share < kIdleShare)
      return {"idle",
              fmt::format("{}, below {:.2f}: the GPU waits for work", busy_text, kIdleShare)};
  }
  const auto memory = memory_use(region, peaks, busy_ns);
  const auto compute = compute_use(region, peaks, busy_ns);
  if (!memory || !compute) {
    std::string missing = memory ? "" : "memory traffic";
    if (!compute)
      missing += std::string(missing.empty() ? "" : ", ") + "SM throughput or executed FLOPs";
    if (peaks == nullptr)
      missing += "; no peaks are known for this device";
    if (!busy_text.empty())
      missing += "; " + busy_text;
    return {"unknown", "not measured: " + missing};
  }
  const std::string numbers = fmt::format("memory {:.2f} ({}); compute {:.2f} ({})",
                                          memory->share,
                                          memory->numbers,
                                          compute->share,
                                          compute->numbers);
  if (std::max(memory->share, compute->share) < kBoundShare) {
    return {"latency",
            fmt::format("{}; both below {:.2f} while the GPU was busy: dependencies, small grids "
                        "or low occupancy",
                        numbers,
                        kBoundShare),
            memory->share,
            compute->share};
  }
  if (std::fabs(memory->share - compute->share) < kBalancedShare) {
    return {"balanced",
            fmt::format("{}; within {:.2f} of each other", numbers, kBalancedShare),
            memory->share,
            compute->share};
  }
  return {memory->share > compute->share ? memory->name : compute->name,
          fmt::format("{}; at least {:.2f}", numbers, kBoundShare),
          memory->share,
          compute->share};
}

std::optional<model::Utilization> utilization(const model::Region& region,
                                              const model::Peaks* peaks) {
  const auto busy_ns = busy_per_occurrence_ns(region);
  model::Utilization use;
  use.busy_ns = busy_ns.value_or(0);
  const Precision* dominant = nullptr;
  double dominant_flop = 0, seconds_at_peak = 0;
  bool measured = false;
  for (const Precision& precision : kPrecisions) {
    const auto flop = metric(region, precision.metric);
    const double peak = peak_of(peaks, precision.peak);
    if (!flop || peak <= 0)
      continue;
    measured = true;
    seconds_at_peak += *flop / peak;
    if (*flop <= dominant_flop)
      continue;
    dominant_flop = *flop;
    dominant = &precision;
  }
  if (measured && busy_ns && *busy_ns > 0) {
    use.executed = seconds_at_peak / (*busy_ns / 1e9);
    use.formula = fmt::format("executed: sum of FLOP / peak = {:.3g} s over {:.3g} s busy",
                              seconds_at_peak,
                              *busy_ns / 1e9);
  }
  const char* of = gpu_time_counts(region) ? "busy" : "wall";
  if (region.utilization && region.utilization->useful_flop) {
    use.useful_flop = region.utilization->useful_flop;
    use.useful_wall_ns = region.utilization->useful_wall_ns;
    // Which precision the work is in only counters know; most models run their matrices in bf16.
    const Precision& against = dominant != nullptr ? *dominant : kPrecisions[0];
    const double peak = peak_of(peaks, against.peak);
    const std::string before = use.formula.empty() ? "" : "; ";
    if (peak > 0 && use.useful_wall_ns > 0) {
      use.useful = *use.useful_flop / (peak * use.useful_wall_ns / 1e9);
      use.formula +=
          before + fmt::format("useful: {:.3g} FLOP / ({:.3g} FLOP/s {}{} * {:.3g} s {})",
                               *use.useful_flop,
                               peak,
                               against.title,
                               dominant == nullptr ? " (taken as the precision)" : "",
                               use.useful_wall_ns / 1e9,
                               of);
    } else {
      use.formula +=
          before + fmt::format("useful: {:.3g} FLOP, and no peak is known for this device",
                               *use.useful_flop);
    }
  }
  if (region.utilization && region.utilization->useful_bytes) {
    use.useful_bytes = region.utilization->useful_bytes;
    use.useful_wall_ns = region.utilization->useful_wall_ns;
    if (peaks != nullptr && peaks->memory_bytes_per_s > 0 && use.useful_wall_ns > 0) {
      use.bandwidth = *use.useful_bytes / (peaks->memory_bytes_per_s * use.useful_wall_ns / 1e9);
      use.formula += (use.formula.empty() ? "" : "; ") +
                     fmt::format("bandwidth: {:.3g} B / ({:.3g} B/s * {:.3g} s {})",
                                 *use.useful_bytes,
                                 peaks->memory_bytes_per_s,
                                 use.useful_wall_ns / 1e9,
                                 of);
    }
  }
  if (region.utilization && region.utilization->useful_tokens) {
    use.useful_tokens = region.utilization->useful_tokens;
    use.useful_wall_ns = region.utilization->useful_wall_ns;
  }
  if (!use.executed && !use.useful_flop && !use.useful_bytes && !use.useful_tokens)
    return std::nullopt;
  return use;
}

namespace {

/// Rates over GPU busy time: that of the counters' own time holds the gaps, also those that
/// measuring made.
void add_busy_rates(model::Region& region) {
  if (!region.gpu || !(region.gpu->busy_ns_per_occurrence.median > 0))
    return;
  const double seconds = region.gpu->busy_ns_per_occurrence.median / 1e9;
  for (const auto& [amount, rate, unit] :
       {std::tuple("dram_bytes", "dram_bytes_per_busy_s", "byte/s"),
        std::tuple("flop", "flop_per_busy_s", "FLOP/s")}) {
    const auto* found = model::known_metric(region.metrics, amount);
    if (found == nullptr)
      continue;
    model::Metric made = *found;
    made.value /= seconds;
    made.min /= seconds;
    made.max /= seconds;
    made.unit = unit;
    made.source =
        std::string("derived: ") + amount + " / GPU busy time of a median instance (timeline)";
    region.metrics.emplace(rate, std::move(made));
  }
}

/// Rates of kernels are no sum, but follow from their sums.
void add_summed_rates(model::Region& region) {
  const auto time = metric(region, "gpu_time_ns");
  if (!time || *time <= 0)
    return;
  for (const auto& [amount, rate] :
       {std::pair("dram_bytes", "dram_bytes_per_s"), std::pair("flop_fp32", "fp32_flop_per_s")}) {
    const auto found = region.metrics.find(rate);
    const auto sum = metric(region, amount);
    if (found == region.metrics.end() || found->second.absent.empty() || !sum)
      continue;
    const double value = *sum / (*time / 1e9);
    found->second = {
        .value = value,
        .unit = found->second.unit,
        .min = value,
        .max = value,
        .rounds = 1,
        .source = std::string("derived: ") + amount + " / gpu_time_ns, both summed over kernels"};
  }
}

}  // namespace

void add_bounds(model::Report& report, const model::Peaks* peaks) {
  for (model::Region& region : report.regions) {
    const bool counted = has_counters(region);
    const bool has_kernels = region.gpu && region.gpu->kernels > 0;
    const bool is_judged = counted || has_kernels || region.utilization;
    if (!is_judged)
      continue;
    if (counted || region.gpu) {
      add_summed_rates(region);
      region.roofline = roofline(region, peaks);
      add_busy_rates(region);
      region.bound = classify(region, peaks);
    }
    region.utilization = utilization(region, peaks);
    for (model::KernelMetrics& kernel : region.kernels) {
      model::Region alone;  // its GPU time is a counter's, without gaps
      alone.metrics = kernel.metrics;
      if (model::Bound bound = classify(alone, peaks); bound.kind != "unknown")
        kernel.bound = std::move(bound);
    }
  }
  for (model::KernelCounters& kernel : report.kernel_counters) {
    model::Region alone;
    alone.metrics = kernel.metrics;
    kernel.roofline = roofline(alone, peaks);
    kernel.bound = classify(alone, peaks);
  }
}

namespace {

// `peak` of a cycle times `clock`; without a clock it is of a second already. As ncu's roofline
// sections have them: packed halves are two numbers, a fused multiply-add two operations.
struct Roof {
  std::string_view key, peak, clock;
  double times = 1;
};
constexpr std::string_view kSm = "sm__cycles_elapsed.avg.per_second";
constexpr auto kRoofs = std::to_array<Roof>({
    {"memory", "dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second"},
    {"l2", "lts__t_bytes.sum.peak_sustained", "lts__cycles_elapsed.avg.per_second"},
    {"l2", "derived__lts__lts2xbar_bytes.sum.peak_sustained", "lts__cycles_elapsed.avg.per_second"},
    {"fp32", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", kSm, 2},
    {"fp64", "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", kSm, 2},
    {"fp16", "derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x4", kSm},
    {"tensor_bf16", "sm__ops_path_tensor_src_bf16_dst_fp32.sum.peak_sustained", kSm},
    {"tensor_fp16", "sm__ops_path_tensor_src_fp16.sum.peak_sustained", kSm},
    {"tensor_tf32", "sm__ops_path_tensor_src_tf32_dst_fp32.sum.peak_sustained", kSm},
    {"tensor_fp64", "sm__ops_path_tensor_src_fp64.sum.peak_sustained", kSm},
    {"tensor_fp8", "sm__ops_path_tensor_src_fp8_sparsity_off.sum.peak_sustained", kSm},
});

}  // namespace

std::optional<model::Peaks> counted_peaks(const model::Session& session) {
  const auto index = [&](std::string_view name) {
    const auto found = std::find_if(
        session.metrics.begin(), session.metrics.end(), [&](const model::MetricDef& metric) {
          return metric.name == name;
        });
    return static_cast<std::uint32_t>(found - session.metrics.begin());
  };
  model::Peaks peaks{.id = "counted",
                     .name = "this GPU",
                     .source = "peak_sustained of the results, at their clocks"};
  for (const Roof& roof : kRoofs) {
    const std::uint32_t peak = index(roof.peak);
    const std::uint32_t clock = index(roof.clock);
    double per_second = 0;
    for (const model::Measurement& result : session.measurements) {
      double per_cycle = 0, hz = 0;
      for (const model::MetricValue& value : result.values) {
        if (value.metric == peak)
          per_cycle = value.value;
        if (value.metric == clock)
          hz = value.value;
      }
      per_second = std::max(per_second, per_cycle * hz * roof.times);
    }
    if (!(per_second > 0))
      continue;
    if (roof.key == "memory")
      peaks.memory_bytes_per_s = per_second;
    else if (roof.key == "l2")
      peaks.l2_bytes_per_s = per_second;
    else
      peaks.flop_per_s[std::string(roof.key)] = per_second;
  }
  if (peaks.memory_bytes_per_s <= 0 || peaks.flop_per_s.empty())
    return std::nullopt;
  return peaks;
}

}  // namespace rangescope::analyze
