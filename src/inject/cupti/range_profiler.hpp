// One CUDA context's hardware counters through CUPTI's Range Profiler, as a session that is armed,
// used and stopped.
//
// Measured on an H200 machine, CUDA 13.0: Start 17 ms (170 ms with room for 2,000 kernels), Stop 4
// ms (18 ms), PushRange 0.3 ms, PopRange 0.6 ms, SetConfig and DecodeData a few microseconds. So
// Start and Stop are done on a worker thread.
//
// Stop answers with the next pass and nesting level, which SetConfig wants back. A new round needs
// a fresh image; values read before all passes are in are NaN.
//
// Metrics that CUPTI cannot count together (NVLink and PCIe beside SMs and DRAM) are in several
// configurations, each with passes and an image of its own. CUPTI's object counts for the first
// configuration that it was given alone; after another one every call succeeds, and values are NaN
// (seen on an H100, CUDA 13.0). So each gets an object of its own. What the driver cannot count on
// this machine is left out and told.
#pragma once

#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstddef>
#include <cstdint>

#include "inject/counters/plan.hpp"
#include "inject/cupti/host.hpp"

namespace rangescope::inject::cupti {

/// The functions of cupti_range_profiler.h and cupti_target.h, looked up once.
struct RangeApi {
#define RANGESCOPE_CUPTI_RANGE(X)                 \
  X(cuptiProfilerInitialize)                      \
  X(cuptiProfilerGetCounterAvailability)          \
  X(cuptiDeviceGetChipName)                       \
  X(cuptiRangeProfilerEnable)                     \
  X(cuptiRangeProfilerDisable)                    \
  X(cuptiRangeProfilerGetCounterDataSize)         \
  X(cuptiRangeProfilerCounterDataImageInitialize) \
  X(cuptiRangeProfilerSetConfig)                  \
  X(cuptiRangeProfilerStart)                      \
  X(cuptiRangeProfilerStop)                       \
  X(cuptiRangeProfilerPushRange)                  \
  X(cuptiRangeProfilerPopRange)                   \
  X(cuptiRangeProfilerDecodeData)                 \
  X(cuptiRangeProfilerGetCounterDataInfo)
#define RANGESCOPE_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
  RANGESCOPE_CUPTI_RANGE(RANGESCOPE_CUPTI_MEMBER)
#undef RANGESCOPE_CUPTI_MEMBER
  const Api* api = nullptr;
  HostApi host;

  [[nodiscard]] bool load(const Api& cupti, char* why, std::size_t why_bytes);
};

/// Counter data of a target and a configuration as far as it is collected.
struct Image {
  Bytes data;
  Bytes before;            ///< as it was when the session under way was armed
  std::size_t ranges = 0;  ///< room
  std::size_t pass = 0, level = 1;
  std::size_t pass_before = 0, level_before = 1;
};

class RangeProfiler {
 public:
  RangeProfiler& operator=(RangeProfiler&&) = delete;

  /// Makes the profiler for the context that is current, with the metrics of the plan that can be
  /// counted here; `tell` hears of the others. On failure false and one sentence with what to do
  /// (permission, another holder of the counters, metrics that this machine lacks).
  [[nodiscard]] bool enable(const RangeApi& api, CUcontext context, std::uint32_t device,
                            const counters::Plan& plan, void (*tell)(const char*), char* why,
                            std::size_t why_bytes);
  void disable();
  /// Ends whatever is under way and disables, at the end of the program or of the context: CUPTI
  /// and the driver are not torn down under a session that runs.
  void close_down();

  /// Of all configurations.
  [[nodiscard]] std::size_t passes() const;
  /// The configuration that pass `pass` of a round belongs to; `pass` becomes the pass of it.
  [[nodiscard]] std::size_t configuration(std::size_t& pass) const;
  [[nodiscard]] std::size_t configurations() const { return set_count_; }
  /// The hardware could not be programmed for this configuration: goes on without it. False when
  /// nothing else is left, when it has worked before, or when it is not the configuration's fault.
  [[nodiscard]] bool give_up(std::size_t configuration, void (*tell)(const char*));
  [[nodiscard]] bool given_up(std::size_t configuration) const {
    return sets_[configuration].passes == 0;
  }
  /// Those that were given up, a bit each.
  [[nodiscard]] std::uint32_t given_up() const;
  /// As an earlier run found out; true when that changes something.
  [[nodiscard]] bool give_up_all(std::uint32_t which);

  /// Makes the profiler ready for a configuration, before make() and configure(): anew where it
  /// served another one.
  [[nodiscard]] bool turn_to(std::size_t configuration);
  /// An empty image of a configuration with room for `ranges`.
  [[nodiscard]] bool make(std::size_t configuration, Image& image, std::size_t ranges);
  /// Configures the session for the image's next pass; `kernels`: every kernel is a range by
  /// itself.
  [[nodiscard]] bool configure(std::size_t configuration, Image& image, bool kernels);
  [[nodiscard]] bool start();
  [[nodiscard]] bool push(const char* name);
  [[nodiscard]] bool pop();
  /// Ends the pass and puts its data into the image; with `discard` the image is as before the
  /// session. A session that was configured and never started is only forgotten.
  [[nodiscard]] bool stop(Image& image, bool discard);
  /// Ranges that a complete image holds.
  [[nodiscard]] std::size_t ranges(const Image& image) const;
  /// Puts the values of a configuration's metrics to the places that they have in the plan; `tell`
  /// hears once of links that have no value.
  [[nodiscard]] bool evaluate(std::size_t configuration, const Image& image, std::size_t range,
                              double* values, void (*tell)(const char*));
  [[nodiscard]] bool enabled() const { return object_ != nullptr; }
  /// "Start 10 calls 170.1 ms, ...": where the time went that CUPTI's calls took.
  void describe_cost(char* text, std::size_t bytes) const;
  /// CUPTI's answer to the last call that failed: "call: text".
  [[nodiscard]] const char* error() const { return error_; }

 private:
  [[nodiscard]] bool check(CUptiResult result, const char* call);
  [[nodiscard]] bool make_object();
  [[nodiscard]] bool end_object();
  void let_go();  ///< of the device, where there is no object any more
  enum Call : std::uint8_t { kStart, kStop, kPush, kPop, kEvaluate, kCalls };
  // Adds the time until it goes out of scope.
  class Timed;
  struct Spent {
    std::uint32_t calls = 0;
    std::int64_t ns = 0;
  };

  const RangeApi* api_ = nullptr;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  struct Set {
    Host host;
    Bytes config;
    const char* metrics[counters::kMaxMetrics];
    std::uint16_t places[counters::kMaxMetrics];  // in the plan
    std::size_t count = 0;
    std::size_t passes = 0;  // 0: it cannot be counted here
    bool worked = false;
    bool told = false;  // that metrics have no value
  };
  [[nodiscard]] bool prepare(Set& set, const Bytes& availability, void (*tell)(const char*),
                             char* why, std::size_t why_bytes);
  // "a.sum and b.sum (groups c, d)"
  void name_metrics(const Set& set, const bool* which, char* text, std::size_t bytes) const;

  const counters::Plan* plan_ = nullptr;
  CUcontext context_ = nullptr;
  std::uint32_t device_ = 0;
  Set sets_[counters::kMaxConfigurations];
  std::size_t set_count_ = 0;
  std::size_t set_ = 0;               // that the object is for
  bool fresh_ = false;                // it has not been configured yet
  CUptiResult last_ = CUPTI_SUCCESS;  // that was no success
  bool started_ = false;
  bool pushed_ = false;
  Spent spent_[kCalls];
  char chip_[32] = {};
  char error_[256] = {};
};

}  // namespace rangescope::inject::cupti
