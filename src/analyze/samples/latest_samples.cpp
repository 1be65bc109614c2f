#include "analyze/samples/latest_samples.hpp"

#include <cmath>
#include <map>

#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

/// The mean of a share, or an amount a second, over the samples that end within `ns` of the last
/// one.
std::optional<double> latest(const model::SampleStream& stream,
                             const std::string& name,
                             std::int64_t ns) {
  for (const model::SampledMetric& metric : stream.metrics) {
    if (metric.name != name || metric.values.size() != stream.end_ns.size() ||
        metric.values.empty())
      continue;
    const bool is_amount = metric.kind == model::SampleKind::kAmount;
    double sum = 0, covered_ns = 0;
    for (std::size_t i = metric.values.size();
         i-- > 0 && stream.end_ns.back() - stream.end_ns[i] < ns;) {
      const auto value = static_cast<double>(metric.values[i]);
      const auto length = static_cast<double>(stream.end_ns[i] - stream.start_ns[i]);
      if (std::isnan(value) || length <= 0)
        continue;
      sum += is_amount ? value * 1e9 : value * length;
      covered_ns += length;
    }
    if (covered_ns > 0)
      return sum / covered_ns;
  }
  return std::nullopt;
}

std::string gpu_of(const model::Session& session, const model::SampleStream& stream) {
  if (stream.device < session.devices.size())
    return "GPU " + std::to_string(session.devices[stream.device].ordinal);
  return base::printable(stream.name.empty() ? stream.uuid : stream.name);
}

}  // namespace

std::vector<LatestSamples> latest_samples(const model::Session& session, std::int64_t ns) {
  std::map<std::string, LatestSamples> samples_of;
  for (const model::SampleStream& stream : session.samples) {
    const std::string gpu = gpu_of(session, stream);
    LatestSamples& samples = samples_of[gpu];
    samples.gpu = gpu;
    if (const auto value = latest(stream, "dram_throughput", ns))
      samples.dram = value;
    if (const auto value = latest(stream, "sm_active", ns))
      samples.sm = value;
    if (const auto value = latest(stream, "tensor_active", ns))
      samples.tensor = value;
    if (const auto value = latest(stream, "energy", ns))
      samples.watts = value;
  }
  std::vector<LatestSamples> out;
  for (auto& [gpu, samples] : samples_of)
    if (samples.dram || samples.sm || samples.tensor || samples.watts)
      out.push_back(std::move(samples));
  return out;
}

}  // namespace rangescope::analyze
