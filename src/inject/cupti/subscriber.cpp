#include "inject/cupti/subscriber.hpp"

#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace rangescope::inject::cupti {
namespace {

struct Sign {
  const char* library;  ///< part of a mapped file's name
  const char* tool;
};
// As seen: nsys 2025.3 injects libToolsInjection64.so, ncu 2025.3 libcuda-injection.so.
constexpr Sign kSigns[] = {{"libToolsInjection", "Nsight Systems"},
                           {"libcuda-injection.so", "Nsight Compute"},
                           {"libTreeLauncherTargetInjection", "Nsight Compute"},
                           {"libsanitizer-collection", "Compute Sanitizer"},
                           {"libdcgm", "DCGM"}};

int note_tool(dl_phdr_info* info, std::size_t, void* data) {
  if (info->dlpi_name == nullptr) {
    return 0;
  }
  for (const Sign& sign : kSigns) {
    if (std::strstr(info->dlpi_name, sign.library) != nullptr) {
      *static_cast<const char**>(data) = sign.tool;
      return 1;
    }
  }
  return 0;
}

const char* advice(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "allow it with the driver option NVreg_RestrictProfilingToAdminUsers=0, run as root, or give the process "
             "CAP_SYS_ADMIN";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: return "stop the other tool, or run without it";
    default: return "look at the driver's and CUPTI's versions";
  }
}

}  // namespace

const char* other_tool() {
  const char* tool = nullptr;
  dl_iterate_phdr(note_tool, &tool);
  if (tool != nullptr) {
    return tool;
  }
  for (const char* variable : {"KINETO_USE_DAEMON", "KINETO_CONFIG"}) {
    if (std::getenv(variable) != nullptr) {
      return "PyTorch's profiler (Kineto)";
    }
  }
  return nullptr;
}

bool subscribe(const Api& api, CUpti_CallbackFunc callback, void* user, Subscription& subscription, char* why,
               std::size_t why_size) {
  char holder[128] = {};
  CUptiResult result = CUPTI_SUCCESS;
  if (api.cuptiSubscribe_v2 != nullptr) {
    CUpti_SubscriberParams parameters{};
    parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    parameters.subscriberName = "rangescope";
    parameters.oldSubscriberName = holder;
    parameters.oldSubscriberSize = sizeof holder;
    result = api.cuptiSubscribe_v2(&subscription.handle, callback, user, &parameters);
  } else {
    result = api.cuptiSubscribe(&subscription.handle, callback, user);
  }
  if (result == CUPTI_SUCCESS) return true;
  holder[sizeof holder - 1] = '\0';
  const char* who = holder[0] != '\0' ? holder : other_tool();
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    std::snprintf(why, why_size, "CUPTI is held by %s (%s); %s", who != nullptr ? who : "another tool in this process",
                  api.text(result), advice(result));
  } else {
    std::snprintf(why, why_size, "CUPTI refused a subscriber: %s; %s", api.text(result), advice(result));
  }
  return false;
}

}  // namespace rangescope::inject::cupti
