#include "inject/cupti/trace_settings.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "inject/nvtx/setting.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {

namespace {

// Prefixes of the driver functions that put work on a GPU or wait for it.
constexpr const char* kWorkFunctions[] = {"cuLaunch",
                                          "cuGraphLaunch",
                                          "cuMemcpy",
                                          "cuMemset",
                                          "cu64Mem",
                                          "cuCtxSynchronize",
                                          "cuStreamSynchronize",
                                          "cuEventSynchronize",
                                          "cuMemPrefetch",
                                          "cuMemBatch"};

bool begins_with_one_of(const char* name, const char* list) {
  while (list != nullptr && *list != '\0') {
    const std::size_t length = std::strcspn(list, ",");
    if (length > 0 && std::strncmp(name, list, length) == 0)
      return true;
    list += length;
    if (*list == ',')
      ++list;
  }
  return false;
}

std::uint32_t milliseconds_of(const char* text, std::uint32_t fallback) {
  if (text == nullptr || text[0] == '\0')
    return fallback;
  char* rest = nullptr;
  double value = std::strtod(text, &rest);
  if (rest == text || !(value >= 0) || value > 86400)
    return fallback;
  if (std::strcmp(rest, "ms") == 0)
    value /= 1000;
  return static_cast<std::uint32_t>(std::lround(value * 1000));
}

}  // namespace

TraceSettings settings_from_environment() {
  TraceSettings settings;
  settings.graph_nodes = !is_set(wire::kCudaGraphs, "graph");
  settings.launch_callbacks = is_set(wire::kLaunchRecords, "callback");
  settings.call_details = !is_set(wire::kCallDetails, "off");
  settings.memory = !is_set(wire::kMemory, "off");
  settings.memory_stacks = is_set(wire::kMemory, "stacks");
  settings.more_calls = setting(wire::kCudaCalls);
  if (const char* modules = setting(wire::kModules); modules != nullptr) {
    settings.modules = std::strcmp(modules, "off") != 0;
    settings.module_levels = static_cast<std::uint32_t>(std::strtoul(modules, nullptr, 10));
  }
  settings.flush_interval_ms =
      milliseconds_of(setting(wire::kFlushInterval), settings.flush_interval_ms);
  return settings;
}

bool is_noted(const char* function, const TraceSettings& settings) {
  for (const char* beginning : kWorkFunctions) {
    if (std::strncmp(function, beginning, std::strlen(beginning)) == 0)
      return true;
  }
  return begins_with_one_of(function, settings.more_calls);
}

namespace {

constexpr std::uint32_t kMended = 130401;                   // CUDA 13.4 update 1
constexpr char kFunction[] = "cuptiActivityEnableHWTrace";  // from CUDA 12.8 on

}  // namespace

const char* no_hardware_times(const Api& api) {
  if (is_set(wire::kHardwareTimes, "off"))
    return "software: RANGESCOPE_HARDWARE_TIMES=off";
  if (api.find(kFunction) == nullptr)
    return "software: this CUPTI has no hardware trace";
  if (is_set(wire::kCounters, nullptr))
    return "software: counters are collected";
  if (api.version < kMended && !is_set(wire::kHardwareTimes, "on"))
    return "software: the hardware trace of CUPTI before 13.4.1 can crash programs";
  return nullptr;
}

const char* begin_hardware_times(const Api& api, char* text, std::size_t bytes) {
  const auto begin = reinterpret_cast<CUptiResult (*)(std::uint8_t)>(api.find(kFunction));
  const CUptiResult result = begin != nullptr ? begin(1) : CUPTI_ERROR_NOT_SUPPORTED;
  if (result == CUPTI_SUCCESS)
    return "hardware";
  std::snprintf(text, bytes, "software: %s", api.text(result));
  return text;
}

}  // namespace rangescope::inject::cupti
