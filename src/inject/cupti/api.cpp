#include "inject/cupti/api.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "inject/nvtx/setting.hpp"
#include "wire/cupti_places.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {

namespace {

struct Mapped {
  char path[sizeof(Api::path)] = {};
};

bool is_cupti_file(const char* path) {
  const char* name = std::strrchr(path, '/');
  name = name != nullptr ? name + 1 : path;
  return std::strncmp(name, "libcupti.so", 11) == 0;
}

int note_mapped(dl_phdr_info* info, std::size_t, void* data) {
  if (info->dlpi_name == nullptr || !is_cupti_file(info->dlpi_name)) return 0;
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
  if (api.library == nullptr) return false;
  const link_map* map = nullptr;
  const char* shown = path;
  if (dlinfo(api.library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0')
    shown = map->l_name;
  std::snprintf(api.path, sizeof api.path, "%s", shown);
  return true;
}

/// A function of the driver that the program has loaded, or null.
template <class Function>
Function* of_driver(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  dlclose(library);
  return found;
}

}  // namespace

int driver_version() {
  int version = 0;
  auto* ask = of_driver<int(int*)>("cuDriverGetVersion");
  return ask != nullptr && ask(&version) == 0 ? version : 0;
}

void each_device(void (*take)(void* user, const CUpti_ActivityDevice4& device), void* user) {
  auto* count = of_driver<int(int*)>("cuDeviceGetCount");
  auto* get = of_driver<int(int*, int)>("cuDeviceGet");
  auto* name_of = of_driver<int(char*, int, int)>("cuDeviceGetName");
  auto* attribute = of_driver<int(int*, CUdevice_attribute, int)>("cuDeviceGetAttribute");
  auto* uuid_of = of_driver<int(CUuuid*, int)>("cuDeviceGetUuid_v2");
  auto* memory_of = of_driver<int(std::size_t*, int)>("cuDeviceTotalMem_v2");
  int devices = 0;
  if (count == nullptr || get == nullptr || name_of == nullptr || attribute == nullptr ||
      count(&devices) != 0)
    return;
  for (int i = 0, device = 0; i < devices; ++i) {
    char name[256] = {};
    if (get(&device, i) != 0 || name_of(name, sizeof name - 1, device) != 0) continue;
    const auto number = [&](CUdevice_attribute of) {
      int value = 0;
      return attribute(&value, of, device) == 0 && value > 0 ? static_cast<std::uint32_t>(value)
                                                             : 0u;
    };
    CUpti_ActivityDevice4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    record.id = static_cast<std::uint32_t>(i);
    record.name = name;
    record.isMigEnabled = std::strstr(name, " MIG ") != nullptr ? 1 : 0;
    if (uuid_of != nullptr)
      (void)uuid_of(record.isMigEnabled != 0 ? &record.migUuid : &record.uuid, device);
    std::size_t bytes = 0;
    if (memory_of != nullptr && memory_of(&bytes, device) == 0) record.globalMemorySize = bytes;
    record.l2CacheSize = number(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    // Two transfers a clock (kHz), of so many bits: in kB a second.
    record.globalMemoryBandwidth = std::uint64_t{number(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)} *
                                   2 * number(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
    record.coreClockRate = number(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    record.numMultiprocessors = number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    record.computeCapabilityMajor = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    record.computeCapabilityMinor = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
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
  // Up to CUDA 12 versions count releases (19 is 12.0, 28 is 12.9 update 1); from 13 on they are
  // major, minor, patch.
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
  } kReleases[] = {{13, "11.0"}, {14, "11.1"}, {15, "11.2"}, {16, "11.5"}, {17, "11.6"},
                   {18, "11.8"}, {19, "12.0"}, {20, "12.2"}, {21, "12.3"}, {22, "12.4"},
                   {23, "12.5"}, {24, "12.6"}, {26, "12.8"}, {27, "12.9"}, {28, "12.9.1"}};
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
  std::snprintf(why, why_bytes, "%s has no %s: counters need the CUPTI of CUDA 12.6 or newer", path,
                name);
  return false;
}

const char* Api::text(CUptiResult result) const {
  const char* words = nullptr;
  if (cuptiGetResultString != nullptr) cuptiGetResultString(result, &words);
  return words != nullptr ? words : "unknown CUPTI error";
}

bool load(Api& api, char* why, std::size_t why_size) {
  Mapped mapped;
  const char* asked = setting(wire::kCupti);
  if (asked != nullptr && asked[0] != '\0') {
    if (!open(api, asked)) {
      std::snprintf(why, why_size, "$RANGESCOPE_CUPTI cannot be loaded: %s", dlerror());
      return false;
    }
  } else if (dl_iterate_phdr(note_mapped, &mapped) == 1) {
    if (!open(api, mapped.path)) {
      std::snprintf(why, why_size, "the program's own %s cannot be opened: %s", mapped.path,
                    dlerror());
      return false;
    }
  } else if (!wire::find_cupti(driver_version() / 1000,
                               [&](const char* path) { return open(api, path); })) {
    std::snprintf(
        why, why_size,
        "no libcupti.so.13 or libcupti.so.12 was found; install the CUDA toolkit's CUPTI, or set "
        "RANGESCOPE_CUPTI to the library's path");
    return false;
  }
  const char* missing = "";
  if (!fill(api, &missing)) {
    std::snprintf(why, why_size,
                  "%s has no %s: it is too old; set RANGESCOPE_CUPTI to one of CUDA 12 or 13",
                  api.path, missing);
    return false;
  }
  if (api.cuptiGetVersion(&api.version) != CUPTI_SUCCESS) {
    std::snprintf(why, why_size, "%s does not report its version", api.path);
    return false;
  }
  if (!knows_records_of(api.version)) {
    char name[32];
    std::snprintf(why, why_size,
                  "%s is CUPTI %s, whose records are not known here; set RANGESCOPE_CUPTI to one "
                  "of CUDA 12 or 13",
                  api.path, version_name(api.version, name, sizeof name));
    return false;
  }
  return true;
}

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
  if (info->dlpi_name == nullptr) return 0;
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
  if (tool != nullptr) return tool;
  for (const char* variable : {"KINETO_USE_DAEMON", "KINETO_CONFIG"}) {
    if (std::getenv(variable) != nullptr) return "PyTorch's profiler (Kineto)";
  }
  return nullptr;
}

namespace {

constexpr std::uint32_t kShareable = 130300;  // CUDA 13.3

// Signatures as in CUDA 13.3's documentation. A configuration of null asks for the records that are
// always given.
using TurnFunction = CUptiResult (*)(CUpti_SubscriberHandle, CUpti_ActivityKind,
                                     void* configuration);
using SetFunction = CUptiResult (*)(CUpti_SubscriberHandle, CUpti_ActivityAttribute, std::size_t*,
                                    void*);
using RequestFunction = void (*)(std::uint8_t**, std::size_t*, std::size_t*, void* about);
using CompleteFunction = void (*)(std::uint8_t*, std::size_t, std::size_t, void* about);
using BuffersFunction = CUptiResult (*)(CUpti_SubscriberHandle, RequestFunction, CompleteFunction);
using NowFunction = CUptiResult (*)(CUpti_SubscriberHandle, std::uint64_t*);

template <class Function>
Function of(const Api& api, const char* name) {
  return reinterpret_cast<Function>(api.find(name));
}

bool is_shared(const Api& api) {
  return is_set(wire::kCuptiShared, "on") && api.version >= kShareable &&
         api.cuptiSubscribe_v2 != nullptr && api.find("cuptiActivityEnable_v2") != nullptr &&
         api.find("cuptiActivityDisable_v2") != nullptr &&
         api.find("cuptiActivitySetAttribute_v2") != nullptr &&
         api.find("cuptiActivityRegisterCallbacks_v2") != nullptr &&
         api.find("cuptiGetTimestamp_v2") != nullptr;
}

CUpti_BuffersCallbackRequestFunc shared_request = nullptr;
CUpti_BuffersCallbackCompleteFunc shared_complete = nullptr;

}  // namespace

CUptiResult Subscription::turn(const Api& api, CUpti_ActivityKind kind, bool on) const {
  if (shared)
    return of<TurnFunction>(api, on ? "cuptiActivityEnable_v2" : "cuptiActivityDisable_v2")(
        handle, kind, nullptr);
  return on ? api.cuptiActivityEnable(kind) : api.cuptiActivityDisable(kind);
}

CUptiResult Subscription::set(const Api& api, CUpti_ActivityAttribute attribute,
                              std::uint8_t value) const {
  std::size_t bytes = sizeof value;
  if (shared)
    return of<SetFunction>(api, "cuptiActivitySetAttribute_v2")(handle, attribute, &bytes, &value);
  return api.cuptiActivitySetAttribute(attribute, &bytes, &value);
}

CUptiResult Subscription::buffers(const Api& api, CUpti_BuffersCallbackRequestFunc request,
                                  CUpti_BuffersCallbackCompleteFunc complete) const {
  if (!shared) return api.cuptiActivityRegisterCallbacks(request, complete);
  shared_request = request;
  shared_complete = complete;
  return of<BuffersFunction>(api, "cuptiActivityRegisterCallbacks_v2")(
      handle,
      [](std::uint8_t** buffer, std::size_t* bytes, std::size_t* most, void*) {
        shared_request(buffer, bytes, most);
      },
      [](std::uint8_t* buffer, std::size_t bytes, std::size_t valid, void*) {
        shared_complete(nullptr, 0, buffer, bytes, valid);
      });
}

CUptiResult Subscription::now(const Api& api, std::uint64_t* timestamp) const {
  return shared ? of<NowFunction>(api, "cuptiGetTimestamp_v2")(handle, timestamp)
                : api.cuptiGetTimestamp(timestamp);
}

bool subscribe(const Api& api, CUpti_CallbackFunc callback, void* user, Subscription& subscription,
               char* why, std::size_t why_size) {
  char holder[128] = {};
  CUptiResult result = CUPTI_SUCCESS;
  if (api.cuptiSubscribe_v2 != nullptr) {
    SubscriberParameters parameters{
        CUpti_SubscriberParams_STRUCT_SIZE, "rangescope", holder, sizeof holder, 0, {}};
    subscription.shared = is_shared(api);
    if (subscription.shared) parameters.bytes = sizeof parameters, parameters.shared = 1;
    const auto ask = [&] {
      return api.cuptiSubscribe_v2(&subscription.handle, callback, user,
                                   reinterpret_cast<CUpti_SubscriberParams*>(&parameters));
    };
    result = ask();
    if (result != CUPTI_SUCCESS && subscription.shared) {  // another tool has CUPTI for itself
      subscription.shared = false;
      parameters.shared = 0;
      result = ask();
    }
  } else {
    result = api.cuptiSubscribe(&subscription.handle, callback, user);
  }
  if (result == CUPTI_SUCCESS) return true;
  holder[sizeof holder - 1] = '\0';
  const char* who = holder[0] != '\0' ? holder : other_tool();
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    std::snprintf(why, why_size, "CUPTI is held by %s (%s); %s",
                  who != nullptr ? who : "another tool in this process", api.text(result),
                  advice(result));
  } else {
    std::snprintf(why, why_size, "CUPTI refused a subscriber: %s; %s", api.text(result),
                  advice(result));
  }
  return false;
}

}  // namespace rangescope::inject::cupti
