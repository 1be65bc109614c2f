// NVTX without NVTX's headers: the six functions that range.hpp calls, as a client of the library
// that NVTX_INJECTION64_PATH names. What the profiler's library gets is what NVTX's own headers
// would give it (nvtxDetail/nvtxTypes.h, nvtxDetail/nvtxInit.h: tables of pointers to functions,
// which the library fills).
//
// The first range of the program looks for the library; without one a range costs a load and a
// branch.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

struct nvtxDomainRegistration_st;
typedef nvtxDomainRegistration_st* nvtxDomainHandle_t;

struct nvtxEventAttributes_t {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t colorType;
  std::uint32_t color;
  std::int32_t payloadType, reserved0;
  union {
    std::uint64_t ullValue;
  } payload;
  std::int32_t messageType;
  union {
    const char* ascii;
  } message;
};
#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE (static_cast<std::uint16_t>(sizeof(nvtxEventAttributes_t)))
#define NVTX_MESSAGE_TYPE_ASCII 1
#define NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 1

namespace rangescope::detail {

class NvtxClient {
 public:
  using Function = void (*)();
  static const NvtxClient& get() {
    static const NvtxClient client;
    return client;
  }
  template <class Result, class... Arguments>
  Result call(std::size_t number, Arguments... arguments) const {
    const Function function = slots()[number];
    return function == nullptr ? Result()
                               : reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
  }

 private:
  static constexpr int kCore2 = 5;  // NVTX_CB_MODULE_CORE2, which has 15 functions
  static constexpr unsigned kSize = 16;

  NvtxClient() {
    const char* path = std::getenv("NVTX_INJECTION64_PATH");
    void* library = path != nullptr ? dlopen(path, RTLD_LAZY) : nullptr;
    void* entry = library != nullptr ? dlsym(library, "InitializeInjectionNvtx2") : nullptr;
    if (entry == nullptr) return;
    for (unsigned i = 1; i < kSize; ++i) table()[i] = &slots()[i];
    reinterpret_cast<int (*)(const void* (*)(std::uint32_t))>(entry)(&export_table);
  }
  // They outlive the client: ranges of other static objects end after it.
  static Function* slots() {
    static Function all[kSize + 1] = {};
    return all;
  }
  static Function** table() {
    static Function* all[kSize + 1] = {};
    return all;
  }
  static int module_table(int module, Function*** out, unsigned* size) {
    if (module != kCore2) return 0;
    if (out != nullptr) *out = table();
    if (size != nullptr) *size = kSize;
    return 1;
  }
  static const void* export_table(std::uint32_t which) {
    struct Callbacks {
      std::size_t size;
      int (*module_table)(int, Function***, unsigned*);
    };
    static const Callbacks callbacks = {sizeof(Callbacks), &module_table};
    return which == 1 ? &callbacks : nullptr;  // NVTX_ETID_CALLBACKS
  }
};

}  // namespace rangescope::detail

inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return rangescope::detail::NvtxClient::get().call<int>(4, domain, event);
}
inline int nvtxDomainRangePop(nvtxDomainHandle_t domain) {
  return rangescope::detail::NvtxClient::get().call<int>(5, domain);
}
inline nvtxDomainHandle_t nvtxDomainCreateA(const char* name) {
  return rangescope::detail::NvtxClient::get().call<nvtxDomainHandle_t>(12, name);
}
