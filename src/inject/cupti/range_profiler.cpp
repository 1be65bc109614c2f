#include "inject/cupti/range_profiler.hpp"

#include <time.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "inject/cupti/aside.hpp"

namespace rangescope::inject::cupti {

class RangeProfiler::Timed {
 public:
  explicit Timed(Spent& spent) : spent_(spent), begin_(now()) {}
  ~Timed() {
    ++spent_.calls;
    spent_.ns += now() - begin_;
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  static std::int64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
  }
  Spent& spent_;
  std::int64_t begin_;
};

void RangeProfiler::describe_cost(char* text, std::size_t bytes) const {
  static constexpr const char* kNames[kCalls] = {"Start", "Stop", "PushRange", "PopRange", "evaluation"};
  std::size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < kCalls && used < bytes; ++i) {
    const int more = std::snprintf(text + used, bytes - used, "%s%s %u calls %.1f ms", i == 0 ? "" : ", ", kNames[i],
                                   spent_[i].calls, static_cast<double>(spent_[i].ns) / 1e6);
    used += more > 0 ? static_cast<std::size_t>(more) : 0;
  }
}

bool RangeApi::load(const Api& cupti, char* why, std::size_t why_bytes) {
  api = &cupti;
  return RANGESCOPE_CUPTI_RANGE(RANGESCOPE_CUPTI_NEED) host.load(cupti, why, why_bytes);
}

bool RangeProfiler::check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return true;
  const char* advice = "";
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
      result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES) {
    advice =
        ". Run as root, or give the container CAP_SYS_ADMIN, or load the driver with "
        "NVreg_RestrictProfilingToAdminUsers=0";
  } else if (result == CUPTI_ERROR_HARDWARE_BUSY) {
    advice =
        ". Somebody else holds the counters: stop DCGM's profiling (dcgmi profile --pause), ncu, nsys, or "
        "let other runs of rangescope not sample (--sample off)";
  }
  std::snprintf(error_, sizeof error_, "%s: %s%s", call, api_->api->text(result), advice);
  return false;
}

bool RangeProfiler::enable(const RangeApi& api, CUcontext context, std::uint32_t device, const char* const* metrics,
                           std::size_t count, char* why, std::size_t why_bytes) {
  api_ = &api;
  metrics_ = metrics;
  metric_count_ = count;
  const auto refuse = [&] {
    std::snprintf(why, why_bytes, "%s", error_);
    return false;
  };
  CUpti_Profiler_Initialize_Params init = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  if (!check(api.cuptiProfilerInitialize(&init), "cuptiProfilerInitialize")) return refuse();
  CUpti_Device_GetChipName_Params chip = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
  chip.deviceIndex = device;
  if (!check(api.cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName")) return refuse();
  std::snprintf(chip_, sizeof chip_, "%s", chip.pChipName);

  Bytes availability;
  CUpti_Profiler_GetCounterAvailability_Params available = {CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE};
  available.ctx = context;
  if (!check(api.cuptiProfilerGetCounterAvailability(&available), "cuptiProfilerGetCounterAvailability"))
    return refuse();
  if (!availability.resize(available.counterAvailabilityImageSize)) return refuse();
  available.pCounterAvailabilityImage = availability.data();
  if (!check(api.cuptiProfilerGetCounterAvailability(&available), "cuptiProfilerGetCounterAvailability"))
    return refuse();

  std::size_t refused = 0;
  if (!host_.open(api.host, chip_, &availability, why, why_bytes) ||
      !host_.add(metrics, count, refused, why, why_bytes) || !host_.config(config_, passes_, why, why_bytes)) {
    return false;
  }
  CUpti_RangeProfiler_Enable_Params enable = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
  enable.ctx = context;
  if (!check(api.cuptiRangeProfilerEnable(&enable), "cuptiRangeProfilerEnable")) return refuse();
  object_ = enable.pRangeProfilerObject;
  return true;
}

void RangeProfiler::disable() {
  if (object_ == nullptr) return;
  CUpti_RangeProfiler_Disable_Params params = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = std::exchange(object_, nullptr);
  (void)check(api_->cuptiRangeProfilerDisable(&params), "cuptiRangeProfilerDisable");
  host_.close();
  release_device();
}

void RangeProfiler::close_down() {
  if (object_ == nullptr) return;
  if (pushed_) (void)pop();
  if (started_) {
    CUpti_RangeProfiler_Stop_Params params = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
    params.pRangeProfilerObject = object_;
    (void)check(api_->cuptiRangeProfilerStop(&params), "cuptiRangeProfilerStop");
    started_ = false;
  }
  disable();
}

bool RangeProfiler::make(Image& image, std::size_t ranges) {
  CUpti_RangeProfiler_GetCounterDataSize_Params size = {CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
  size.pRangeProfilerObject = object_;
  size.pMetricNames = const_cast<const char**>(metrics_);
  size.numMetrics = metric_count_;
  size.maxNumOfRanges = ranges;
  size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
  if (!check(api_->cuptiRangeProfilerGetCounterDataSize(&size), "cuptiRangeProfilerGetCounterDataSize")) return false;
  if (!image.data.resize(size.counterDataSize)) {
    std::snprintf(error_, sizeof error_, "no memory for counter data of %zu bytes", size.counterDataSize);
    return false;
  }
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params init = {
      CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
  init.pRangeProfilerObject = object_;
  init.counterDataSize = image.data.size();
  init.pCounterData = image.data.data();
  image.ranges = ranges;
  image.pass = 0;
  image.level = 1;
  image.complete = false;
  return check(api_->cuptiRangeProfilerCounterDataImageInitialize(&init),
               "cuptiRangeProfilerCounterDataImageInitialize");
}

bool RangeProfiler::configure(Image& image, bool kernels) {
  if (!image.before.copy(image.data)) {
    std::snprintf(error_, sizeof error_, "no memory for a copy of the counter data");
    return false;
  }
  image.pass_before = image.pass;
  image.level_before = image.level;
  CUpti_RangeProfiler_SetConfig_Params params = {CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  params.configSize = config_.size();
  params.pConfig = config_.data();
  params.counterDataImageSize = image.data.size();
  params.pCounterDataImage = image.data.data();
  params.range = kernels ? CUPTI_AutoRange : CUPTI_UserRange;
  params.replayMode = CUPTI_UserReplay;
  params.maxRangesPerPass = image.ranges;
  params.numNestingLevels = 1;
  params.minNestingLevel = 1;
  params.passIndex = image.pass;
  params.targetNestingLevel = static_cast<std::uint16_t>(image.level);
  return check(api_->cuptiRangeProfilerSetConfig(&params), "cuptiRangeProfilerSetConfig");
}

bool RangeProfiler::start() {
  if (object_ == nullptr) return false;  // released meanwhile
  const Timed timed(spent_[kStart]);
  CUpti_RangeProfiler_Start_Params params = {CUpti_RangeProfiler_Start_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  started_ = check(api_->cuptiRangeProfilerStart(&params), "cuptiRangeProfilerStart");
  return started_;
}

bool RangeProfiler::push(const char* name) {
  if (object_ == nullptr) return false;
  const Timed timed(spent_[kPush]);
  CUpti_RangeProfiler_PushRange_Params params = {CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  params.pRangeName = name;
  pushed_ = check(api_->cuptiRangeProfilerPushRange(&params), "cuptiRangeProfilerPushRange");
  return pushed_;
}

bool RangeProfiler::pop() {
  if (object_ == nullptr) return false;
  const Timed timed(spent_[kPop]);
  pushed_ = false;
  CUpti_RangeProfiler_PopRange_Params params = {CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  return check(api_->cuptiRangeProfilerPopRange(&params), "cuptiRangeProfilerPopRange");
}

bool RangeProfiler::stop(Image& image, bool discard) {
  if (!std::exchange(started_, false)) return true;
  if (pushed_ && !pop()) return false;  // its end was left to us
  const Timed timed(spent_[kStop]);
  CUpti_RangeProfiler_Stop_Params params = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  if (!check(api_->cuptiRangeProfilerStop(&params), "cuptiRangeProfilerStop")) return false;
  CUpti_RangeProfiler_DecodeData_Params decode = {CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
  decode.pRangeProfilerObject = object_;
  if (!check(api_->cuptiRangeProfilerDecodeData(&decode), "cuptiRangeProfilerDecodeData")) return false;
  if (discard) {
    std::memcpy(image.data.data(), image.before.data(), image.data.size());
    image.pass = image.pass_before;
    image.level = image.level_before;
    return true;
  }
  image.pass = params.passIndex;
  image.level = params.targetNestingLevel;
  image.complete = params.isAllPassSubmitted != 0;
  return true;
}

std::size_t RangeProfiler::ranges(const Image& image) const {
  CUpti_RangeProfiler_GetCounterDataInfo_Params params = {CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
  params.pCounterDataImage = image.data.data();
  params.counterDataImageSize = image.data.size();
  return api_->cuptiRangeProfilerGetCounterDataInfo(&params) == CUPTI_SUCCESS ? params.numTotalRanges : 0;
}

bool RangeProfiler::evaluate(const Image& image, std::size_t range, double* values) {
  const Timed timed(spent_[kEvaluate]);
  return host_.evaluate(image.data, range, metrics_, metric_count_, values);
}

}  // namespace rangescope::inject::cupti
