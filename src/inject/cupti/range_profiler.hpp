// One CUDA context's hardware counters through CUPTI's Range Profiler, as a session that is armed,
// used and stopped.
//
// Measured on an H200 machine, CUDA 13.0: Start 17 ms (170 ms with room for 2,000 kernels), Stop 4
// ms (18 ms), PushRange 0.3 ms, PopRange 0.6 ms, SetConfig and DecodeData a few microseconds. So
// Start and Stop are done on a worker thread.
//
// Stop returns the next pass and nesting level, which have to be passed to SetConfig. A new round
// needs a new image. Values that are read before all passes are complete are NaN.
//
// Metrics that CUPTI cannot count together (NVLink and PCIe with SMs and DRAM) are in several
// configurations, each with its own passes and image. CUPTI's object counts only for the first
// configuration that it was given; with another one every call succeeds, and values are NaN (seen
// on an H100, CUDA 13.0). So each configuration gets its own object. Metrics that the driver cannot
// count on this machine are left out and reported.
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

/// The counter data that have been collected of a target and a configuration.
struct Image {
  Bytes data;
  Bytes before;            ///< a copy from when the current session was armed
  std::size_t ranges = 0;  ///< capacity
  std::size_t pass = 0, level = 1;
  std::size_t pass_before = 0, level_before = 1;
};

class RangeProfiler {
 public:
  RangeProfiler& operator=(RangeProfiler&&) = delete;

  /// Makes the profiler for the current context, with the metrics of the plan that can be counted
  /// here; the others are reported to `tell`. On failure false, and one sentence that says what to
  /// do (permission, another holder of the counters, metrics that this machine lacks).
  [[nodiscard]] bool enable(const RangeApi& api,
                            CUcontext context,
                            std::uint32_t device,
                            const counters::Plan& plan,
                            void (*tell)(const char*),
                            char* why,
                            std::size_t why_bytes);
  void disable();
  /// Ends the current session and disables, at the end of the program or of the context, so that
  /// CUPTI and the driver are not torn down during a session.
  void close_down();

  /// The passes of all configurations.
  [[nodiscard]] std::size_t passes() const;
  /// The configuration of pass `pass` of a round; `pass` becomes the pass within it.
  [[nodiscard]] std::size_t configuration(std::size_t& pass) const;
  [[nodiscard]] std::size_t configurations() const { return set_count_; }
  /// Leaves out a configuration that the hardware could not be programmed for. False if no other is
  /// left, if it has worked before, or if the configuration is not the cause.
  [[nodiscard]] bool give_up(std::size_t configuration, void (*tell)(const char*));
  [[nodiscard]] bool given_up(std::size_t configuration) const {
    return sets_[configuration].passes == 0;
  }
  /// The configurations that were given up, one bit each.
  [[nodiscard]] std::uint32_t given_up() const;
  /// Gives up the configurations that an earlier run gave up; true if that changes something.
  [[nodiscard]] bool give_up_all(std::uint32_t configurations);

  /// Prepares the profiler for a configuration, before make() and configure(). After another
  /// configuration it makes a new object.
  [[nodiscard]] bool turn_to(std::size_t configuration);
  /// Makes an empty image of a configuration with room for `ranges`.
  [[nodiscard]] bool make(std::size_t configuration, Image& image, std::size_t ranges);
  /// Configures the session for the image's next pass; `kernels`: each kernel is a range.
  [[nodiscard]] bool configure(std::size_t configuration, Image& image, bool kernels);
  [[nodiscard]] bool start();
  [[nodiscard]] bool push(const char* name);
  [[nodiscard]] bool pop();
  /// Ends the pass and stores its data in the image; with `discard` restores the image from before
  /// the session. Does nothing for a session that was configured but never started.
  [[nodiscard]] bool stop(Image& image, bool discard);
  /// The number of ranges in a complete image.
  [[nodiscard]] std::size_t ranges(const Image& image) const;
  /// Stores the values of a configuration's metrics, in the order of the plan. Links without a
  /// value are reported to `tell` once.
  [[nodiscard]] bool evaluate(std::size_t configuration,
                              const Image& image,
                              std::size_t range,
                              double* values,
                              void (*tell)(const char*));
  [[nodiscard]] bool enabled() const { return object_ != nullptr; }
  /// "Start 10 calls 170.1 ms, ...": the time that CUPTI's calls took.
  void describe_cost(char* text, std::size_t bytes) const;
  /// The last call that failed, and its error: "call: text".
  [[nodiscard]] const char* error() const { return error_; }

 private:
  [[nodiscard]] bool check(CUptiResult result, const char* call);
  [[nodiscard]] bool make_object();
  [[nodiscard]] bool end_object();
  void let_go();  ///< releases the device, when there is no object any more
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
    bool reported_lacking = false;  // that metrics have no value
  };
  /// Configures the metrics of a set that can be counted. False, with the last refusal, if none
  /// can.
  [[nodiscard]] bool prepare(Set& set,
                             const Bytes& availability,
                             void (*tell)(const char*),
                             char* why,
                             std::size_t why_bytes);
  [[nodiscard]] bool read_availability(Bytes& availability);
  void take_metrics(const counters::Plan& plan);
  static bool has_device_metrics(const Set& set);
  /// "a.sum, b.sum (of c, d)": the chosen metrics (null: all), and the groups that need them.
  void name_metrics(const Set& set, const bool* chosen, char* text, std::size_t bytes) const;

  const counters::Plan* plan_ = nullptr;
  CUcontext context_ = nullptr;
  std::uint32_t device_ = 0;
  Set sets_[counters::kMaxConfigurations];
  std::size_t set_count_ = 0;
  std::size_t set_ = 0;               // the one that the object is for
  bool fresh_ = false;                // the object has not been configured yet
  CUptiResult last_ = CUPTI_SUCCESS;  // the last error
  bool started_ = false;
  bool pushed_ = false;
  Spent spent_[kCalls];
  char chip_[32] = {};
  char error_[256] = {};
};

}  // namespace rangescope::inject::cupti
