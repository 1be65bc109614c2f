#include "sample/gpu/nvml.hpp"

#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "base/library.hpp"

namespace rangescope::sample {
namespace nvml {

using Library = base::Nvml;
using Handle = base::Nvml::Device;

struct MemoryInfo {  // nvmlMemory_t
  unsigned long long total, free, used;
};

// In the order of kMetrics.
constexpr std::array<const char*, 7> kMetrics = {"nvml__energy.sum",
                                                 "nvml__sm_clock.avg",
                                                 "nvml__memory_clock.avg",
                                                 "nvml__temperature.avg",
                                                 "nvml__throttled.avg",
                                                 "nvml__throttle_reasons",
                                                 "nvml__memory_used.max"};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr unsigned kSmClock = 1, kMemoryClock = 2;  // nvmlClockType_t
// Clocks held down by the power cap, by heat, or by the board: nvmlClocksEventReasons. Idle and a
// user's own settings are no throttling.
constexpr unsigned long long kThrottling = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;
// A call takes 4 ms of a core on an H200: all of them ten times a second took a third of a core.
constexpr std::int64_t kShortest_ns = 190'000'000, kLongest_ns = 1'000'000'000,
                       kState_ns = 1'000'000'000;

}  // namespace nvml
using namespace nvml;

struct NvmlSampler::Gpu {
  Gpu(Library library, Handle device, SampleWriter to)
      : nvml(std::move(library)), handle(device), stream(std::move(to)) {}

  std::optional<double> joules() {
    unsigned long long millijoules = 0;
    if (nvml.call("nvmlDeviceGetTotalEnergyConsumption", handle, &millijoules) != 0)
      return std::nullopt;
    return static_cast<double>(millijoules) * 1e-3;
  }

  void values(std::array<double, kMetrics.size()>& out) {
    unsigned number = 0;
    out.fill(kNone);
    if (nvml.call("nvmlDeviceGetClockInfo", handle, kSmClock, &number) == 0)
      out[1] = number * 1e6;
    if (nvml.call("nvmlDeviceGetClockInfo", handle, kMemoryClock, &number) == 0)
      out[2] = number * 1e6;
    if (nvml.call("nvmlDeviceGetTemperature", handle, 0u, &number) == 0)
      out[3] = number;
    unsigned long long reasons = 0;
    if (nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", handle, &reasons) == 0) {
      out[4] = (reasons & kThrottling) != 0 ? 1 : 0;
      out[5] = static_cast<double>(reasons & 0xffffff);
    }
    MemoryInfo memory{};
    if (nvml.call("nvmlDeviceGetMemoryInfo", handle, &memory) == 0)
      out[6] = static_cast<double>(memory.used);
  }

  /// A sample, when the counter has moved (or when it is time, where there is no counter).
  void look(std::int64_t now) {
    if (begun_ns != 0 && now - begun_ns < kShortest_ns)
      return;
    const auto energy = joules();
    const std::int64_t read_at_ns = now_ns();
    if (begun_ns == 0 && energy && !last) {
      last = energy;  // begins at its first change
      waiting = true;
      return;
    }
    const bool moved = energy && last && *energy != *last;
    if (energy && !moved && (begun_ns == 0 || read_at_ns - begun_ns < kLongest_ns))
      return;
    if (begun_ns != 0 && !waiting) {
      if (read_at_ns - state_ns >= kState_ns) {
        values(state);
        state_ns = read_at_ns;
      }
      std::array<double, kMetrics.size()> now_values = state;
      now_values[0] = energy && last ? *energy - *last : kNone;
      stream.add(begun_ns, read_at_ns, now_values.data());
    }
    waiting = false;
    begun_ns = read_at_ns;
    last = energy;
  }

  Library nvml;
  Handle handle;
  SampleWriter stream;
  std::int64_t begun_ns = 0, state_ns = 0;
  std::array<double, kMetrics.size()> state{};
  std::optional<double> last;
  bool waiting = false;
};

NvmlSampler::NvmlSampler() = default;

std::unique_ptr<NvmlSampler> NvmlSampler::start(const std::vector<Device>& devices,
                                                const std::filesystem::path& folder,
                                                std::uint64_t most_bytes) {
  const Library nvml;
  if (!nvml.loaded() || nvml.call("nvmlInit_v2") != 0)
    return nullptr;
  std::vector<std::pair<Device, Handle>> found;
  for (const Device& device : devices) {
    Handle handle = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByUUID", device.uuid.c_str(), &handle) == 0)
      found.emplace_back(device, handle);
  }
  unsigned count = 0;
  if (devices.empty() && nvml.call("nvmlDeviceGetCount_v2", &count) == 0) {
    for (unsigned i = 0; i < count; ++i) {
      Handle handle = nullptr;
      if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &handle) != 0)
        continue;
      Device device{static_cast<int>(i), {}, {}, {}};
      device.uuid = nvml.text("nvmlDeviceGetUUID", handle);
      device.name = nvml.text("nvmlDeviceGetName", handle);
      found.emplace_back(device, handle);
    }
  }
  std::unique_ptr<NvmlSampler> sampler(new NvmlSampler);
  for (const auto& [device, handle] : found) {
    Description description{"NVML",
                            "monotonic",
                            device.ordinal,
                            device.uuid,
                            device.name,
                            device.chip,
                            200'000'000,
                            {kMetrics.begin(), kMetrics.end()},
                            std::vector<char>(kMetrics.size(), 0)};
    description.adds_up[0] = 1;
    auto stream = SampleWriter::create(
        folder / ("nvml-" + std::to_string(device.ordinal) + wire::samples::kSuffix),
        std::move(description),
        most_bytes);
    if (stream)
      sampler->gpus_.push_back(std::make_unique<Gpu>(nvml, handle, std::move(*stream)));
  }
  if (sampler->gpus_.empty())
    return nullptr;
  sampler->thread_ = std::thread([self = sampler.get()] { self->run(); });
  return sampler;
}

void NvmlSampler::run() {
  std::int64_t flushed = now_ns();
  while (!stop_.load(std::memory_order_relaxed)) {
    const std::int64_t now = now_ns();
    for (auto& gpu : gpus_)
      gpu->look(now);
    if (now - flushed > 2'000'000'000) {
      for (auto& gpu : gpus_)
        gpu->stream.flush(false);
      flushed = now;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (auto& gpu : gpus_)
    gpu->stream.flush(true);
}

NvmlSampler::~NvmlSampler() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable())
    thread_.join();
}

}  // namespace rangescope::sample
