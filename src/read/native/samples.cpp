#include "read/native/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/metric_unit.hpp"
#include "read/native/blocks.hpp"
#include "wire/samples.hpp"

namespace rangescope::read::native {
namespace {

namespace fs = std::filesystem;
namespace format = wire::samples;
using model::SampleKind;
using model::Severity;

/// Column `index` of `items` values that were stored byte by byte.
template <class T>
std::vector<T> column(const std::string& raw, std::size_t at, std::size_t items) {
  std::vector<T> out(items);
  for (std::size_t i = 0; i < items; ++i) {
    char bytes[sizeof(T)];
    for (std::size_t b = 0; b < sizeof(T); ++b)
      bytes[b] = raw[at + b * items + i];
    std::memcpy(&out[i], bytes, sizeof(T));
  }
  return out;
}

std::vector<std::int64_t> summed(std::vector<std::int64_t> differences) {
  std::uint64_t sum = 0;  // wraps where the input is nonsense
  for (std::int64_t& difference : differences) {
    sum += static_cast<std::uint64_t>(difference);
    difference = static_cast<std::int64_t>(sum);
  }
  return differences;
}

model::SampledMetric metric_of(const std::string& name) {
  model::SampledMetric metric;
  metric.name = name;
  metric.unit = model::metric_unit(name);
  if (name.ends_with(".sum"))
    metric.kind = SampleKind::kAmount;
  else if (name.ends_with(".max"))
    metric.kind = SampleKind::kMax;
  else if (name.starts_with("nvml__"))
    metric.kind = SampleKind::kMean;
  static constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"nvml__energy.sum", "J"},
      {"nvml__sm_clock.avg", "Hz"},
      {"nvml__memory_clock.avg", "Hz"},
      {"nvml__temperature.avg", "degC"},
      {"nvml__throttled.avg", "ratio"},
      {"nvml__memory_used.max", "byte"}};
  for (const auto& [known, unit] : kUnits)
    if (name == known)
      metric.unit = unit;
  return metric;
}

class Reader {
 public:
  Reader(std::span<const std::byte> file, std::string where, model::Session& session)
      : file_(file), where_(std::move(where)), session_(session) {}

  base::Result<void> run() {
    auto blocks = TRY(
        BlockReader::open(file_, where_, format::kMagic, format::kVersion, "a stream of samples"));
    // The GPU's timer is about the time since 1970.
    stream_.offset_ns =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(blocks.head().monotonic_ns) -
                                  static_cast<std::uint64_t>(blocks.head().realtime_ns));
    Block block;
    while (blocks.next(block)) {
      switch (block.type) {
        case format::Type::kDescription: describe(block.raw); break;
        case format::Type::kSamples: samples(block.raw, block.items); break;
        case format::Type::kEvent: event(block.raw); break;
        case format::Type::kEnd: end(block.raw); break;
      }
    }
    torn_ = blocks.torn();
    finish();
    return {};
  }

 private:
  void lose(model::LossKind kind, std::uint64_t count, std::string detail) {
    session_.losses.push_back({kind, count, std::move(detail)});
  }

  void describe(const std::string& text) {
    if (described_)
      return;
    described_ = true;
    for (const std::string_view line : base::split(text, '\n')) {
      const auto space = line.find(' ');
      if (space == std::string_view::npos)
        continue;
      const std::string_view key = line.substr(0, space);
      const std::string value(line.substr(space + 1));
      if (key == "source")
        stream_.source = value;
      if (key == "clock")
        stream_.other_clock = value == "gpu";
      if (key == "uuid")
        stream_.uuid = value;
      if (key == "name")
        stream_.name = value;
      if (key == "chip")
        stream_.chip = value;
      if (key == "interval_ns")
        stream_.interval_ns = std::max<std::int64_t>(base::to_int(value).value_or(0), 0);
      if (key == "metric" && stream_.metrics.size() < format::kMostMetrics)
        stream_.metrics.push_back(metric_of(value));
    }
    if (!stream_.other_clock)
      stream_.offset_ns = 0;
  }

  void samples(const std::string& raw, std::size_t items) {
    const std::size_t metrics = stream_.metrics.size();
    if (!described_ || items > raw.size() / 16 || raw.size() != format::raw_bytes(items, metrics)) {
      damaged_ += items;
      return;
    }
    auto starts = summed(column<std::int64_t>(raw, 0, items));
    const auto ends = summed(column<std::int64_t>(raw, 8 * items, items));
    std::vector<char> kept(items, 0);
    for (std::size_t i = 0; i < items; ++i) {
      // The first one behind a gap may begin before the last one ended (seen on an H200 at 10 kHz).
      if (starts[i] < last_ns_ && ends[i] > last_ns_)
        starts[i] = last_ns_;
      // In order, without overlap, and not absurdly long.
      const bool is_valid = starts[i] >= last_ns_ && ends[i] > starts[i] &&
                            ends[i] - starts[i] < std::int64_t{1} << 50 &&
                            ends[i] < std::int64_t{1} << 62;
      kept[i] = is_valid ? 1 : 0;
      if (!is_valid) {
        ++damaged_;
        continue;
      }
      last_ns_ = ends[i];
      stream_.start_ns.push_back(starts[i]);
      stream_.end_ns.push_back(ends[i]);
    }
    for (std::size_t m = 0; m < metrics; ++m) {
      const bool percent = model::is_percent(
          model::metric_unit(stream_.metrics[m].name, model::UnitSpelling::kNcu2025));
      const auto values = column<float>(raw, 16 * items + 4 * m * items, items);
      for (std::size_t i = 0; i < items; ++i)
        if (kept[i] != 0)
          stream_.metrics[m].values.push_back(plausible(values[i]) * (percent ? 0.01F : 1.0F));
    }
  }
  static float plausible(float value) {
    const bool is_plausible = std::isfinite(value) && value >= 0;
    if (!is_plausible)
      return std::numeric_limits<float>::quiet_NaN();
    return value;
  }

  void event(const std::string& raw) {
    format::Event event{};
    if (raw.size() < sizeof event)
      return;
    std::memcpy(&event, raw.data(), sizeof event);
    const std::string text = base::printable(raw.substr(sizeof event));
    const std::string device =
        base::printable(stream_.name + (stream_.uuid.empty() ? "" : " (" + stream_.uuid + ")"));
    switch (event.kind) {
      case format::EventKind::kOverflow:
        lose(
            "samples_overflow",
            0,
            "Samples of " + device + " were lost (" + text + "): sample less often, --sample 1ms.");
        break;
      case format::EventKind::kFailed:
        lose("sampling_ended",
             1,
             "Sampling of " + device + " ended before the program did: " + text + ".");
        break;
      case format::EventKind::kCoarser:
        lose("samples_merged",
             event.count,
             fmt::format(
                 "Samples of {} were merged, {} to one, to keep within the size of the file.",
                 device,
                 event.count));
        break;
      case format::EventKind::kAside:
        if (event.count == 1 && std::exchange(aside_, true) == false)
          lose("not_sampled",
               1,
               device +
                   " was not sampled while the program's own counters (--metrics) held it: ranges "
                   "that were " +
                   "measured then have those.");
        break;
      case format::EventKind::kUnavailable:
        lose("not_sampled", 1, unavailable(device, text));
        break;
    }
  }

  /// A sample is read after it ended, and within a second: a clock that differs is not the GPU's.
  void end(const std::string& text) {
    ended_ = true;
    const auto key = text.find("lead_ns ");
    if (key == std::string::npos)
      return;
    const auto lead = base::to_int(std::string_view(text).substr(key + 8));
    if (!lead || !stream_.other_clock)
      return;
    constexpr std::int64_t kSecond_ns = 1'000'000'000;
    if (stream_.offset_ns > *lead || *lead - kSecond_ns > stream_.offset_ns)
      stream_.offset_ns = *lead;
  }

  static std::string unavailable(const std::string& device, const std::string& why) {
    std::string cure;
    if (why.starts_with("busy"))
      cure =
          " Another profiler or monitor (DCGM, Nsight, another run of rangescope) holds its "
          "counters: stop it, or "
          "pause it (dcgmi profile --pause).";
    if (why.starts_with("denied"))
      cure =
          " The driver lets only the administrator read counters: run as root, or set "
          "NVreg_RestrictProfilingToAdminUsers=0.";
    if (why.starts_with("old"))
      cure = " It needs a GPU of the GA10x generation or newer: use --metrics.";
    return "The counters of " + device + " were not sampled: " + why + "." + cure;
  }

  void finish() {
    if (torn_ > 0)
      lose("torn_samples",
           torn_,
           fmt::format(
               "{}: the last {} bytes are torn or damaged and were cut off.", where_, torn_));
    if (damaged_ > 0)
      lose("damaged_samples",
           damaged_,
           fmt::format(
               "{}: {} out of order or damaged.", where_, base::counted(damaged_, "sample")));
    if (described_ && !ended_ && torn_ == 0)
      lose("sampling_ended",
           1,
           "The sampling process of " + base::printable(stream_.name) +
               " ended unexpectedly: the last second may be missing.");
    if (stream_.start_ns.empty())
      return;
    for (std::uint32_t i = 0; i < session_.devices.size() && !stream_.uuid.empty(); ++i) {
      if (session_.strings.view(session_.devices[i].uuid) != stream_.uuid)
        continue;
      stream_.device = i;
      break;
    }
    session_.samples.push_back(std::move(stream_));
  }

  std::span<const std::byte> file_;
  std::string where_;
  model::Session& session_;
  model::SampleStream stream_;
  std::size_t torn_ = 0;
  std::uint64_t damaged_ = 0;
  std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
  bool described_ = false, ended_ = false, aside_ = false;
};

}  // namespace

base::Result<void> read_samples(std::span<const std::byte> file,
                                const std::string& where,
                                model::Session& session) {
  return Reader(file, where, session).run();
}

void read_sample_files(const fs::path& folder, model::Session& session) {
  read_block_files(folder, format::kSuffix, format::kFolder, read_samples, session);
}

}  // namespace rangescope::read::native
