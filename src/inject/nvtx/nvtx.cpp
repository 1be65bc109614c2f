// The entry that NVTX calls (the library named by NVTX_INJECTION64_PATH) and its callbacks:
// arguments become events of the writer. Each client of NVTX in the process (every shared object
// has its own copy of the headers) calls the entry once.
//
// OpenCL names and user synchronization objects are not taken: their calls behave as without a
// tool. The payload extension has its own entry (payloads.cpp).

#include "inject/nvtx/chain.hpp"
#include "inject/nvtx/control.hpp"
#include "inject/nvtx/handles.hpp"
#include "inject/nvtx/payloads.hpp"
#include "inject/nvtx/quiet.hpp"
#include "inject/nvtx/wide.hpp"
#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {
namespace {

// NVTX_RESOURCE_TYPE_CUDA_* and NVTX_RESOURCE_TYPE_CUDART_*, whose headers include CUDA's.
constexpr std::uint32_t kCuda = 4u << 16;
constexpr std::uint32_t kCudaRt = 5u << 16;
// NVTX_PAYLOAD_TYPE_EXT of nvToolsExtPayload.h, which is a header for clients.
constexpr auto kStructuredPayload = static_cast<std::int32_t>(0xDFBD0009);

// NVTX has most functions twice: `...A` takes char, `...W` takes wchar_t. The converted name of the
// latter lives until the end of the statement.
Name name_at(const char* text) {
  return name_of(text);
}
WideName name_at(const wchar_t* text) {
  return WideName(text);
}

Event event_of(const Name& name) {
  Event event;
  event.name = name;
  return event;
}

Payload payload_of(const nvtxEventAttributes_t& a) {
  Payload payload{static_cast<std::uint32_t>(a.payloadType), 0};
  switch (a.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
    case NVTX_PAYLOAD_TYPE_INT64:
    case NVTX_PAYLOAD_TYPE_DOUBLE: payload.bits = a.payload.ullValue; return payload;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32: payload.bits = a.payload.uiValue; return payload;
    case NVTX_PAYLOAD_TYPE_INT32:
      payload.bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(a.payload.iValue));
      return payload;
    case NVTX_PAYLOAD_TYPE_FLOAT: {
      const double wide = static_cast<double>(a.payload.fValue);
      std::memcpy(&payload.bits, &wide, 8);
      return payload;
    }
    default: return {};
  }
}

// Calls `use(event)` with the event of `attributes`. The event is valid during the call only.
template <typename Use>
auto with_event(std::uint32_t domain, const nvtxEventAttributes_t* attributes, const Use& use) {
  Event event;
  event.domain = domain;
  if (attributes == nullptr)
    return use(event);
  event.category = attributes->category;
  event.has_color = attributes->colorType == NVTX_COLOR_ARGB;
  event.color = event.has_color ? attributes->color : 0;
  event.payload = payload_of(*attributes);
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: event.name = name_at(attributes->message.ascii); break;
    case NVTX_MESSAGE_TYPE_REGISTERED:
      event.name = string_of(attributes->message.registered);
      break;
    case NVTX_MESSAGE_TYPE_UNICODE: {
      const WideName wide(attributes->message.unicode);
      event.name = wide;
      return use(event);
    }
    default: break;
  }
  return use(event);
}

// Records a push, and the array of structured payloads that NCCL and others pass with it.
int push_with_payloads(std::uint32_t domain, const nvtxEventAttributes_t* a) {
  const int level = with_event(domain, a, record_push);
  if (a != nullptr && a->payloadType == kStructuredPayload && a->payload.ullValue != 0)
    take_payloads(domain,
                  reinterpret_cast<const void*>(a->payload.ullValue),
                  static_cast<std::uint32_t>(a->reserved0));
  return level;
}

void mark_ex(const nvtxEventAttributes_t* a) {
  with_event(0, a, [](const Event& e) { record_mark(e); });
}
template <typename Char>
void mark_named(const Char* text) {
  record_mark(event_of(name_at(text)));
}
nvtxRangeId_t start_ex(const nvtxEventAttributes_t* a) {
  return with_event(0, a, [](const Event& e) { return record_start(e, chain::given_range_id); });
}
template <typename Char>
nvtxRangeId_t start_named(const Char* text) {
  return record_start(event_of(name_at(text)), chain::given_range_id);
}
void end(nvtxRangeId_t id) {
  record_end(id);
}
int push_ex(const nvtxEventAttributes_t* a) {
  return push_with_payloads(0, a);
}
template <typename Char>
int push_named(const Char* text) {
  return record_push(event_of(name_at(text)));
}
int pop() {
  return record_pop(0);
}
template <typename Char>
void name_category(std::uint32_t id, const Char* text) {
  record_category(0, id, name_at(text));
}
template <typename Char>
void name_thread(std::uint32_t tid, const Char* text) {
  record_thread_name(tid, name_at(text));
}

void domain_mark_ex(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  with_event(domain_of(d), a, [](const Event& e) { record_mark(e); });
}
nvtxRangeId_t domain_start_ex(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  return with_event(
      domain_of(d), a, [](const Event& e) { return record_start(e, chain::given_range_id); });
}
void domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) {
  record_end(id);
}
int domain_push_ex(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  return push_with_payloads(domain_of(d), a);
}
int domain_pop(nvtxDomainHandle_t d) {
  return record_pop(domain_of(d));
}
nvtxResourceHandle_t resource_create(nvtxDomainHandle_t d, nvtxResourceAttributes_t* a) {
  if (a == nullptr)
    return nullptr;
  const auto record = [&](const Name& name) {
    record_resource(
        domain_of(d), static_cast<std::uint32_t>(a->identifierType), a->identifier.ullValue, name);
  };
  switch (a->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: record(name_at(a->message.ascii)); break;
    case NVTX_MESSAGE_TYPE_UNICODE: record(name_at(a->message.unicode)); break;
    case NVTX_MESSAGE_TYPE_REGISTERED: record(string_of(a->message.registered)); break;
    default: record({}); break;
  }
  static char handle;  // nothing is stored for a resource: any address except null will do
  return reinterpret_cast<nvtxResourceHandle_t>(&handle);
}
void resource_destroy(nvtxResourceHandle_t) {}
template <typename Char>
void name_domain_category(nvtxDomainHandle_t d, std::uint32_t id, const Char* text) {
  record_category(domain_of(d), id, name_at(text));
}
template <typename Char>
nvtxStringHandle_t register_string(nvtxDomainHandle_t d, const Char* text) {
  return static_cast<nvtxStringHandle_t>(make_string(domain_of(d), name_at(text)));
}
template <typename Char>
nvtxDomainHandle_t create_domain(const Char* text) {
  return static_cast<nvtxDomainHandle_t>(domain_handle(make_domain(name_at(text))));
}
void domain_destroy(nvtxDomainHandle_t) {}
void initialize(const void*) {}

template <std::uint32_t type, typename Char>
void name_resource(void* handle, const Char* text) {
  record_resource(0, type, reinterpret_cast<std::uintptr_t>(handle), name_at(text));
}
template <std::uint32_t type, typename Char>
void name_device(int device, const Char* text) {
  record_resource(0, type, static_cast<std::uint32_t>(device), name_at(text));
}

Name name_pushed(const char* text) {
  return name_at(text);
}
Name name_pushed(const nvtxEventAttributes_t* a) {
  if (a == nullptr)
    return {};
  switch (a->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: return name_at(a->message.ascii);
    case NVTX_MESSAGE_TYPE_REGISTERED: return string_of(a->message.registered);
    default: return {};
  }
}
Name name_pushed(nvtxDomainHandle_t, const nvtxEventAttributes_t* a) {
  return name_pushed(a);
}

// A callback that records within windows. Outside it returns at once, like NVTX without a tool.
template <auto function>
struct Awake;
template <typename R, typename... A, R (*function)(A...)>
struct Awake<function> {
  static R call(A... arguments) {
    if constexpr (std::is_same_v<R, int> && requires { name_pushed(arguments...); })
      if (control::counts()) [[unlikely]]
        control::count(name_pushed(arguments...));
    if (control::dormant()) [[unlikely]]
      return none<R>();
    return function(arguments...);
  }
  template <typename T>
  static T none() {
    if constexpr (std::is_same_v<T, int>)
      return kNotTracked;
    else if constexpr (std::is_same_v<T, nvtxRangeId_t>)
      return chain::given_range_id;
    else
      return T();
  }
};

struct Slot {
  unsigned index;
  NvtxFunctionPointer function;  // records
  NvtxFunctionPointer both;      // calls the chained tool, and records
};
template <unsigned module, unsigned index, auto function>
Slot always() {
  return {index,
          reinterpret_cast<NvtxFunctionPointer>(function),
          reinterpret_cast<NvtxFunctionPointer>(&chain::Both<module, index, function>::call)};
}
template <unsigned module, unsigned index, auto function>
Slot slot() {
  // Asking whether to record costs 3 ns of the 66 ns of a range, so it is left out where it can.
  return control::controlled() ? always<module, index, &Awake<function>::call>()
                               : always<module, index, function>();
}

template <std::size_t count>
void attach(const NvtxExportTableCallbacks& callbacks,
            NvtxCallbackModule module,
            bool chained,
            const Slot (&slots)[count]) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) == 0 || table == nullptr)
    return;
  for (const Slot& slot : slots) {
    if (slot.index < size && table[slot.index] != nullptr)
      *table[slot.index] = chained ? slot.both : slot.function;
  }
}

void attach_core(const NvtxExportTableCallbacks& callbacks, bool chained) {
  const Slot core[] = {
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkEx, mark_ex>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkA, mark_named<char>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkW, mark_named<wchar_t>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartEx, start_ex>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, start_named<char>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartW, start_named<wchar_t>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, end>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, push_ex>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, push_named<char>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushW, push_named<wchar_t>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, pop>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameCategoryA, name_category<char>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameCategoryW, name_category<wchar_t>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameOsThreadA, name_thread<char>>(),
      slot<NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameOsThreadW, name_thread<wchar_t>>()};
  attach(callbacks, NVTX_CB_MODULE_CORE, chained, core);
}

void attach_core2(const NvtxExportTableCallbacks& callbacks, bool chained) {
  const Slot core2[] = {
      slot<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, domain_mark_ex>(),
      slot<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, domain_start_ex>(),
      slot<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, domain_end>(),
      slot<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, domain_push_ex>(),
      slot<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, domain_pop>(),
      slot<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainResourceCreate, resource_create>(),
      slot<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainResourceDestroy, resource_destroy>(),
      slot<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainNameCategoryA, name_domain_category<char>>(),
      slot<NVTX_CB_MODULE_CORE2,
           NVTX_CBID_CORE2_DomainNameCategoryW,
           name_domain_category<wchar_t>>(),
      always<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, register_string<char>>(),
      always<NVTX_CB_MODULE_CORE2,
             NVTX_CBID_CORE2_DomainRegisterStringW,
             register_string<wchar_t>>(),
      always<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, create_domain<char>>(),
      always<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateW, create_domain<wchar_t>>(),
      always<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainDestroy, domain_destroy>(),
      always<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_Initialize, initialize>()};
  attach(callbacks, NVTX_CB_MODULE_CORE2, chained, core2);
}

void attach_cuda(const NvtxExportTableCallbacks& callbacks, bool chained) {
  const Slot cuda[] = {
      slot<NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuDeviceA, name_device<kCuda | 1, char>>(),
      slot<NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuDeviceW, name_device<kCuda | 1, wchar_t>>(),
      slot<NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuContextA, name_resource<kCuda | 2, char>>(),
      slot<NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuContextW, name_resource<kCuda | 2, wchar_t>>(),
      slot<NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuStreamA, name_resource<kCuda | 3, char>>(),
      slot<NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuStreamW, name_resource<kCuda | 3, wchar_t>>(),
      slot<NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuEventA, name_resource<kCuda | 4, char>>(),
      slot<NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuEventW, name_resource<kCuda | 4, wchar_t>>()};
  attach(callbacks, NVTX_CB_MODULE_CUDA, chained, cuda);
}

void attach_cudart(const NvtxExportTableCallbacks& callbacks, bool chained) {
  const Slot cudart[] = {slot<NVTX_CB_MODULE_CUDART,
                              NVTX_CBID_CUDART_NameCudaDeviceA,
                              name_device<kCudaRt | 0, char>>(),
                         slot<NVTX_CB_MODULE_CUDART,
                              NVTX_CBID_CUDART_NameCudaDeviceW,
                              name_device<kCudaRt | 0, wchar_t>>(),
                         slot<NVTX_CB_MODULE_CUDART,
                              NVTX_CBID_CUDART_NameCudaStreamA,
                              name_resource<kCudaRt | 1, char>>(),
                         slot<NVTX_CB_MODULE_CUDART,
                              NVTX_CBID_CUDART_NameCudaStreamW,
                              name_resource<kCudaRt | 1, wchar_t>>(),
                         slot<NVTX_CB_MODULE_CUDART,
                              NVTX_CBID_CUDART_NameCudaEventA,
                              name_resource<kCudaRt | 2, char>>(),
                         slot<NVTX_CB_MODULE_CUDART,
                              NVTX_CBID_CUDART_NameCudaEventW,
                              name_resource<kCudaRt | 2, wchar_t>>()};
  attach(callbacks, NVTX_CB_MODULE_CUDART, chained, cudart);
}

void attach_all(const NvtxExportTableCallbacks& callbacks, bool chained) {
  attach_core(callbacks, chained);
  attach_core2(callbacks, chained);
  attach_cuda(callbacks, chained);
  attach_cudart(callbacks, chained);
}

}  // namespace
}  // namespace rangescope::inject

// Returning 0 makes NVTX continue without a tool: every call is then only a null check.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  using namespace rangescope::inject;
  const NoCancel no_cancel;
  if (get_table == nullptr)
    return 0;
  if (!writer_start())
    return chain::initialize(get_table) ? 1 : 0;  // only the other tool
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks))
    return 0;
  attach_all(*callbacks, chain::initialize(get_table));
  return 1;
}
