#include "inject/cupti/range_profiler.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "inject/cupti/aside.hpp"

namespace rangescope::inject::cupti {
namespace {

// NVLink, C2C and PCIe are counted for the device, all other metrics for the context. One
// configuration never has both.
bool is_counted_for_device(const char* metric) {
  for (const char* beginning : {"nvl", "c2c", "ctc__", "pcie__"})
    if (std::strncmp(metric, beginning, std::strlen(beginning)) == 0)
      return true;
  return false;
}

constexpr const char* kLinks = " (links are often kept from virtual machines)";

// Appends texts to a buffer, cut at its end.
class BoundedText {
 public:
  BoundedText(char* text, std::size_t bytes) : text_(text), bytes_(bytes) { text[0] = '\0'; }
  void add(const char* prefix, const char* word) {
    const int added = std::snprintf(text_ + used_, bytes_ - used_, "%s%s", prefix, word);
    if (added > 0)
      used_ = std::min(used_ + static_cast<std::size_t>(added), bytes_ - 1);
  }

 private:
  char* text_;
  std::size_t bytes_;
  std::size_t used_ = 0;
};

}  // namespace

class RangeProfiler::Timed {
 public:
  explicit Timed(Spent& spent) : spent_(spent), begin_(now()) {}
  ~Timed() {
    ++spent_.calls;
    spent_.ns += now() - begin_;
  }
  Timed& operator=(Timed&&) = delete;

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
  static constexpr const char* kNames[kCalls] = {
      "Start", "Stop", "PushRange", "PopRange", "evaluation"};
  BoundedText out(text, bytes);
  for (int i = 0; i < kCalls; ++i) {
    char cost[64];
    const double ms = static_cast<double>(spent_[i].ns) / 1e6;
    std::snprintf(cost, sizeof cost, "%s %u calls %.1f ms", kNames[i], spent_[i].calls, ms);
    out.add(i == 0 ? "" : ", ", cost);
  }
}

bool RangeApi::load(const Api& cupti, char* why, std::size_t why_bytes) {
  api = &cupti;
  return RANGESCOPE_CUPTI_RANGE(RANGESCOPE_CUPTI_NEED) host.load(cupti, why, why_bytes);
}

bool RangeProfiler::check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS)
    return true;
  last_ = result;
  std::snprintf(
      error_, sizeof error_, "%s: %s%s", call, api_->api->text(result), advice_of(result));
  return false;
}

void RangeProfiler::name_metrics(const Set& set,
                                 const bool* chosen,
                                 char* text,
                                 std::size_t bytes) const {
  BoundedText out(text, bytes);
  const char* separator = "";
  for (std::size_t i = 0; i < set.count; ++i) {
    if (chosen != nullptr && !chosen[i])
      continue;
    out.add(separator, set.metrics[i]);
    separator = ", ";
  }
  const char* previous = nullptr;
  for (std::size_t i = 0; i < set.count; ++i) {
    const char* groups = plan_->groups[set.places[i]];
    if (groups == nullptr || (chosen != nullptr && !chosen[i]))
      continue;
    if (previous == nullptr)
      out.add(" (of ", groups);
    else if (std::strcmp(previous, groups) != 0)
      out.add(", ", groups);
    previous = groups;
  }
  if (previous != nullptr)
    out.add(")", "");
}

bool RangeProfiler::has_device_metrics(const Set& set) {
  return std::any_of(set.metrics, set.metrics + set.count, is_counted_for_device);
}

bool RangeProfiler::prepare(Set& set,
                            const Bytes& availability,
                            void (*tell)(const char*),
                            char* why,
                            std::size_t why_bytes) {
  bool refused[counters::kMaxMetrics] = {};
  // CUPTI's documentation says to pass no availability for metrics of the device. With it, NVLink
  // is refused on machines without NVLink (CUPTI_ERROR_UNKNOWN); without it, NVLink has no value.
  const Bytes* image = has_device_metrics(set) ? nullptr : &availability;
  if (!set.host.open(api_->host, chip_, image, why, why_bytes))
    return false;
  if (set.host.add(set.metrics, set.count, refused, why, why_bytes))
    return set.host.config(set.config, set.passes, why, why_bytes);
  char names[640], text[1000];
  name_metrics(set, refused, names, sizeof names);
  std::size_t left = 0;
  for (std::size_t i = 0; i < set.count; ++i) {
    if (refused[i])
      continue;
    set.metrics[left] = set.metrics[i];
    set.places[left++] = set.places[i];
  }
  if (left < set.count) {
    std::snprintf(
        text, sizeof text, "the driver does not offer %s on device %u: %s", names, device_, why);
    tell(text);
  }
  const bool has_fewer = left > 0 && left < set.count;
  set.count = left;
  if (!has_fewer || !set.host.open(api_->host, chip_, image, why, why_bytes))
    return false;
  return set.host.add(set.metrics, set.count, refused, why, why_bytes) &&
         set.host.config(set.config, set.passes, why, why_bytes);
}

std::size_t RangeProfiler::passes() const {
  std::size_t total = 0;
  for (std::size_t i = 0; i < set_count_; ++i)
    total += sets_[i].passes;
  return total;
}

std::size_t RangeProfiler::configuration(std::size_t& pass) const {
  std::size_t index = 0;
  for (; index + 1 < set_count_ && pass >= sets_[index].passes; ++index)
    pass -= sets_[index].passes;
  return index;
}

bool RangeProfiler::give_up(std::size_t configuration, void (*tell)(const char*)) {
  Set& set = sets_[configuration];
  const bool concerns_all_metrics = last_ == CUPTI_ERROR_HARDWARE_BUSY ||
                                    last_ == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
                                    last_ == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES;
  if (set.worked || concerns_all_metrics)
    return false;
  char names[640], text[1000];
  name_metrics(set, nullptr, names, sizeof names);
  std::snprintf(text,
                sizeof text,
                "the driver cannot count %s on device %u%s: %s",
                names,
                device_,
                has_device_metrics(set) ? kLinks : "",
                error_);
  tell(text);
  set.passes = 0;
  return passes() > 0;
}

std::uint32_t RangeProfiler::given_up() const {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < set_count_; ++i)
    if (given_up(i))
      bits |= 1u << i;
  return bits;
}

bool RangeProfiler::give_up_all(std::uint32_t configurations) {
  const std::uint32_t previous = given_up();
  for (std::size_t i = 0; i < set_count_; ++i) {
    if ((configurations >> i & 1) != 0)
      sets_[i].passes = 0;
  }
  return given_up() != previous;
}

bool RangeProfiler::read_availability(Bytes& availability) {
  CUpti_Profiler_GetCounterAvailability_Params params = {
      CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE};
  params.ctx = context_;
  const auto call = [&] {
    return check(api_->cuptiProfilerGetCounterAvailability(&params),
                 "cuptiProfilerGetCounterAvailability");
  };
  if (!call())
    return false;  // sets the size
  if (!availability.resize(params.counterAvailabilityImageSize))
    return false;
  params.pCounterAvailabilityImage = availability.data();
  return call();
}

void RangeProfiler::take_metrics(const counters::Plan& plan) {
  set_count_ = plan.configuration_count;
  for (std::size_t i = 0; i < set_count_; ++i) {
    Set& set = sets_[i];
    for (std::size_t m = plan.begins[i]; m < plan.begins[i + 1]; ++m, ++set.count) {
      set.metrics[set.count] = plan.metrics[m];
      set.places[set.count] = static_cast<std::uint16_t>(m);
    }
  }
}

bool RangeProfiler::enable(const RangeApi& api,
                           CUcontext context,
                           std::uint32_t device,
                           const counters::Plan& plan,
                           void (*tell)(const char*),
                           char* why,
                           std::size_t why_bytes) {
  api_ = &api;
  plan_ = &plan;
  context_ = context;
  device_ = device;
  const auto refuse = [&] {
    std::snprintf(why, why_bytes, "%s", error_);
    return false;
  };
  CUpti_Profiler_Initialize_Params init = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  if (!check(api.cuptiProfilerInitialize(&init), "cuptiProfilerInitialize"))
    return refuse();
  CUpti_Device_GetChipName_Params chip = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
  chip.deviceIndex = device;
  if (!check(api.cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName"))
    return refuse();
  std::snprintf(chip_, sizeof chip_, "%s", chip.pChipName);

  Bytes availability;
  if (!read_availability(availability))
    return refuse();
  const bool was_enabled_before = set_count_ > 0;  // then refused metrics are known already
  if (!was_enabled_before)
    take_metrics(plan);
  bool any_prepared = false;
  for (std::size_t i = 0; i < set_count_; ++i) {
    Set& set = sets_[i];
    if (was_enabled_before && set.passes == 0)
      continue;
    const bool is_prepared = prepare(set, availability, tell, why, why_bytes);
    if (!is_prepared && was_enabled_before)
      return false;
    if (!is_prepared)
      set.passes = 0;
    any_prepared = any_prepared || is_prepared;
  }
  if (!any_prepared)
    return false;
  return make_object() || refuse();
}

bool RangeProfiler::make_object() {
  CUpti_RangeProfiler_Enable_Params params = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
  params.ctx = context_;
  if (!check(api_->cuptiRangeProfilerEnable(&params), "cuptiRangeProfilerEnable"))
    return false;
  object_ = params.pRangeProfilerObject;
  fresh_ = true;
  return true;
}

bool RangeProfiler::end_object() {
  CUpti_RangeProfiler_Disable_Params params = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = std::exchange(object_, nullptr);
  return check(api_->cuptiRangeProfilerDisable(&params), "cuptiRangeProfilerDisable");
}

bool RangeProfiler::turn_to(std::size_t configuration) {
  const bool needs_new_object = !fresh_ && set_ != configuration;
  if (needs_new_object && !(end_object() && make_object())) {
    let_go();
    return false;
  }
  set_ = configuration;
  return true;
}

void RangeProfiler::disable() {
  if (object_ == nullptr)
    return;
  (void)end_object();
  let_go();
}

void RangeProfiler::let_go() {
  for (Set& set : sets_)
    set.host.close();
  release_device();
}

void RangeProfiler::close_down() {
  if (object_ == nullptr)
    return;
  if (pushed_)
    (void)pop();
  if (started_) {
    CUpti_RangeProfiler_Stop_Params params = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
    params.pRangeProfilerObject = object_;
    (void)check(api_->cuptiRangeProfilerStop(&params), "cuptiRangeProfilerStop");
    started_ = false;
  }
  disable();
}

bool RangeProfiler::make(std::size_t configuration, Image& image, std::size_t ranges) {
  Set& set = sets_[configuration];
  CUpti_RangeProfiler_GetCounterDataSize_Params size = {
      CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
  size.pRangeProfilerObject = object_;
  size.pMetricNames = set.metrics;
  size.numMetrics = set.count;
  size.maxNumOfRanges = ranges;
  size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
  if (!check(api_->cuptiRangeProfilerGetCounterDataSize(&size),
             "cuptiRangeProfilerGetCounterDataSize"))
    return false;
  if (!image.data.resize(size.counterDataSize)) {
    std::snprintf(
        error_, sizeof error_, "no memory for counter data of %zu bytes", size.counterDataSize);
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
  return check(api_->cuptiRangeProfilerCounterDataImageInitialize(&init),
               "cuptiRangeProfilerCounterDataImageInitialize");
}

bool RangeProfiler::configure(std::size_t configuration, Image& image, bool kernels) {
  Set& set = sets_[configuration];
  fresh_ = false;
  if (!image.before.copy(image.data)) {
    std::snprintf(error_, sizeof error_, "no memory for a copy of the counter data");
    return false;
  }
  image.pass_before = image.pass;
  image.level_before = image.level;
  CUpti_RangeProfiler_SetConfig_Params params = {CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  params.configSize = set.config.size();
  params.pConfig = set.config.data();
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
  if (object_ == nullptr)
    return false;  // just released
  const Timed timed(spent_[kStart]);
  CUpti_RangeProfiler_Start_Params params = {CUpti_RangeProfiler_Start_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  started_ = check(api_->cuptiRangeProfilerStart(&params), "cuptiRangeProfilerStart");
  sets_[set_].worked = sets_[set_].worked || started_;
  return started_;
}

bool RangeProfiler::push(const char* name) {
  if (object_ == nullptr)
    return false;
  const Timed timed(spent_[kPush]);
  CUpti_RangeProfiler_PushRange_Params params = {CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  params.pRangeName = name;
  pushed_ = check(api_->cuptiRangeProfilerPushRange(&params), "cuptiRangeProfilerPushRange");
  return pushed_;
}

bool RangeProfiler::pop() {
  if (object_ == nullptr)
    return false;
  const Timed timed(spent_[kPop]);
  pushed_ = false;
  CUpti_RangeProfiler_PopRange_Params params = {CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  return check(api_->cuptiRangeProfilerPopRange(&params), "cuptiRangeProfilerPopRange");
}

bool RangeProfiler::stop(Image& image, bool discard) {
  if (!std::exchange(started_, false))
    return true;
  if (pushed_ && !pop())
    return false;  // the program did not end the range
  const Timed timed(spent_[kStop]);
  CUpti_RangeProfiler_Stop_Params params = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
  params.pRangeProfilerObject = object_;
  if (!check(api_->cuptiRangeProfilerStop(&params), "cuptiRangeProfilerStop"))
    return false;
  CUpti_RangeProfiler_DecodeData_Params decode = {
      CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
  decode.pRangeProfilerObject = object_;
  if (!check(api_->cuptiRangeProfilerDecodeData(&decode), "cuptiRangeProfilerDecodeData"))
    return false;
  if (discard) {
    std::memcpy(image.data.data(), image.before.data(), image.data.size());
    image.pass = image.pass_before;
    image.level = image.level_before;
    return true;
  }
  image.pass = params.passIndex;
  image.level = params.targetNestingLevel;
  return true;
}

std::size_t RangeProfiler::ranges(const Image& image) const {
  CUpti_RangeProfiler_GetCounterDataInfo_Params params = {
      CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
  params.pCounterDataImage = image.data.data();
  params.counterDataImageSize = image.data.size();
  const CUptiResult result = api_->cuptiRangeProfilerGetCounterDataInfo(&params);
  if (result != CUPTI_SUCCESS)
    return 0;
  return params.numTotalRanges;
}

bool RangeProfiler::evaluate(std::size_t configuration,
                             const Image& image,
                             std::size_t range,
                             double* values,
                             void (*tell)(const char*)) {
  const Timed timed(spent_[kEvaluate]);
  Set& set = sets_[configuration];
  double evaluated[counters::kMaxMetrics];
  if (!set.host.evaluate(image.data, range, set.metrics, set.count, evaluated))
    return false;
  bool lacks_value[counters::kMaxMetrics];
  bool any_lacks_value = false;
  for (std::size_t i = 0; i < set.count; ++i) {
    values[set.places[i]] = evaluated[i];
    lacks_value[i] = std::isnan(evaluated[i]) && is_counted_for_device(set.metrics[i]);
    any_lacks_value = any_lacks_value || lacks_value[i];
  }
  if (any_lacks_value && !std::exchange(set.reported_lacking, true)) {
    char names[640], text[1000];
    name_metrics(set, lacks_value, names, sizeof names);
    std::snprintf(text,
                  sizeof text,
                  "the driver gives no value of %s on device %u%s",
                  names,
                  device_,
                  kLinks);
    tell(text);
  }
  return true;
}

}  // namespace rangescope::inject::cupti
