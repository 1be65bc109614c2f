// Order of calls (CUPTI 13.0, seen on an H200): counter availability of the device, a host object
// for PM sampling, all metrics in one call (each call of its own takes a pass of its own; a failed
// call spoils the object), the configuration image; then enable, configure, size and clear the
// counter data image, start. Decoding fills the image, which is cleared for the next round.
// Clearing costs by the image's size (35 KiB a sample on GH100), but what does not fit is lost (80
// of 250 samples a poll were kept at 50 kHz): so the image fits what is due and half as much again,
// for more comes while that is decoded, and not more (one for 2,048 samples took 12 ms of each poll
// at 10 kHz, with 553 samples in it; H100).
#include <dlfcn.h>
#include <link.h>

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "base/library.hpp"
#include "sample/gpu/counters.hpp"
#include "wire/cupti_places.hpp"

namespace rangescope::sample {
namespace {

using base::Code;
using base::Result;
using Bytes = std::vector<std::uint8_t>;

#define RANGESCOPE_SAMPLE_CUPTI(X)             \
  X(cuptiGetVersion)                           \
  X(cuptiGetResultString)                      \
  X(cuptiProfilerInitialize)                   \
  X(cuptiDeviceGetChipName)                    \
  X(cuptiProfilerHostInitialize)               \
  X(cuptiProfilerHostDeinitialize)             \
  X(cuptiProfilerHostGetSupportedChips)        \
  X(cuptiProfilerHostGetBaseMetrics)           \
  X(cuptiProfilerHostConfigAddMetrics)         \
  X(cuptiProfilerHostGetConfigImageSize)       \
  X(cuptiProfilerHostGetConfigImage)           \
  X(cuptiProfilerHostGetNumOfPasses)           \
  X(cuptiProfilerHostEvaluateToGpuValues)      \
  X(cuptiPmSamplingGetCounterAvailability)     \
  X(cuptiPmSamplingEnable)                     \
  X(cuptiPmSamplingDisable)                    \
  X(cuptiPmSamplingSetConfig)                  \
  X(cuptiPmSamplingGetCounterDataSize)         \
  X(cuptiPmSamplingCounterDataImageInitialize) \
  X(cuptiPmSamplingStart)                      \
  X(cuptiPmSamplingStop)                       \
  X(cuptiPmSamplingDecodeData)                 \
  X(cuptiPmSamplingGetCounterDataInfo)         \
  X(cuptiPmSamplingCounterDataGetSampleInfo)

struct Api {
  void* library = nullptr;
  std::string path;
  std::uint32_t version = 0;
#define RANGESCOPE_MEMBER(name) decltype(&::name) name = nullptr;
  RANGESCOPE_SAMPLE_CUPTI(RANGESCOPE_MEMBER)
#undef RANGESCOPE_MEMBER

  [[nodiscard]] std::string text(CUptiResult result) const {
    const char* words = nullptr;
    if (cuptiGetResultString != nullptr)
      cuptiGetResultString(result, &words);
    return words != nullptr ? words : "unknown CUPTI error";
  }
};

// "GPU-1b2c...", as NVML and the injected library write it.
std::string uuid_text(const unsigned char (&bytes)[16]) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

template <class Params>
Params sized(std::size_t size) {
  Params params{};
  params.structSize = size;
  return params;
}
#define RANGESCOPE_PARAMS(name, type) auto name = sized<type>(type##_STRUCT_SIZE)

bool is_denied(CUptiResult result) {
  return result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
         result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES;
}

/// The word that a failure begins with (counters.hpp).
const char* kind_of_failure(CUptiResult result) {
  if (is_denied(result))
    return "denied";
  if (result == CUPTI_ERROR_HARDWARE_BUSY || result == CUPTI_ERROR_HARDWARE)
    return "busy";
  if (result == CUPTI_ERROR_NOT_SUPPORTED || result == CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED ||
      result == CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED)
    return "old";
  return "failed";
}

base::Error failure(const Api& api, CUptiResult result, const char* call) {
  return {is_denied(result) ? Code::kPermission : Code::kToolMissing,
          std::string(kind_of_failure(result)) + ": " + api.text(result),
          call,
          {}};
}

Result<void> check(const Api& api, CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS)
    return {};
  return tl::make_unexpected(failure(api, result, call));
}

/// A configuration of metrics: the host object keeps names as pointers, so they live as long as it
/// does.
class Host {
 public:
  explicit Host(const Api& api) : api_(api) {}
  Host& operator=(Host&&) = delete;
  ~Host() {
    if (object_ == nullptr)
      return;
    RANGESCOPE_PARAMS(params, CUpti_Profiler_Host_Deinitialize_Params);
    params.pHostObject = object_;
    api_.cuptiProfilerHostDeinitialize(&params);
  }

  [[nodiscard]] CUptiResult open(const std::string& chip, const Bytes& availability) {
    chip_ = chip;
    RANGESCOPE_PARAMS(params, CUpti_Profiler_Host_Initialize_Params);
    params.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
    params.pChipName = chip_.c_str();
    params.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
    const CUptiResult result = api_.cuptiProfilerHostInitialize(&params);
    object_ = result == CUPTI_SUCCESS ? params.pHostObject : nullptr;
    return result;
  }

  /// Every metric that the sampler knows on this chip, without rollup.
  [[nodiscard]] std::set<std::string, std::less<>> base_metrics() const {
    std::set<std::string, std::less<>> out;
    for (const CUpti_MetricType type :
         {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO, CUPTI_METRIC_TYPE_THROUGHPUT}) {
      RANGESCOPE_PARAMS(params, CUpti_Profiler_Host_GetBaseMetrics_Params);
      params.pHostObject = object_;
      params.metricType = type;
      if (api_.cuptiProfilerHostGetBaseMetrics(&params) != CUPTI_SUCCESS)
        continue;
      for (std::size_t i = 0; i < params.numMetrics; ++i)
        out.insert(params.ppMetricNames[i]);
    }
    return out;
  }

  [[nodiscard]] CUptiResult configure(const std::vector<std::string>& metrics) {
    metrics_ = metrics;
    names_.clear();
    for (const std::string& metric : metrics_)
      names_.push_back(metric.c_str());
    RANGESCOPE_PARAMS(add, CUpti_Profiler_Host_ConfigAddMetrics_Params);
    add.pHostObject = object_;
    add.ppMetricNames = names_.data();
    add.numMetrics = names_.size();
    if (const auto result = api_.cuptiProfilerHostConfigAddMetrics(&add); result != CUPTI_SUCCESS)
      return result;
    RANGESCOPE_PARAMS(size, CUpti_Profiler_Host_GetConfigImageSize_Params);
    size.pHostObject = object_;
    if (const auto result = api_.cuptiProfilerHostGetConfigImageSize(&size);
        result != CUPTI_SUCCESS)
      return result;
    image_.assign(size.configImageSize, 0);
    RANGESCOPE_PARAMS(image, CUpti_Profiler_Host_GetConfigImage_Params);
    image.pHostObject = object_;
    image.pConfigImage = image_.data();
    image.configImageSize = image_.size();
    if (const auto result = api_.cuptiProfilerHostGetConfigImage(&image); result != CUPTI_SUCCESS)
      return result;
    RANGESCOPE_PARAMS(passes, CUpti_Profiler_Host_GetNumOfPasses_Params);
    passes.pConfigImage = image_.data();
    passes.configImageSize = image_.size();
    const auto result = api_.cuptiProfilerHostGetNumOfPasses(&passes);
    passes_ = passes.numOfPasses;
    return result;
  }

  [[nodiscard]] CUpti_Profiler_Host_Object* object() const { return object_; }
  [[nodiscard]] std::vector<const char*>& names() { return names_; }
  [[nodiscard]] const Bytes& image() const { return image_; }
  [[nodiscard]] std::size_t passes() const { return passes_; }

 private:
  const Api& api_;
  CUpti_Profiler_Host_Object* object_ = nullptr;
  std::string chip_;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;
  Bytes image_;
  std::size_t passes_ = 0;
};

/// A metric's name before its rollup, and a triage's before that:
/// `TPC.TriageCompute.sm__cycles_active.avg`.
bool is_known(const std::set<std::string, std::less<>>& names, std::string_view metric) {
  for (std::size_t dot = metric.find('.'); dot != std::string_view::npos;
       dot = metric.find('.', dot + 1))
    if (names.contains(metric.substr(0, dot)))
      return true;
  return names.contains(metric);
}

Result<CounterSet> choose_from(const Api& api,
                               const std::string& chip,
                               const Bytes& availability,
                               const std::vector<Wanted>& wanted) {
  CounterSet set;
  {
    Host host(api);
    TRY(check(api, host.open(chip, availability), "cuptiProfilerHostInitialize"));
    const auto chip_metrics = host.base_metrics();
    for (const Wanted& any : wanted) {
      const auto found =
          std::ranges::find_if(any, [&](const auto& name) { return is_known(chip_metrics, name); });
      if (found != any.end())
        set.metrics.push_back(*found);
      else if (!any.empty())
        set.left_out.push_back(any.front());
    }
    if (host.configure(set.metrics) == CUPTI_SUCCESS && host.passes() == 1)
      return set;
  }
  // One after the other: what a pass does not hold, or the driver does not count, is left out.
  const std::vector<std::string> candidates = std::exchange(set.metrics, {});
  for (const std::string& metric : candidates) {
    std::vector<std::string> extended = set.metrics;
    extended.push_back(metric);
    Host host(api);
    if (host.open(chip, availability) == CUPTI_SUCCESS &&
        host.configure(extended) == CUPTI_SUCCESS && host.passes() == 1)
      set.metrics = std::move(extended);
    else
      set.left_out.push_back(metric);
  }
  return set;
}

/// Adds the CPU time of this thread, in nanoseconds, while it lives.
class CpuTime {
 public:
  explicit CpuTime(std::int64_t& to) : to_(to), begun_(read()) {}
  CpuTime& operator=(CpuTime&&) = delete;
  ~CpuTime() { to_ += read() - begun_; }

 private:
  static std::int64_t read() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
  }
  std::int64_t& to_;
  std::int64_t begun_;
};

class DeviceSampler final : public Sampler {
 public:
  DeviceSampler(const Api& api, std::int64_t interval_ns)
      : api_(api), host_(api), interval_ns_(interval_ns) {}
  DeviceSampler& operator=(DeviceSampler&&) = delete;
  ~DeviceSampler() override {
    if (object_ == nullptr)
      return;
    RANGESCOPE_PARAMS(params, CUpti_PmSampling_Disable_Params);
    params.pPmSamplingObject = object_;
    api_.cuptiPmSamplingDisable(&params);
  }

  [[nodiscard]] Result<void> begin(int device,
                                   const std::string& chip,
                                   const Bytes& availability,
                                   const CounterSet& set) {
    TRY(check(api_, host_.open(chip, availability), "cuptiProfilerHostInitialize"));
    TRY(check(api_, host_.configure(set.metrics), "cuptiProfilerHostConfigAddMetrics"));
    values_.resize(set.metrics.size());
    RANGESCOPE_PARAMS(enable, CUpti_PmSampling_Enable_Params);
    enable.deviceIndex = static_cast<std::size_t>(device);
    TRY(check(api_, api_.cuptiPmSamplingEnable(&enable), "cuptiPmSamplingEnable"));
    object_ = enable.pPmSamplingObject;
    RANGESCOPE_PARAMS(config, CUpti_PmSampling_SetConfig_Params);
    config.pPmSamplingObject = object_;
    config.pConfig = host_.image().data();
    config.configSize = host_.image().size();
    config.hardwareBufferSize = kHardwareBytes;
    config.samplingInterval = static_cast<std::uint64_t>(interval_ns_);
    config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
    config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
    TRY(check(api_, api_.cuptiPmSamplingSetConfig(&config), "cuptiPmSamplingSetConfig"));
    TRY(check(api_, clear(), "cuptiPmSamplingCounterDataImageInitialize"));
    decoded_ns_ = now_ns();
    RANGESCOPE_PARAMS(start, CUpti_PmSampling_Start_Params);
    start.pPmSamplingObject = object_;
    return check(api_, api_.cuptiPmSamplingStart(&start), "cuptiPmSamplingStart");
  }

  [[nodiscard]] Result<void> poll(SampleWriter& to) override {
    // A bound, so that a device that fills the image faster than it is read cannot hold the others
    // up forever.
    for (int round = 0; round < 64; ++round) {
      const auto stopped_at = TRY(decode(to));
      if (stopped_at != CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL)
        break;
    }
    return {};
  }

  [[nodiscard]] Result<void> stop(SampleWriter& to) override {
    RANGESCOPE_PARAMS(params, CUpti_PmSampling_Stop_Params);
    params.pPmSamplingObject = object_;
    TRY(check(api_, api_.cuptiPmSamplingStop(&params), "cuptiPmSamplingStop"));
    for (int round = 0; round < 100000; ++round) {
      const auto stopped_at = TRY(decode(to));
      if (stopped_at == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS)
        break;
    }
    return {};
  }

  [[nodiscard]] Spent spent() const override { return spent_; }

 private:
  static constexpr std::size_t kHardwareBytes = 256u << 20;
  static constexpr std::uint32_t kMostRoom = kPollSamples * 16;
  static constexpr int kShrinksAfter = 8;  // polls that would have done with less

  /// Room for the samples that are due: more at once, less when it was too much for a while, for
  /// another size costs.
  void fit(std::int64_t due) {
    const std::uint32_t samples =
        static_cast<std::uint32_t>(std::min<std::int64_t>(due, kMostRoom));
    const std::uint32_t wanted = samples + samples / 2 + 8;
    lately_ = std::max(lately_, wanted);
    too_large_ = room_ > wanted + wanted / 8 ? too_large_ + 1 : 0;
    if (samples + samples * 3 / 8 + 8 > room_) {
      room_ = std::min(wanted, kMostRoom);
    } else if (too_large_ == kShrinksAfter) {
      room_ = std::min(lately_, kMostRoom);
      too_large_ = 0;
    }
    if (too_large_ == 0)
      lately_ = 0;
  }

  // CUPTI initializes an image for the number of samples that its size was last asked for, and
  // answers CUPTI_ERROR_UNKNOWN to a smaller one (seen on an H200): so the size is asked for
  // whenever it changes. Not each time: that alone takes 3 ms (H100).
  [[nodiscard]] CUptiResult clear() {
    const CpuTime took(spent_.clearing);
    if (room_ != sized_for_) {
      RANGESCOPE_PARAMS(size, CUpti_PmSampling_GetCounterDataSize_Params);
      size.pPmSamplingObject = object_;
      size.pMetricNames = host_.names().data();
      size.numMetrics = host_.names().size();
      size.maxSamples = room_;
      if (const auto result = api_.cuptiPmSamplingGetCounterDataSize(&size);
          result != CUPTI_SUCCESS)
        return result;
      image_.resize(size.counterDataSize);
      sized_for_ = room_;
    }
    spent_.cleared += room_;
    RANGESCOPE_PARAMS(params, CUpti_PmSampling_CounterDataImage_Initialize_Params);
    params.pPmSamplingObject = object_;
    params.counterDataSize = image_.size();
    params.pCounterData = image_.data();
    return api_.cuptiPmSamplingCounterDataImageInitialize(&params);
  }

  [[nodiscard]] Result<CUpti_PmSampling_DecodeStopReason> decode(SampleWriter& to) {
    const std::int64_t now = now_ns(), due = (now - std::exchange(decoded_ns_, now)) / interval_ns_;
    fit(due);
    if (room_ != sized_for_) {
      TRY(check(api_, clear(), "cuptiPmSamplingCounterDataImageInitialize"));
    }
    RANGESCOPE_PARAMS(params, CUpti_PmSampling_DecodeData_Params);
    params.pPmSamplingObject = object_;
    params.pCounterDataImage = image_.data();
    params.counterDataImageSize = image_.size();
    {
      const CpuTime took(spent_.decoding);
      TRY(check(api_, api_.cuptiPmSamplingDecodeData(&params), "cuptiPmSamplingDecodeData"));
    }
    ++spent_.polls;
    if (params.overflow != 0 && !overflow_) {
      overflow_ = true;
      to.event(wire::samples::EventKind::kOverflow, "the hardware's buffer was full");
    }
    RANGESCOPE_PARAMS(info, CUpti_PmSampling_GetCounterDataInfo_Params);
    info.pCounterDataImage = image_.data();
    info.counterDataImageSize = image_.size();
    TRY(check(
        api_, api_.cuptiPmSamplingGetCounterDataInfo(&info), "cuptiPmSamplingGetCounterDataInfo"));
    evaluate(info.numCompletedSamples, to);
    if (info.numCompletedSamples > 0) {
      TRY(check(api_, clear(), "cuptiPmSamplingCounterDataImageInitialize"));
    }
    return params.decodeStopReason;
  }

  void evaluate(std::size_t samples, SampleWriter& to) {
    const CpuTime took(spent_.evaluating);
    for (std::size_t i = 0; i < samples; ++i) {
      RANGESCOPE_PARAMS(sample, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
      sample.pPmSamplingObject = object_;
      sample.pCounterDataImage = image_.data();
      sample.counterDataImageSize = image_.size();
      sample.sampleIndex = i;
      if (api_.cuptiPmSamplingCounterDataGetSampleInfo(&sample) != CUPTI_SUCCESS)
        continue;
      // The first one begins when the device was last sampled, by whomever. Behind a full image
      // come empty ones.
      if (!std::exchange(begun_, true) || sample.endTimestamp <= sample.startTimestamp)
        continue;
      RANGESCOPE_PARAMS(values, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
      values.pHostObject = host_.object();
      values.pCounterDataImage = image_.data();
      values.counterDataImageSize = image_.size();
      values.rangeIndex = i;
      values.ppMetricNames = host_.names().data();
      values.numMetrics = host_.names().size();
      values.pMetricValues = values_.data();
      if (api_.cuptiProfilerHostEvaluateToGpuValues(&values) != CUPTI_SUCCESS)
        continue;
      to.add(static_cast<std::int64_t>(sample.startTimestamp),
             static_cast<std::int64_t>(sample.endTimestamp),
             values_.data());
      if (spent_.samples++ == 0)
        spent_.first_ns = static_cast<std::int64_t>(sample.startTimestamp);
      spent_.last_ns = static_cast<std::int64_t>(sample.endTimestamp);
    }
  }

  const Api& api_;
  Host host_;
  std::int64_t interval_ns_;
  CUpti_PmSampling_Object* object_ = nullptr;
  Bytes image_;
  std::uint32_t room_ = kPollSamples * 3 / 2;  ///< samples that the image is to hold
  std::uint32_t sized_for_ = 0;                ///< samples that CUPTI was last asked a size for
  std::uint32_t lately_ = 0;  ///< the most that was wanted since the image was last not too large
  int too_large_ = 0;         ///< polls since then
  std::int64_t decoded_ns_ = 0;
  Spent spent_;
  std::vector<double> values_;
  bool begun_ = false, overflow_ = false;
};

class Loaded final : public Cupti {
 public:
  Loaded(Api api, base::Library driver) : api_(std::move(api)), driver_(driver) {}

  [[nodiscard]] std::string name() const override {
    return "CUPTI " + std::to_string(api_.version) + ", " + api_.path;
  }

  [[nodiscard]] Result<std::vector<std::string>> chips() const override {
    RANGESCOPE_PARAMS(params, CUpti_Profiler_Host_GetSupportedChips_Params);
    TRY(check(api_,
              api_.cuptiProfilerHostGetSupportedChips(&params),
              "cuptiProfilerHostGetSupportedChips"));
    return std::vector<std::string>(params.ppChipNames, params.ppChipNames + params.numChips);
  }

  [[nodiscard]] Result<CounterSet> choose(const std::string& chip,
                                          const std::vector<Wanted>& wanted) const override {
    return choose_from(api_, chip, availability_of(chip), wanted);
  }

  [[nodiscard]] Result<std::vector<Device>> devices() override {
    if (driver_.call("cuInit", 0u) != 0)
      return base::fail(
          Code::kToolMissing, "no NVIDIA driver answers on this machine", "libcuda.so.1");
    RANGESCOPE_PARAMS(initialize, CUpti_Profiler_Initialize_Params);
    TRY(check(api_, api_.cuptiProfilerInitialize(&initialize), "cuptiProfilerInitialize"));
    int count = 0;
    driver_.call("cuDeviceGetCount", &count);
    std::vector<Device> out;
    for (int i = 0; i < count; ++i) {
      Device device{i, {}, {}, {}};
      int handle = 0;
      std::array<char, 96> text{};
      unsigned char uuid[16] = {};
      if (driver_.call("cuDeviceGet", &handle, i) != 0)
        continue;
      if (driver_.call("cuDeviceGetName", text.data(), static_cast<int>(text.size()) - 1, handle) ==
          0)
        device.name = text.data();
      if (driver_.call("cuDeviceGetUuid", static_cast<unsigned char*>(uuid), handle) == 0)
        device.uuid = uuid_text(uuid);
      RANGESCOPE_PARAMS(chip, CUpti_Device_GetChipName_Params);
      chip.deviceIndex = static_cast<std::size_t>(i);
      if (api_.cuptiDeviceGetChipName(&chip) == CUPTI_SUCCESS && chip.pChipName != nullptr)
        device.chip = chip.pChipName;
      Bytes available = availability(i);
      if (!available.empty())
        available_[device.chip] = std::move(available);
      out.push_back(std::move(device));
    }
    return out;
  }

  [[nodiscard]] Result<std::unique_ptr<Sampler>> start(const Device& device,
                                                       const CounterSet& set,
                                                       std::int64_t interval_ns) override {
    auto sampler = std::make_unique<DeviceSampler>(api_, interval_ns);
    TRY(sampler->begin(device.ordinal, device.chip, availability_of(device.chip), set));
    return sampler;
  }

 private:
  [[nodiscard]] Bytes availability_of(const std::string& chip) const {
    const auto found = available_.find(chip);
    return found == available_.end() ? Bytes{} : found->second;
  }
  [[nodiscard]] Bytes availability(int device) const {
    RANGESCOPE_PARAMS(params, CUpti_PmSampling_GetCounterAvailability_Params);
    params.deviceIndex = static_cast<std::size_t>(device);
    if (api_.cuptiPmSamplingGetCounterAvailability(&params) != CUPTI_SUCCESS)
      return {};
    Bytes image(params.counterAvailabilityImageSize);
    params.pCounterAvailabilityImage = image.data();
    if (api_.cuptiPmSamplingGetCounterAvailability(&params) != CUPTI_SUCCESS)
      return {};
    return image;
  }

  Api api_;
  base::Library driver_;
  std::map<std::string, Bytes> available_;
};

Result<void> load_functions(Api& api) {
  const auto missing = [&](const char* name) {
    return base::fail(
        Code::kToolMissing,
        std::string("CUPTI has no ") + name,
        api.path,
        "Install CUDA 12.6 or newer, or set RANGESCOPE_CUPTI to the path of its libcupti.so.");
  };
#define RANGESCOPE_LOAD(name)                                                   \
  api.name = reinterpret_cast<decltype(api.name)>(::dlsym(api.library, #name)); \
  if (api.name == nullptr)                                                      \
    return missing(#name);
  RANGESCOPE_SAMPLE_CUPTI(RANGESCOPE_LOAD)
#undef RANGESCOPE_LOAD
  return {};
}

}  // namespace

Result<std::unique_ptr<Cupti>> open_cupti() {
  const base::Library driver("libcuda.so.1");
  int cuda = 0;
  driver.call("cuDriverGetVersion", &cuda);
  Api api;
  const auto open = [&](const char* path) {
    api.library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (api.library == nullptr)
      return false;
    const link_map* map = nullptr;
    const bool has_path = ::dlinfo(api.library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr &&
                          map->l_name[0] != '\0';
    api.path = has_path ? map->l_name : path;
    return true;
  };
  const char* wanted = std::getenv("RANGESCOPE_CUPTI");
  const bool is_set = wanted != nullptr && *wanted != '\0';
  const bool found = is_set ? open(wanted) : wire::find_cupti(cuda / 1000, open);
  if (!found)
    return base::fail(
        Code::kToolMissing,
        "CUPTI was not found",
        wanted != nullptr ? wanted : "libcupti.so.13",
        "Install the CUDA toolkit's CUPTI, or set RANGESCOPE_CUPTI to the library's path.");
  TRY(load_functions(api));
  (void)api.cuptiGetVersion(&api.version);
  return std::make_unique<Loaded>(std::move(api), driver);
}

}  // namespace rangescope::sample
