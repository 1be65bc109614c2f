// The stand-in CUPTI's range profiler and profiler host: the calls that counters use, refusing what
// CUPTI refuses.
//
// A metric set takes as many passes as STANDIN_PASSES says (4). Metric i belongs to pass i mod
// passes, and its value is made of what ran in *that* pass's occurrence alone, so that a test sees
// which occurrence each value came from:
//   sm__inst_executed.sum    100 for each kernel       dram__bytes.sum      1000 for each block of
//   the grids gpu__time_duration.sum   sum of kernel times       sm__ops_path_...     1e9 for each
//   kernel pcie__read_bytes.sum     7 for each kernel standin__occurrence.sum  the number of the
//   pass's occurrence, and so any other
// Values of a set that lacks a pass are NaN, as CUPTI's. STANDIN_FAULT: counters_denied (Enable),
// counters_again (the second Enable), counters_busy (Start), counters_stop (the third Stop). Names
// that begin with pcie or nvl are counted for the device: never beside others but
// gpu__time_duration, and refused where a context's availability is given. There are no links:
// values of nvlrx are NaN. STANDIN_WITHHELD=NAME: SetConfig refuses a set with this metric. An
// object counts for its first configuration alone; with another one, calls succeed and values are
// NaN (as CUDA 13.0's on an H100). STANDIN_START_MS: how long Start takes (0). A context or a
// process that ends while the profiler is enabled crashes.
#include "profiler.hpp"

#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

namespace {

bool fault(const char* name) {
  const char* text = std::getenv("STANDIN_FAULT");
  return text && std::strcmp(text, name) == 0;
}

std::size_t number_of_passes() {
  const char* text = std::getenv("STANDIN_PASSES");
  return text ? static_cast<std::size_t>(std::atoi(text)) : 4;
}

constexpr const char* kChips[] = {"GA100", "GH100"};
constexpr const char* kCounters[] = {"dram__bytes",
                                     "gpu__time_duration",
                                     "l1tex__t_bytes",
                                     "lts__t_bytes",
                                     "nvlrx__bytes",
                                     "pcie__read_bytes",
                                     "pcie__write_bytes",
                                     "sm__inst_executed",
                                     "sm__ops_path_tensor_src_bf16_dst_fp32",
                                     "sm__sass_thread_inst_executed_op_dadd_pred_on",
                                     "sm__sass_thread_inst_executed_op_dfma_pred_on",
                                     "sm__sass_thread_inst_executed_op_dmul_pred_on",
                                     "sm__sass_thread_inst_executed_op_fadd_pred_on",
                                     "sm__sass_thread_inst_executed_op_ffma_pred_on",
                                     "sm__sass_thread_inst_executed_op_fmul_pred_on",
                                     "sm__sass_thread_inst_executed_op_hadd_pred_on",
                                     "sm__sass_thread_inst_executed_op_hfma_pred_on",
                                     "sm__sass_thread_inst_executed_op_hmul_pred_on",
                                     "standin__occurrence"};
constexpr const char* kThroughputs[] = {"sm__throughput"};

// What PM sampling counts, all in one pass.
constexpr const char* kSampled[] = {
    "dram__bytes_read", "gr__cycles_active", "sm__cycles_active", "sm__inst_executed"};

bool known(const std::string& metric) {
  const std::string base = metric.substr(0, metric.find('.')), rest = metric.substr(base.size());
  if (!rest.starts_with(".sum") && !rest.starts_with(".avg"))
    return false;
  for (const char* name : kCounters) {
    if (base == name)
      return true;
  }
  return base == kThroughputs[0];
}

struct Host {
  bool sampling = false, of_context = false, spoiled = false;
  std::vector<std::string> metrics;
};

std::uint64_t hash_on(std::uint64_t hash, const std::string& name) {
  return hash * 31 + std::hash<std::string>()(name);
}

bool of_device(const std::string& metric) {
  return metric.starts_with("pcie") || metric.starts_with("nvl");
}

// Passes of a set, whether it is one that is withheld, and which one it is.
struct Config {
  std::uint64_t passes, withheld, names;
};

struct Sums {
  double kernels = 0, blocks = 0, time = 0, occurrence = 0;
};

// A counter data image, flat: a head, then for each range a mask of passes and its sums by pass.
constexpr std::uint64_t kMagic = 0x5354414e44494e31;
constexpr std::size_t kMostPasses = 16;
struct Head {
  std::uint64_t magic, room, used;
};
struct Range {
  std::uint64_t mask;
  Sums sums[kMostPasses];
};

struct Profiler {
  bool configured = false, active = false, automatic = false, open = false, graph = false;
  std::uint8_t* image = nullptr;
  std::size_t pass = 0, passes = 0, stops = 0, most = 0;
  std::uint64_t first = 0, names = 0;  // configurations: the first since Enable, and the latest
  std::vector<Sums> ranges;
  bool undecoded = false;
};

std::mutex lock;
Profiler profiler;
double occurrences = 0;  // profiled ones, over all passes
bool enabled = false;

[[gnu::destructor]] void at_the_end() {
  if (enabled)
    std::abort();
}

template <class Names>
void hand_out(const Names& names, const char**& to, std::size_t& count) {
  static std::map<const void*, std::vector<const char*>> kept;
  auto& list = kept[&names];
  list.assign(std::begin(names), std::end(names));
  to = list.data();
  count = list.size();
}

}  // namespace

void standin::profile(const Work& work) {
  const std::lock_guard<std::mutex> guard(lock);
  if (!profiler.active)
    return;
  if (profiler.automatic) {
    if (work.node != 0)
      profiler.graph = true;
    if (profiler.ranges.size() < profiler.most)
      profiler.ranges.push_back({0, 0, 0, occurrences});
  } else if (!profiler.open) {
    return;
  }
  Sums& sums = profiler.ranges.back();
  ++sums.kernels;
  sums.blocks += work.grid;
  sums.time += static_cast<double>(work.end_ns - work.start_ns);
}

void standin::context_ends() {
  if (enabled)
    std::abort();
}

#pragma GCC visibility push(default)
extern "C" {

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params*) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* params) {
  params->pChipName = kChips[1];
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerGetCounterAvailability(
    CUpti_Profiler_GetCounterAvailability_Params* params) {
  params->counterAvailabilityImageSize = 8;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* params) {
  if (std::strcmp(params->pChipName, kChips[0]) != 0 &&
      std::strcmp(params->pChipName, kChips[1]) != 0)
    return CUPTI_ERROR_INVALID_PARAMETER;
  params->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(
      new Host{params->profilerType == CUPTI_PROFILER_TYPE_PM_SAMPLING,
               params->pCounterAvailabilityImage != nullptr,
               false,
               {}});
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* params) {
  delete reinterpret_cast<Host*>(params->pHostObject);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostGetSupportedChips(
    CUpti_Profiler_Host_GetSupportedChips_Params* params) {
  params->ppChipNames = kChips;
  params->numChips = std::size(kChips);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params* params) {
  params->ppMetricNames = nullptr;
  params->numMetrics = 0;
  if (reinterpret_cast<Host*>(params->pHostObject)->sampling) {
    if (params->metricType == CUPTI_METRIC_TYPE_COUNTER)
      hand_out(kSampled, params->ppMetricNames, params->numMetrics);
    return CUPTI_SUCCESS;
  }
  if (params->metricType == CUPTI_METRIC_TYPE_COUNTER)
    hand_out(kCounters, params->ppMetricNames, params->numMetrics);
  if (params->metricType == CUPTI_METRIC_TYPE_THROUGHPUT)
    hand_out(kThroughputs, params->ppMetricNames, params->numMetrics);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostGetMetricProperties(
    CUpti_Profiler_Host_GetMetricProperties_Params* params) {
  if (!known(std::string(params->pMetricName) + ".sum"))
    return CUPTI_ERROR_INVALID_METRIC_NAME;
  params->pDescription = "what the stand-in counts";
  params->pHwUnit = "stand-in";
  params->pDimUnit = "things";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* params) {
  auto& host = *reinterpret_cast<Host*>(params->pHostObject);
  bool device = false, context = false, strange = host.spoiled;
  for (std::size_t i = 0; i < params->numMetrics && !host.sampling; ++i) {
    const std::string name = params->ppMetricNames[i];
    strange = strange || !known(name) || (of_device(name) && host.of_context);
    device = device || of_device(name);
    context = context || (!of_device(name) && name != "gpu__time_duration.sum");
  }
  host.spoiled = strange || (device && context);
  if (strange)
    return CUPTI_ERROR_INVALID_METRIC_NAME;
  if (host.spoiled)
    return CUPTI_ERROR_NOT_SUPPORTED;
  for (std::size_t i = 0; i < params->numMetrics; ++i)
    host.metrics.emplace_back(params->ppMetricNames[i]);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostGetConfigImageSize(
    CUpti_Profiler_Host_GetConfigImageSize_Params* params) {
  params->configImageSize = sizeof(Config);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* params) {
  const auto& host = *reinterpret_cast<Host*>(params->pHostObject);
  const char* withheld = std::getenv("STANDIN_WITHHELD");
  const Config config{
      host.sampling ? 1 : std::min(host.metrics.size(), number_of_passes()),
      withheld != nullptr && std::count(host.metrics.begin(), host.metrics.end(), withheld) > 0,
      std::accumulate(host.metrics.begin(), host.metrics.end(), std::uint64_t{1}, hash_on)};
  std::memcpy(params->pConfigImage, &config, sizeof config);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* params) {
  Config config{};
  std::memcpy(&config, params->pConfigImage, sizeof config);
  params->numOfPasses = config.passes;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostEvaluateToGpuValues(
    CUpti_Profiler_Host_EvaluateToGpuValues_Params* params) {
  const auto& host = *reinterpret_cast<Host*>(params->pHostObject);
  if (host.sampling != standin::is_sample_image(params->pCounterDataImage))
    return CUPTI_ERROR_INVALID_PARAMETER;
  for (std::size_t i = 0; host.sampling && i < params->numMetrics; ++i)
    params->pMetricValues[i] =
        standin::sampled(params->pCounterDataImage, params->rangeIndex, params->ppMetricNames[i]);
  if (host.sampling)
    return CUPTI_SUCCESS;
  const std::size_t passes = std::min(host.metrics.size(), number_of_passes());
  Head head{};
  std::memcpy(&head, params->pCounterDataImage, sizeof head);
  if (head.magic != kMagic || params->rangeIndex >= head.used)
    return CUPTI_ERROR_INVALID_PARAMETER;
  Range range{};
  std::memcpy(&range,
              params->pCounterDataImage + sizeof head + params->rangeIndex * sizeof range,
              sizeof range);
  const bool complete = range.mask == (1u << passes) - 1;
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    const Sums& sums = range.sums[i % passes];
    const std::string name = params->ppMetricNames[i];
    double value = sums.occurrence;
    if (name == "sm__inst_executed.sum")
      value = 100 * sums.kernels;
    if (name == "dram__bytes.sum")
      value = 1000 * sums.blocks;
    if (name == "gpu__time_duration.sum")
      value = sums.time;
    if (name == "pcie__read_bytes.sum")
      value = 7 * sums.kernels;
    if (name == "sm__ops_path_tensor_src_bf16_dst_fp32.sum")
      value = 1e9 * sums.kernels;
    params->pMetricValues[i] = complete && !name.starts_with("nvl") ? value : std::nan("");
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* params) {
  if (fault("counters_denied"))
    return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  static int calls = 0;
  if (fault("counters_again") && ++calls > 1)
    return CUPTI_ERROR_HARDWARE_BUSY;
  params->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(&profiler);
  enabled = true;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params*) {
  const std::lock_guard<std::mutex> guard(lock);
  if (profiler.active)
    return CUPTI_ERROR_INVALID_OPERATION;
  profiler.configured = enabled = false;
  profiler.first = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerGetCounterDataSize(
    CUpti_RangeProfiler_GetCounterDataSize_Params* params) {
  params->counterDataSize = sizeof(Head) + params->maxNumOfRanges * sizeof(Range);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params* params) {
  std::memset(params->pCounterData, 0, params->counterDataSize);
  const Head head{kMagic, (params->counterDataSize - sizeof(Head)) / sizeof(Range), 0};
  std::memcpy(params->pCounterData, &head, sizeof head);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* params) {
  const std::lock_guard<std::mutex> guard(lock);
  Head head{};
  std::memcpy(&head, params->pCounterDataImage, sizeof head);
  if (profiler.active || profiler.undecoded || head.magic != kMagic ||
      params->targetNestingLevel != 1)
    return CUPTI_ERROR_INVALID_OPERATION;
  Config config{};
  std::memcpy(&config, params->pConfig, sizeof config);
  if (config.withheld != 0)
    return CUPTI_ERROR_NOT_SUPPORTED;
  if (params->passIndex >= config.passes || params->maxRangesPerPass > head.room)
    return CUPTI_ERROR_INVALID_PARAMETER;
  profiler.passes = config.passes;
  profiler.names = config.names;
  if (profiler.first == 0)
    profiler.first = config.names;
  profiler.configured = true;
  profiler.automatic = params->range == CUPTI_AutoRange;
  profiler.image = params->pCounterDataImage;
  profiler.pass = params->passIndex;
  profiler.most = params->maxRangesPerPass;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params*) {
  if (standin::activity_records_kernels())
    return CUPTI_ERROR_NOT_COMPATIBLE;
  if (fault("counters_busy"))
    return CUPTI_ERROR_HARDWARE_BUSY;
  if (const char* ms = std::getenv("STANDIN_START_MS"))
    usleep(static_cast<useconds_t>(std::atoi(ms)) * 1000);
  const std::lock_guard<std::mutex> guard(lock);
  if (!profiler.configured || profiler.active)
    return CUPTI_ERROR_INVALID_OPERATION;
  profiler.active = true;
  profiler.graph = false;
  profiler.ranges.clear();
  if (profiler.automatic)
    ++occurrences;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params*) {
  const std::lock_guard<std::mutex> guard(lock);
  if (!profiler.active || profiler.automatic || profiler.open ||
      profiler.ranges.size() >= profiler.most)
    return CUPTI_ERROR_INVALID_OPERATION;
  profiler.open = true;
  profiler.ranges.push_back({0, 0, 0, ++occurrences});
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params*) {
  const std::lock_guard<std::mutex> guard(lock);
  if (!profiler.open)
    return CUPTI_ERROR_INVALID_OPERATION;
  profiler.open = false;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* params) {
  const std::lock_guard<std::mutex> guard(lock);
  if (!profiler.active || profiler.open)
    return CUPTI_ERROR_INVALID_OPERATION;
  profiler.active = false;
  if (profiler.graph || (fault("counters_stop") && ++profiler.stops == 3))
    return CUPTI_ERROR_UNKNOWN;
  profiler.undecoded = true;
  params->passIndex = profiler.pass + 1;
  params->targetNestingLevel = 1;
  params->isAllPassSubmitted = profiler.pass + 1 >= profiler.passes ? 1 : 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* params) {
  const std::lock_guard<std::mutex> guard(lock);
  if (!profiler.undecoded)
    return CUPTI_ERROR_INVALID_OPERATION;
  profiler.undecoded = false;
  Head head{};
  std::memcpy(&head, profiler.image, sizeof head);
  for (std::size_t i = 0; i < profiler.ranges.size() && i < head.room; ++i) {
    Range range{};
    std::uint8_t* at = profiler.image + sizeof head + i * sizeof range;
    std::memcpy(&range, at, sizeof range);
    if (profiler.names == profiler.first)
      range.mask |= 1u << profiler.pass;
    range.sums[profiler.pass] = profiler.ranges[i];
    std::memcpy(at, &range, sizeof range);
    head.used = std::max<std::uint64_t>(head.used, i + 1);
  }
  std::memcpy(profiler.image, &head, sizeof head);
  params->numOfRangeDropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerGetCounterDataInfo(
    CUpti_RangeProfiler_GetCounterDataInfo_Params* params) {
  Head head{};
  std::memcpy(&head, params->pCounterDataImage, sizeof head);
  params->numTotalRanges = head.used;
  return CUPTI_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
