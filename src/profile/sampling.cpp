#include "profile/sampling.hpp"

#include <cstdlib>

#include "base/log.hpp"
#include "base/text.hpp"
#include "config/metric_groups.hpp"
#include "wire/cpu.hpp"
#include "wire/samples.hpp"

namespace rangescope::profile {

base::Result<std::vector<sample::Wanted>> wanted_counters(const SampleChoice& choice) {
  std::vector<sample::Wanted> wanted;
  for (const std::string& text : choice.metrics)
    for (const std::string_view name : base::split(text, ',')) wanted.push_back({std::string(name)});
  if (!wanted.empty()) return wanted;
  auto groups = config::sampled_groups();
  if (!groups) return base::fail(std::move(groups));
  for (const model::MetricGroup& group : *groups)
    for (const model::GroupCounter& counter : group.counters)
      if (!counter.any.front().starts_with("nvml__")) wanted.push_back(counter.any);
  return wanted;
}

base::Result<std::optional<sample::Beside>> begin_sampling(const SampleChoice& choice,
                                                           const std::filesystem::path& captures, bool counters) {
  if (choice.off) return std::optional<sample::Beside>();
  sample::Options options;
  options.folder = captures / wire::samples::kFolder;
  options.interval_ns = choice.interval_ns.value_or(kAutoSample_ns);
  // Beside the program's own counters the sampler steps aside whenever they hold the device: only where that was asked
  // for, since each change of hands costs both some samples and occurrences. Else energy alone.
  if (!counters || choice.interval_ns) {
    auto wanted = wanted_counters(choice);
    if (!wanted) return base::fail(std::move(wanted));
    options.wanted = std::move(*wanted);
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  auto begun = sample::Beside::start(options);
  if (begun) return std::optional(std::move(*begun));
  std::filesystem::remove(options.folder, error);  // where it is empty
  if (choice.interval_ns) return base::fail(std::move(begun));
  base::detail("nothing is sampled: " + begun.error().what);
  return std::optional<sample::Beside>();
}

base::Result<std::optional<sample::cpu::Recorder>> begin_cpu(const SampleChoice& choice,
                                                             const std::filesystem::path& captures) {
  if (choice.cpu_off) return std::optional<sample::cpu::Recorder>();
  sample::cpu::Options options;
  options.folder = captures / wire::cpu::kFolder;
  options.interval_ns = 1'000'000'000 / choice.cpu_hz.value_or(kAutoCpu_hz);
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0')
    options.cache = std::filesystem::path(cache) / "rangescope" / "symbols";
  else if (home != nullptr && *home != '\0')
    options.cache = std::filesystem::path(home) / ".cache" / "rangescope" / "symbols";
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  auto begun = sample::cpu::Recorder::start(options);
  if (begun) return std::optional(std::move(*begun));
  if (!choice.cpu_hz) {
    base::detail("the CPU is not sampled: " + begun.error().what);
    if (sample::cpu::leave_refusal(options.folder, begun.error())) return std::optional<sample::cpu::Recorder>();
  }
  std::filesystem::remove_all(options.folder, error);
  if (choice.cpu_hz) return base::fail(std::move(begun));
  return std::optional<sample::cpu::Recorder>();
}

void end_cpu(std::optional<sample::cpu::Recorder>& recorder, const std::filesystem::path& captures) {
  if (!recorder) return;
  recorder->stop();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(captures, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename() != wire::cpu::kFolder) return;
  std::filesystem::remove_all(captures / wire::cpu::kFolder, error);
}

}  // namespace rangescope::profile
