#include "read/nsys/sqlite/gpu_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

using model::SampleKind;

constexpr std::size_t kMostStreams = 64, kMostNames = 512;

/// "SMs Active [Throughput %]" is a share of what the device can do, called as the counter that it is.
model::SampledMetric described(std::string_view text) {
  static constexpr std::pair<std::string_view, const char*> kCounters[] = {
      {"GR Active", "gr__cycles_active.avg.pct_of_peak_sustained_elapsed"},
      {"SMs Active", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"},
      {"SM Active", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"},
      {"Tensor Active", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"},
      {"DRAM Read Bandwidth", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"},
      {"DRAM Write Bandwidth", "dram__write_throughput.avg.pct_of_peak_sustained_elapsed"},
  };
  const auto bracket = text.find('[');
  const std::string_view name = base::trim(text.substr(0, bracket));
  const std::string_view unit = bracket == std::string_view::npos ? std::string_view() : text.substr(bracket);
  model::SampledMetric metric;
  metric.name = base::printable(name);
  metric.kind = SampleKind::kMean;
  if (unit.find('%') != std::string_view::npos) {
    metric.kind = SampleKind::kShare;
    metric.unit = "ratio";
    for (const auto& [known, counter] : kCounters)
      if (name == known) metric.name = counter;
  } else if (unit == "[MHz]") {
    metric.unit = "Hz";
  }
  return metric;
}

float scale_of(const model::SampledMetric& metric) {
  return metric.unit == "ratio" ? 0.01F : metric.unit == "Hz" ? 1e6F : 1.0F;
}

/// Rows of a sample follow each other, whichever order its metrics have.
class Collecting {
 public:
  void name(std::int64_t type, std::int64_t id, std::string_view text) {
    if (names_.size() < kMostNames) names_.emplace(std::pair(type, id), std::string(text));
  }

  void add(std::int64_t type, std::int64_t at, std::int64_t id, float value, Outcome& outcome) {
    auto found = of_type_.find(type);
    if (found == of_type_.end()) {
      if (of_type_.size() == kMostStreams) return bad_row(outcome, "a GPU beyond the 64th");
      found = of_type_.emplace(type, One{}).first;
    }
    One& one = found->second;
    if (one.ends.empty() || one.ends.back() < at) {
      one.ends.push_back(at);
    } else if (one.ends.back() > at) {
      return bad_row(outcome, "samples are out of order");
    }
    const auto known = names_.find({type, id});
    if (known == names_.end()) return bad_row(outcome, "a metric without a name");
    auto [column, fresh] = one.column_of.try_emplace(id, one.metrics.size());
    if (fresh) one.metrics.push_back(described(known->second));
    model::SampledMetric& metric = one.metrics[column->second];
    metric.values.resize(one.ends.size(), std::numeric_limits<float>::quiet_NaN());
    metric.values.back() = value * scale_of(metric);
  }

  [[nodiscard]] std::vector<GpuMetrics::Stream> take() {
    std::vector<GpuMetrics::Stream> out;
    for (auto& [type, one] : of_type_) {
      GpuMetrics::Stream stream{type & 0xff, {}};
      model::SampleStream& samples = stream.samples;
      samples.source = "nsys GPU metrics";
      samples.other_clock = true;  // of the GPU's timer, converted: activity tells what that left
      std::vector<std::int64_t> lengths;
      for (std::size_t i = 1; i < one.ends.size(); ++i) lengths.push_back(one.ends[i] - one.ends[i - 1]);
      if (lengths.empty()) continue;
      const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
      std::nth_element(lengths.begin(), middle, lengths.end());
      samples.interval_ns = *middle;
      for (std::size_t i = 0; i < one.ends.size(); ++i) {
        const bool follows = i > 0 && one.ends[i] - one.ends[i - 1] < samples.interval_ns * 3 / 2;
        samples.start_ns.push_back(follows ? one.ends[i - 1] : one.ends[i] - samples.interval_ns);
      }
      samples.end_ns = std::move(one.ends);
      for (model::SampledMetric& metric : one.metrics)
        metric.values.resize(samples.end_ns.size(), std::numeric_limits<float>::quiet_NaN());
      samples.metrics = std::move(one.metrics);
      out.push_back(std::move(stream));
    }
    return out;
  }

 private:
  struct One {
    std::vector<std::int64_t> ends;
    std::vector<model::SampledMetric> metrics;
    std::map<std::int64_t, std::size_t> column_of;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;
  std::map<std::int64_t, One> of_type_;
};

}  // namespace

GpuMetrics read_gpu_metrics(const Source& source) {
  GpuMetrics out;
  out.outcome.table = "GPU_METRICS";
  const Table* table = source.find("GPU_METRICS");
  const Table* names = source.find("TARGET_INFO_GPU_METRICS");
  if (table == nullptr || names == nullptr) return out;
  Collecting fresh, collecting;
  const auto name = [&](const Value* row) { fresh.name(row[0].as_int(), row[1].as_int(), row[2].text()); };
  const Scanned described = source.scan(
      *names, {"typeId", "metricId", "metricName"}, [](std::size_t) {}, name);
  const auto restart = [&](std::size_t) {
    collecting = fresh;
    out.outcome.bad_rows = 0;
  };
  out.outcome.scanned =
      source.scan(*table, {"timestamp", "typeId", "metricId", "value"}, restart, [&](const Value* row) {
        if (!row[0].integer() || !row[1].integer() || !row[2].integer() ||
            std::abs(row[0].bits) > std::int64_t{1} << 60 || !std::isfinite(row[3].as_double()))
          return bad_row(out.outcome, "not a number");
        collecting.add(row[1].bits, row[0].bits, row[2].bits, static_cast<float>(row[3].as_double()), out.outcome);
      });
  if (described.damage && !out.outcome.scanned.damage) out.outcome.scanned.damage = described.damage;
  out.streams = collecting.take();
  return out;
}

void add_gpu_metrics(GpuMetrics&& from, const std::vector<Gpu>& gpus, model::Session& session) {
  for (GpuMetrics::Stream& stream : from.streams) {
    const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& each) { return each.id == stream.gpu; });
    if (gpu != gpus.end()) {
      stream.samples.uuid = gpu->uuid;
      stream.samples.name = gpu->name;
      stream.samples.chip = gpu->chip;
    }
    for (std::uint32_t i = 0; i < session.devices.size() && !stream.samples.uuid.empty(); ++i)
      if (session.strings.view(session.devices[i].uuid) == stream.samples.uuid) stream.samples.device = i;
    session.samples.push_back(std::move(stream.samples));
  }
  if (from.outcome.bad_rows > 0)
    session.losses.push_back({"damaged_samples", from.outcome.bad_rows,
                              "GPU_METRICS: " + base::counted(from.outcome.bad_rows, "row was", "rows were") +
                                  " left out: " + from.outcome.bad_reason + "."});
}

}  // namespace rangescope::read::nsys_sqlite
