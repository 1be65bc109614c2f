// Sampling while a program is profiled: which counters, how often, and the one call around the
// program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/session.hpp"
#include "sample/cpu/recorder.hpp"
#include "sample/gpu/helper.hpp"

namespace rangescope::profile {

/// How often is `auto`: an eighth of a core of the sampling process on an H200
/// (docs/measurements.md), most of it in CUPTI; ten times as often it takes two thirds.
inline constexpr std::int64_t kAutoSample_ns = 1'000'000;

/// No divisor of what programs do in steps of milliseconds; it costs a program less than one
/// percent.
inline constexpr std::int64_t kAutoCpu_hz = 199;
/// Of a process whose threads come and go.
inline constexpr std::int64_t kOftenCpu_hz = 1999;

/// Where names of functions are kept between runs; "" where there is no such place.
[[nodiscard]] std::filesystem::path names_cache();

struct SampleChoice {
  bool off = false;
  std::optional<std::int64_t> interval_ns;  ///< absent: auto
  std::vector<std::string> metrics;         ///< counters instead of those of conf/sample
  bool cpu_off = false;
  std::optional<std::int64_t> cpu_hz;  ///< of a thread's CPU time; absent: auto
  std::vector<std::string>
      cpu_counters;               ///< groups of conf/cpu_counters, and events by perf's names
  std::string regions;            ///< sample::cpu::Options::regions
  std::filesystem::path library;  ///< likewise
};

/// SampleChoice::regions by the settings of the library, which sees them where something is
/// launched.
[[nodiscard]] std::string regions_of(const std::map<std::string, std::string>& settings);

/// Python's `__main__` in patterns ("__main__.*", "step=__main__.step"; by lines) is the module of
/// the script that the command runs: "two" of `python3 two.py`, "pkg.tool" of `python3 -m
/// pkg.tool`. Patterns stay as they are where the command names neither.
[[nodiscard]] std::string name_main(std::string_view patterns,
                                    std::span<const std::string> command);

/// A sentence on patterns of `option` that match no Python function of the session; "" where each
/// matches one. With GPU work the library in the program matched them, and only regions tell: a
/// pattern that might be one of them counts as matched.
[[nodiscard]] std::string unmatched_functions(const std::vector<std::string>& patterns,
                                              std::span<const std::string> command,
                                              const model::Session& session,
                                              std::string_view option = "--functions");

/// What one pass of PM sampling collects on a chip.
struct SamplePlan {
  std::string chip, cupti;
  std::vector<std::string> metrics;
  std::vector<std::string> left_out;  ///< not of this chip, or they would take another pass
};

/// What one pass holds of the counters that are wanted on a chip, by its name or its product's. No
/// GPU is needed. kUsage where CUPTI knows no such chip; kToolMissing as sample::open_cupti().
[[nodiscard]] base::Result<SamplePlan> plan_sampling(const SampleChoice& choice,
                                                     const std::string& chip);

/// Begins to sample into the folder of captures; nothing where sampling is off. Where it cannot be,
/// an error only if an interval was asked for. `counters`: the program counts itself; then counters
/// are sampled too only if an interval was asked for, whenever the program does not hold the
/// device.
[[nodiscard]] base::Result<std::optional<sample::Beside>> begin_sampling(
    const SampleChoice& choice, const std::filesystem::path& captures, bool counters);

/// The events of the groups and names that are wanted. kUsage with the nearest of those that there
/// are.
[[nodiscard]] base::Result<std::vector<sample::cpu::CounterEvent>> wanted_events(
    const SampleChoice& choice);

/// Begins to sample the CPU of the program that this thread starts next; nothing where that is off,
/// or cannot be and was not asked for. `to`: of that process instead, which is an error where it
/// cannot be.
[[nodiscard]] base::Result<std::optional<sample::cpu::Recorder>> begin_cpu(
    const SampleChoice& choice,
    const std::filesystem::path& captures,
    const sample::cpu::Running* to = nullptr);
/// Behind Recorder::stop(): names what was seen. Nothing of it stays where the program left no
/// capture.
void end_cpu(std::optional<sample::cpu::Recorder>& recorder, const std::filesystem::path& captures);

}  // namespace rangescope::profile
