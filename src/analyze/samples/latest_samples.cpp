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
    const bool amount = metric.kind == model::SampleKind::kAmount;
    double sum = 0, covered_ns = 0;
    for (std::size_t i = metric.values.size();
         i-- > 0 && stream.end_ns.back() - stream.end_ns[i] < ns;) {
      const auto value = static_cast<double>(metric.values[i]);
      const auto length = static_cast<double>(stream.end_ns[i] - stream.start_ns[i]);
      if (std::isnan(value) || length <= 0)
        continue;
      sum += amount ? value * 1e9 : value * length;
      covered_ns += length;
    }
    if (covered_ns > 0)
      return sum / covered_ns;
  }
  return std::nullopt;
}

}  // namespace

std::vector<LatestSamples> latest_samples(const model::Session& session, std::int64_t ns) {
  std::map<std::string, LatestSamples> gpus;
  for (const model::SampleStream& stream : session.samples) {
    const std::string gpu = stream.device < session.devices.size()
                                ? "GPU " + std::to_string(session.devices[stream.device].ordinal)
                                : base::printable(stream.name.empty() ? stream.uuid : stream.name);
    LatestSamples& one = gpus[gpu];
    one.gpu = gpu;
    if (const auto value = latest(stream, "dram_throughput", ns))
      one.dram = value;
    if (const auto value = latest(stream, "sm_active", ns))
      one.sm = value;
    if (const auto value = latest(stream, "tensor_active", ns))
      one.tensor = value;
    if (const auto value = latest(stream, "energy", ns))
      one.watts = value;
  }
  std::vector<LatestSamples> out;
  for (auto& [gpu, one] : gpus)
    if (one.dram || one.sm || one.tensor || one.watts)
      out.push_back(std::move(one));
  return out;
}

}  // namespace rangescope::analyze
