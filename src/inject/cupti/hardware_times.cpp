#include "inject/cupti/hardware_times.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "wire/names.hpp"

namespace rangescope::inject::cupti {
namespace {

constexpr std::uint32_t kMended = 130401;                   // CUDA 13.4 update 1
constexpr char kFunction[] = "cuptiActivityEnableHWTrace";  // from CUDA 12.8 on

bool is_set(const char* name, const char* value) {
  const char* text = std::getenv(name);
  return text != nullptr && (value == nullptr ? text[0] != '\0' : std::strcmp(text, value) == 0);
}

}  // namespace

const char* no_hardware_times(const Api& api) {
  if (is_set(wire::kHardwareTimes, "off")) return "software: RANGESCOPE_HARDWARE_TIMES=off";
  if (api.find(kFunction) == nullptr) return "software: this CUPTI has no hardware trace";
  if (is_set(wire::kCounters, nullptr)) return "software: counters are collected";
  if (api.version < kMended && !is_set(wire::kHardwareTimes, "on"))
    return "software: the hardware trace of CUPTI before 13.4.1 can crash programs";
  return nullptr;
}

const char* begin_hardware_times(const Api& api, char* text, std::size_t bytes) {
  const auto begin = reinterpret_cast<CUptiResult (*)(std::uint8_t)>(api.find(kFunction));
  const CUptiResult result = begin != nullptr ? begin(1) : CUPTI_ERROR_NOT_SUPPORTED;
  if (result == CUPTI_SUCCESS) return "hardware";
  std::snprintf(text, bytes, "software: %s", api.text(result));
  return text;
}

}  // namespace rangescope::inject::cupti
