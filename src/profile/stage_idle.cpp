// `--wait-idle`: a run begins when no other program uses its GPUs.
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
    const auto is_named = [&](const Gpu& gpu) {
      if (number)
        return *number == gpu.index;
      return !word.empty() &&
             nvml.text("nvmlDeviceGetUUID", gpu.device).starts_with(base::trim(word));
    };
    for (const Gpu& gpu : all)
      if (is_named(gpu))
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

/// Waits, at most `limit`, until NVML reports for a second that the program's GPUs are idle: those
/// of CUDA_VISIBLE_DEVICES, of the program's `environment` or else of ours. Returns a note for the
/// report; "" if they were idle at once.
std::string wait_for_idle(std::chrono::nanoseconds limit,
                          const std::map<std::string, std::string>& environment) {
  const base::Nvml nvml;
  const int started = nvml.loaded() ? nvml.call("nvmlInit_v2") : 0;
  const std::string unknown = "--wait-idle: whether a GPU is busy is not known: ";
  if (!nvml.loaded())
    return unknown + "there is no libnvidia-ml.so.1";
  if (started != 0)
    return unknown + nvml.words_of(started);
  const auto of_program = environment.find("CUDA_VISIBLE_DEVICES");
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (of_program != environment.end())
    visible = of_program->second.c_str();
  const std::vector<Gpu> gpus = visible_gpus(nvml, visible);
  const auto begin = steady_clock::now();
  const std::string first_busy = busy_gpu(nvml, gpus);
  std::string busy = first_busy;
  int quiet_looks = 0;
  const auto is_over = [&] {
    return quiet_looks >= kQuietLooks || steady_clock::now() - begin >= limit;
  };
  while (!first_busy.empty() && !is_over()) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kBetween, limit));
    busy = busy_gpu(nvml, gpus);
    ++quiet_looks;
    if (!busy.empty())
      quiet_looks = 0;
  }
  (void)nvml.call("nvmlShutdown");
  if (first_busy.empty())
    return {};
  const auto waited = base::format_ns(static_cast<double>((steady_clock::now() - begin).count()));
  if (busy.empty())
    return "--wait-idle: waited " + waited + " for the GPU (" + first_busy + ")";
  return "--wait-idle: " + busy + " after " + waited + "; the program runs anyway";
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
