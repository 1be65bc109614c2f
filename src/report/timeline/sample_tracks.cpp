#include "report/timeline/sample_tracks.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::report {

double SampleTrack::value(std::size_t sample) const {
  const auto value = static_cast<double>(metric->values[sample]);
  if (metric->kind != model::SampleKind::kAmount) return value;
  const auto ns = static_cast<double>(std::max<std::int64_t>(stream->end_ns[sample] - stream->start_ns[sample], 1));
  return value * 1e9 / ns;
}

std::vector<SampleTrack> sample_tracks(const model::Report& report, const model::Session& session) {
  std::vector<SampleTrack> out;
  for (const model::SampledDevice& device : report.sampled) {
    if (device.stream >= session.samples.size()) continue;
    const model::SampleStream& stream = session.samples[device.stream];
    const std::string gpu = stream.device < session.devices.size()
                                ? "GPU " + std::to_string(session.devices[stream.device].ordinal)
                                : base::printable(stream.name);
    for (const model::SampledMetric& metric : stream.metrics) {
      if (metric.values.size() != stream.start_ns.size()) continue;
      SampleTrack& track = out.emplace_back();
      track.stream = &stream;
      track.metric = &metric;
      track.offset_ns = device.offset_ns;
      track.title = gpu + " " + metric.name;
      track.unit = metric.unit;
      if (metric.kind == model::SampleKind::kAmount) track.unit = metric.unit == "J" ? "W" : metric.unit + "/s";
    }
  }
  return out;
}

}  // namespace rangescope::report
