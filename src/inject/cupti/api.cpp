#include "inject/cupti/api.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "inject/nvtx/setting.hpp"
#include "inject/text.hpp"
#include "wire/cupti_places.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {

namespace {

struct Mapped {
  char path[sizeof(Api::path)] = {};
};

bool is_cupti_file(const char* path) {
  return std::strncmp(after_last(path, '/'), "libcupti.so", 11) == 0;
}

int note_mapped(dl_phdr_info* info, std::size_t, void* data) {
  if (info->dlpi_name == nullptr || !is_cupti_file(info->dlpi_name))
    return 0;
  std::snprintf(static_cast<Mapped*>(data)->path, sizeof(Mapped::path), "%s", info->dlpi_name);
  return 1;
}

bool fill(Api& api, const char** missing) {
#define RANGESCOPE_CUPTI_LOAD(name)                                           \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(api.library, #name)); \
  if (api.name == nullptr) {                                                  \
    *missing = #name;                                                         \
    return false;                                                             \
  }
  RANGESCOPE_CUPTI_REQUIRED(RANGESCOPE_CUPTI_LOAD)
#undef RANGESCOPE_CUPTI_LOAD
#define RANGESCOPE_CUPTI_TRY(name) \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(api.library, #name));
  RANGESCOPE_CUPTI_OPTIONAL(RANGESCOPE_CUPTI_TRY)
#undef RANGESCOPE_CUPTI_TRY
  return true;
}

bool open(Api& api, const char* path) {
  api.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (api.library == nullptr)
    return false;
  const link_map* map = nullptr;
  const char* loaded_path = path;
  if (dlinfo(api.library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0')
    loaded_path = map->l_name;
  std::snprintf(api.path, sizeof api.path, "%s", loaded_path);
  return true;
}

/// A function of the driver that the program has loaded, or null.
template <class Function>
Function* driver_function(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr)
    return nullptr;
  auto* function = reinterpret_cast<Function*>(dlsym(library, name));
  dlclose(library);
  return function;
}

struct DeviceFunctions {
  int (*count)(int*) = driver_function<int(int*)>("cuDeviceGetCount");
  int (*get)(int*, int) = driver_function<int(int*, int)>("cuDeviceGet");
  int (*name)(char*, int, int) = driver_function<int(char*, int, int)>("cuDeviceGetName");
  int (*attribute)(int*, CUdevice_attribute, int) =
      driver_function<int(int*, CUdevice_attribute, int)>("cuDeviceGetAttribute");
  int (*uuid)(CUuuid*, int) = driver_function<int(CUuuid*, int)>("cuDeviceGetUuid_v2");
  int (*memory)(std::size_t*, int) = driver_function<int(std::size_t*, int)>("cuDeviceTotalMem_v2");

  [[nodiscard]] bool are_complete() const {
    return count != nullptr && get != nullptr && name != nullptr && attribute != nullptr;
  }

  /// 0 if it is unknown.
  [[nodiscard]] std::uint32_t attribute_of(int device, CUdevice_attribute which) const {
    int value = 0;
    if (attribute(&value, which, device) != 0 || value < 0)
      return 0;
    return static_cast<std::uint32_t>(value);
  }
};

CUpti_ActivityDevice4 device_record(const DeviceFunctions& driver, int device, const char* name) {
  const auto attribute = [&](CUdevice_attribute which) {
    return driver.attribute_of(device, which);
  };
  CUpti_ActivityDevice4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  record.name = name;
  const bool is_mig = std::strstr(name, " MIG ") != nullptr;
  record.isMigEnabled = std::uint8_t{is_mig};
  CUuuid* const uuid = is_mig ? &record.migUuid : &record.uuid;
  if (driver.uuid != nullptr)
    (void)driver.uuid(uuid, device);
  std::size_t bytes = 0;
  if (driver.memory != nullptr && driver.memory(&bytes, device) == 0)
    record.globalMemorySize = bytes;
  record.l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  // Two transfers a clock, whose rate is in kHz: kB a second.
  const std::uint64_t clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const std::uint32_t bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  record.globalMemoryBandwidth = clock_khz * 2 * bus_bits / 8;
  record.coreClockRate = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  record.numMultiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  record.computeCapabilityMajor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  record.computeCapabilityMinor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return record;
}

}  // namespace

int driver_version() {
  int version = 0;
  auto* get_version = driver_function<int(int*)>("cuDriverGetVersion");
  if (get_version == nullptr || get_version(&version) != 0)
    return 0;
  return version;
}

void each_device(void (*take)(void* user, const CUpti_ActivityDevice4& device), void* user) {
  const DeviceFunctions driver;
  int devices = 0;
  if (!driver.are_complete() || driver.count(&devices) != 0)
    return;
  for (int i = 0; i < devices; ++i) {
    int device = 0;
    char name[256] = {};
    if (driver.get(&device, i) != 0)
      continue;
    if (driver.name(name, sizeof name - 1, device) != 0)
      continue;
    CUpti_ActivityDevice4 record = device_record(driver, device, name);
    record.id = static_cast<std::uint32_t>(i);
    take(user, record);
  }
}

const char* advice_of(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return ". Run as root, or give the container CAP_SYS_ADMIN, or load the driver with "
             "NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_HARDWARE_BUSY:
      return ". Somebody else holds the counters: stop DCGM's profiling (dcgmi profile --pause), "
             "ncu, nsys, or "
             "let other runs of rangescope not sample (--sample off)";
    default: return "";
  }
}

bool knows_records_of(std::uint32_t version) {
  // Up to CUDA 12 the version counts releases (19 is 12.0, 28 is 12.9 update 1). From 13 on it is
  // made of major, minor and patch.
  return (version >= 19 && version <= 99) || version / 10000 == 13;
}

const char* version_name(std::uint32_t version, char* out, std::size_t size) {
  if (version >= 10000) {
    std::snprintf(out, size, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return out;
  }
  static constexpr struct {
    std::uint32_t version;
    const char* name;
  } kReleases[] = {{13, "11.0"},
                   {14, "11.1"},
                   {15, "11.2"},
                   {16, "11.5"},
                   {17, "11.6"},
                   {18, "11.8"},
                   {19, "12.0"},
                   {20, "12.2"},
                   {21, "12.3"},
                   {22, "12.4"},
                   {23, "12.5"},
                   {24, "12.6"},
                   {26, "12.8"},
                   {27, "12.9"},
                   {28, "12.9.1"}};
  for (const auto& release : kReleases) {
    if (release.version == version) {
      std::snprintf(out, size, "%s", release.name);
      return out;
    }
  }
  std::snprintf(out, size, "API version %u", version);
  return out;
}

void* Api::find(const char* function) const {
  return dlsym(library, function);
}

bool Api::lacks(const char* name, char* why, std::size_t why_bytes) const {
  std::snprintf(
      why, why_bytes, "%s has no %s: counters need the CUPTI of CUDA 12.6 or newer", path, name);
  return false;
}

const char* Api::text(CUptiResult result) const {
  const char* description = nullptr;
  if (cuptiGetResultString != nullptr)
    cuptiGetResultString(result, &description);
  return text_or(description, "unknown CUPTI error");
}

namespace {

bool find_library(Api& api, char* why, std::size_t why_size) {
  Mapped mapped;
  const char* chosen = setting(wire::kCupti);
  if (chosen != nullptr && chosen[0] != '\0') {
    if (open(api, chosen))
      return true;
    std::snprintf(why, why_size, "$RANGESCOPE_CUPTI cannot be loaded: %s", dlerror());
    return false;
  }
  if (dl_iterate_phdr(note_mapped, &mapped) == 1) {
    if (open(api, mapped.path))
      return true;
    std::snprintf(
        why, why_size, "the program's own %s cannot be opened: %s", mapped.path, dlerror());
    return false;
  }
  const auto open_path = [&](const char* path) { return open(api, path); };
  if (wire::find_cupti(driver_version() / 1000, open_path))
    return true;
  std::snprintf(
      why,
      why_size,
      "no libcupti.so.13 or libcupti.so.12 was found; install the CUDA toolkit's CUPTI, or set "
      "RANGESCOPE_CUPTI to the library's path");
  return false;
}

}  // namespace

bool load(Api& api, char* why, std::size_t why_size) {
  if (!find_library(api, why, why_size))
    return false;
  const char* missing = "";
  if (!fill(api, &missing)) {
    std::snprintf(why,
                  why_size,
                  "%s has no %s: it is too old; set RANGESCOPE_CUPTI to one of CUDA 12 or 13",
                  api.path,
                  missing);
    return false;
  }
  if (api.cuptiGetVersion(&api.version) != CUPTI_SUCCESS) {
    std::snprintf(why, why_size, "%s does not report its version", api.path);
    return false;
  }
  if (!knows_records_of(api.version)) {
    char name[32];
    std::snprintf(why,
                  why_size,
                  "%s is CUPTI %s, whose records are not known here; set RANGESCOPE_CUPTI to one "
                  "of CUDA 12 or 13",
                  api.path,
                  version_name(api.version, name, sizeof name));
    return false;
  }
  return true;
}

namespace {

struct Sign {
  const char* library;  ///< part of a mapped file's name
  const char* tool;
};
// Observed: nsys 2025.3 injects libToolsInjection64.so, ncu 2025.3 libcuda-injection.so.
constexpr Sign kSigns[] = {{"libToolsInjection", "Nsight Systems"},
                           {"libcuda-injection.so", "Nsight Compute"},
                           {"libTreeLauncherTargetInjection", "Nsight Compute"},
                           {"libsanitizer-collection", "Compute Sanitizer"},
                           {"libdcgm", "DCGM"}};

int note_tool(dl_phdr_info* info, std::size_t, void* data) {
  if (info->dlpi_name == nullptr)
    return 0;
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
      return "allow it with the driver option NVreg_RestrictProfilingToAdminUsers=0, run as root, "
             "or give the process "
             "CAP_SYS_ADMIN";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "stop the other tool, or run without it";
    default: return "look at the driver's and CUPTI's versions";
  }
}

}  // namespace

const char* other_tool() {
  const char* tool = nullptr;
  dl_iterate_phdr(note_tool, &tool);
  if (tool != nullptr)
    return tool;
  for (const char* variable : {"KINETO_USE_DAEMON", "KINETO_CONFIG"}) {
    if (std::getenv(variable) != nullptr)
      return "PyTorch's profiler (Kineto)";
  }
  return nullptr;
}

namespace {

constexpr std::uint32_t kShareable = 130300;  // CUDA 13.3

// Signatures as in CUDA 13.3's documentation. A null configuration requests the records that are
// always available.
using TurnFunction = CUptiResult (*)(CUpti_SubscriberHandle,
                                     CUpti_ActivityKind,
                                     void* configuration);
using SetFunction = CUptiResult (*)(CUpti_SubscriberHandle,
                                    CUpti_ActivityAttribute,
                                    std::size_t*,
                                    void*);
using RequestFunction = void (*)(std::uint8_t**, std::size_t*, std::size_t*, void* about);
using CompleteFunction = void (*)(std::uint8_t*, std::size_t, std::size_t, void* about);
using BuffersFunction = CUptiResult (*)(CUpti_SubscriberHandle, RequestFunction, CompleteFunction);
using NowFunction = CUptiResult (*)(CUpti_SubscriberHandle, std::uint64_t*);

template <class Function>
Function find_as(const Api& api, const char* name) {
  return reinterpret_cast<Function>(api.find(name));
}

/// Sharing is wanted, and this CUPTI has all functions that it takes.
bool can_be_shared(const Api& api) {
  if (!is_set(wire::kCuptiShared, "on") || api.version < kShareable)
    return false;
  if (api.cuptiSubscribe_v2 == nullptr)
    return false;
  for (const char* function : {"cuptiActivityEnable_v2",
                               "cuptiActivityDisable_v2",
                               "cuptiActivitySetAttribute_v2",
                               "cuptiActivityRegisterCallbacks_v2",
                               "cuptiGetTimestamp_v2"})
    if (api.find(function) == nullptr)
      return false;
  return true;
}

CUpti_BuffersCallbackRequestFunc shared_request = nullptr;
CUpti_BuffersCallbackCompleteFunc shared_complete = nullptr;

}  // namespace

CUptiResult Subscription::turn(const Api& api, CUpti_ActivityKind kind, bool on) const {
  if (shared) {
    const char* const name = on ? "cuptiActivityEnable_v2" : "cuptiActivityDisable_v2";
    return find_as<TurnFunction>(api, name)(handle, kind, nullptr);
  }
  return on ? api.cuptiActivityEnable(kind) : api.cuptiActivityDisable(kind);
}

CUptiResult Subscription::set(const Api& api,
                              CUpti_ActivityAttribute attribute,
                              std::uint8_t value) const {
  std::size_t bytes = sizeof value;
  if (!shared)
    return api.cuptiActivitySetAttribute(attribute, &bytes, &value);
  const auto set_attribute = find_as<SetFunction>(api, "cuptiActivitySetAttribute_v2");
  return set_attribute(handle, attribute, &bytes, &value);
}

CUptiResult Subscription::buffers(const Api& api,
                                  CUpti_BuffersCallbackRequestFunc request,
                                  CUpti_BuffersCallbackCompleteFunc complete) const {
  if (!shared)
    return api.cuptiActivityRegisterCallbacks(request, complete);
  shared_request = request;
  shared_complete = complete;
  const auto register_callbacks =
      find_as<BuffersFunction>(api, "cuptiActivityRegisterCallbacks_v2");
  return register_callbacks(
      handle,
      [](std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records, void*) {
        shared_request(buffer, bytes, most_records);
      },
      [](std::uint8_t* buffer, std::size_t bytes, std::size_t valid, void*) {
        shared_complete(nullptr, 0, buffer, bytes, valid);
      });
}

CUptiResult Subscription::now(const Api& api, std::uint64_t* timestamp) const {
  if (!shared)
    return api.cuptiGetTimestamp(timestamp);
  return find_as<NowFunction>(api, "cuptiGetTimestamp_v2")(handle, timestamp);
}

bool subscribe(const Api& api,
               CUpti_CallbackFunc callback,
               void* user,
               Subscription& subscription,
               char* why,
               std::size_t why_size) {
  char holder[128] = {};
  CUptiResult result = CUPTI_SUCCESS;
  if (api.cuptiSubscribe_v2 != nullptr) {
    SubscriberParameters parameters{
        CUpti_SubscriberParams_STRUCT_SIZE, "rangescope", holder, sizeof holder, 0, {}};
    subscription.shared = can_be_shared(api);
    if (subscription.shared) {
      parameters.bytes = sizeof parameters;
      parameters.shared = 1;
    }
    const auto subscribe_v2 = [&] {
      return api.cuptiSubscribe_v2(&subscription.handle,
                                   callback,
                                   user,
                                   reinterpret_cast<CUpti_SubscriberParams*>(&parameters));
    };
    result = subscribe_v2();
    if (result != CUPTI_SUCCESS && subscription.shared) {  // another tool has CUPTI exclusively
      subscription.shared = false;
      parameters.shared = 0;
      result = subscribe_v2();
    }
  } else {
    result = api.cuptiSubscribe(&subscription.handle, callback, user);
  }
  if (result == CUPTI_SUCCESS)
    return true;
  holder[sizeof holder - 1] = '\0';
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    const char* tool = holder[0] != '\0' ? holder : other_tool();
    if (tool == nullptr)
      tool = "another tool in this process";
    std::snprintf(
        why, why_size, "CUPTI is held by %s (%s); %s", tool, api.text(result), advice(result));
  } else {
    std::snprintf(
        why, why_size, "CUPTI refused a subscriber: %s; %s", api.text(result), advice(result));
  }
  return false;
}

}  // namespace rangescope::inject::cupti
