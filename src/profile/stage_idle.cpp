// `--wait-idle`: a run begins when nobody else uses its GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/library.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "profile/stage.hpp"

namespace rangescope::profile {
namespace {

using std::chrono::steady_clock;

constexpr auto kBetween = std::chrono::milliseconds(250);
constexpr int kQuietLooks = 4;  // NVML's share is of a sixth of a second to a second

struct Gpu {
  unsigned index;
  base::Nvml::Device device;
};

/// By number or by the beginning of its UUID; all of them where nothing is given.
std::vector<Gpu> visible_gpus(const base::Nvml& nvml, const char* chosen) {
  std::vector<Gpu> all, visible;
  unsigned count = 0;
  (void)nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    base::Nvml::Device device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == 0)
      all.push_back({i, device});
  }
  if (chosen == nullptr)
    return all;
  for (const std::string_view word : base::split(chosen, ',')) {
    const auto number = base::to_uint(base::trim(word));
    for (const Gpu& gpu : all)
      if (number ? *number == gpu.index
                 : !word.empty() &&
                       nvml.text("nvmlDeviceGetUUID", gpu.device).starts_with(base::trim(word)))
        visible.push_back(gpu);
  }
  return visible;
}

/// "GPU 1 is busy (37 %)" of the first that is; "" where none is.
std::string busy_gpu(const base::Nvml& nvml, const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus) {
    struct {
      unsigned gpu = 0, memory = 0;  // nvmlUtilization_t
    } share;
    if (nvml.call("nvmlDeviceGetUtilizationRates", gpu.device, static_cast<void*>(&share)) == 0 &&
        share.gpu > 0)
      return fmt::format("GPU {} is busy ({} %)", gpu.index, share.gpu);
  }
  return {};
}

/// Waits until the GPUs that CUDA_VISIBLE_DEVICES leaves (in `environment` of the program, else in
/// ours) have done nothing for a second, as NVML tells, at most `limit`. What a report should say
/// of it; "" where they were idle at once.
std::string wait_for_idle(std::chrono::nanoseconds limit,
                          const std::map<std::string, std::string>& environment) {
  const base::Nvml nvml;
  const int started = nvml.loaded() ? nvml.call("nvmlInit_v2") : 0;
  if (!nvml.loaded() || started != 0)
    return "--wait-idle: whether a GPU is busy is not known: " +
           (nvml.loaded() ? nvml.words_of(started) : std::string("there is no libnvidia-ml.so.1"));
  const auto asked = environment.find("CUDA_VISIBLE_DEVICES");
  const std::vector<Gpu> gpus = visible_gpus(
      nvml,
      asked != environment.end() ? asked->second.c_str() : std::getenv("CUDA_VISIBLE_DEVICES"));
  const auto begin = steady_clock::now();
  std::string busy = busy_gpu(nvml, gpus), told = busy;
  for (int quiet = 0;
       !told.empty() && quiet < kQuietLooks && steady_clock::now() - begin < limit;) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kBetween, limit));
    busy = busy_gpu(nvml, gpus);
    quiet = busy.empty() ? quiet + 1 : 0;
  }
  (void)nvml.call("nvmlShutdown");
  if (told.empty())
    return {};
  const auto waited = base::format_ns(static_cast<double>((steady_clock::now() - begin).count()));
  return busy.empty() ? "--wait-idle: waited " + waited + " for the GPU (" + told + ")"
                      : "--wait-idle: " + busy + " after " + waited + "; the program runs anyway";
}

class Idle : public Stage {
 public:
  Idle(Run& run, std::chrono::nanoseconds limit) : Stage(run), limit_(limit) {}
  base::Result<void> run() override {
    const std::string waited = wait_for_idle(limit_, base_request(run_.config, run_.folder).env);
    if (!waited.empty())
      run_.note(waited);
    return {};
  }

 private:
  std::chrono::nanoseconds limit_;
};

}  // namespace

std::unique_ptr<Stage> idle_stage(Run& run, std::chrono::nanoseconds limit) {
  return std::make_unique<Idle>(run, limit);
}

}  // namespace rangescope::profile
