#include "analyze/samples/sample_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::SampledMetric;
using model::SampleKind;
using model::SampleStream;

constexpr double kDarkShare = 0.5;    // an interval of more than +- 50 % says nothing
constexpr double kSurePoints = 0.02;  // an interval of a share that is good enough in any case
constexpr double kWide = 1.96;        // 95 % of a normal distribution
constexpr double kWhole = 1.05;       // a share above it is no error of sampling

/// Why too little was sampled for a value; "" where it is enough.
std::string too_little_sampled(const SampledRow& row, std::string_view of) {
  if (row.sampled_ns < kLeastSamples * row.interval_ns)
    return fmt::format("too short to sample: {} in {}, sampled every {}",
                       base::format_ns(row.sampled_ns),
                       of,
                       base::format_ns(row.interval_ns));
  const double covered = row.total_ns > 0 ? row.sampled_ns / row.total_ns : 0;
  if (covered < 0.5)
    return fmt::format("only {:.0f} % of its {} was sampled", covered * 100, of);
  return "";
}

std::string wide_interval(const model::Metric& metric) {
  return fmt::format(
      "samples bound it only to {:.3g} to {:.3g} {}", metric.min, metric.max, metric.unit);
}

/// Bounds a share by 1; absent where it is clearly above.
void bound_share(model::Metric& metric) {
  if (metric.value > kWhole) {
    metric.absent = wide_interval(metric);
    if (metric.min > 1)
      metric.absent =
          fmt::format("counted for {:.0f} % of its time, including time without its own work",
                      metric.value * 100);
    metric.value = 0;
    return;
  }
  for (double* bounded : {&metric.value, &metric.min, &metric.max})
    *bounded = std::min(*bounded, 1.0);
}

}  // namespace

void SamplePart::add(const SamplePart& other) {
  amount += other.amount;
  variance += other.variance;
  edges += other.edges;
  weight += other.weight;
  largest = std::max(largest, other.largest);
}

bool adds(SampleKind kind) {
  return kind == SampleKind::kAmount || kind == SampleKind::kShare;
}

model::Metric sampled_metric(const SampledRow& row,
                             double per,
                             double busy_ns,
                             std::string_view of) {
  model::Metric out;
  out.unit = row.unit;
  out.source = "sampled";
  out.rounds = std::llround(row.sampled_ns / row.interval_ns);
  out.absent = too_little_sampled(row, of);
  if (!out.absent.empty())
    return out;
  if (!adds(row.kind)) {
    const bool is_largest = row.kind == SampleKind::kMax;
    out.value = is_largest ? row.part.largest : row.part.amount / std::max(row.part.weight, 1.0);
    out.min = out.max = out.value;
    return out;
  }
  const double covered = row.sampled_ns / row.total_ns;
  const double unit = row.kind == SampleKind::kAmount ? std::max(per, 1.0) : busy_ns;
  const double divisor = unit * covered;
  if (divisor <= 0) {
    out.absent = "its GPU time is not known";
    return out;
  }
  out.value = std::max(row.part.amount, 0.0) / divisor;
  const double wide = (kWide * std::sqrt(row.part.variance) + row.part.edges) / divisor;
  out.min = std::max(out.value - wide, 0.0);
  out.max = out.value + wide;
  if (row.kind == SampleKind::kShare) {
    bound_share(out);
    if (!out.absent.empty() || wide < kSurePoints)
      return out;
  }
  if (wide > kDarkShare * out.value) {
    out.absent = wide_interval(out);
    out.value = 0;
  }
  return out;
}

std::size_t activity_column(const SampleStream& stream) {
  for (const std::string_view name :
       {"gpu_active", "gr__cycles_active", "GR Active", "sm_active", "sm__cycles_active"})
    for (std::size_t m = 0; m < stream.metrics.size(); ++m)
      if (stream.metrics[m].kind == SampleKind::kShare && stream.metrics[m].name.starts_with(name))
        return m;
  return stream.metrics.size();
}

model::SampledDevice describe_stream(const SampleStream& stream, model::Report& report) {
  model::SampledDevice device;
  device.source = stream.source;
  device.uuid = stream.uuid;
  device.name = stream.name;
  device.interval_ns = static_cast<double>(stream.interval_ns);
  device.samples = static_cast<std::int64_t>(stream.start_ns.size());
  std::uint64_t gaps = 0;
  for (std::size_t s = 0; s < stream.start_ns.size(); ++s) {
    device.sampled_ns += static_cast<double>(stream.end_ns[s] - stream.start_ns[s]);
    const std::int64_t gap = s == 0 ? 0 : stream.start_ns[s] - stream.end_ns[s - 1];
    if (gap <= stream.interval_ns / 100)
      continue;
    ++gaps;
    device.gaps_ns += static_cast<double>(gap);
  }
  if (gaps > 0)
    report.losses.push_back(
        {"sample_gaps",
         gaps,
         fmt::format("{} between samples of {}, {} in all: sampled values cover the rest.",
                     base::counted(gaps, "gap"),
                     stream.name,
                     base::format_ns(device.gaps_ns))});
  return device;
}

}  // namespace rangescope::analyze
