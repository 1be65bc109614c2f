#include "inject/cupti/call_details.hpp"

#include <iterator>

namespace rangescope::inject::cupti {

namespace gpu = wire::gpu;
namespace {

/// One call; the methods return whether it has details.
class ReturnedCall {
 public:
  ReturnedCall(const Api& api,
               const CUpti_CallbackData& call,
               bool per_thread_stream,
               CallDetails& details)
      : api_(api), call_(call), per_thread_stream_(per_thread_stream), details_(details) {
    details_.context = call.contextUid;
  }

  /// No details: the call and its duration suffice for captures of graphs.
  bool nothing() { return false; }

  // ---- Memory

  bool device() {
    const auto& parameters = as<cuMemAlloc_v2_params>();
    return allocates(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, parameters.dptr, parameters.bytesize);
  }
  bool pitched() {
    const auto& parameters = as<cuMemAllocPitch_v2_params>();
    std::size_t pitch = parameters.WidthInBytes;
    if (succeeded() && parameters.pPitch != nullptr)
      pitch = *parameters.pPitch;
    const std::size_t bytes = pitch * parameters.Height;
    return allocates(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, parameters.dptr, bytes);
  }
  bool managed() {
    const auto& parameters = as<cuMemAllocManaged_params>();
    return allocates(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, parameters.dptr, parameters.bytesize);
  }
  /// cuMemAllocHost and cuMemHostAlloc: the parameters that are read have the same place.
  bool pinned() {
    const auto& parameters = as<cuMemAllocHost_v2_params>();
    return allocates(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, parameters.pp, parameters.bytesize);
  }
  /// Page-locks existing memory, whose address is a parameter.
  bool registered() {
    const auto& parameters = as<cuMemHostRegister_v2_params>();
    return allocates(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, &parameters.p, parameters.bytesize);
  }
  /// Physical memory, which the program maps by other calls.
  bool physical() {
    const auto& parameters = as<cuMemCreate_params>();
    auto kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    const CUmemAllocationProp* properties = parameters.prop;
    const bool on_host =
        properties != nullptr && properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    if (on_host)
      kind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    return allocates(kind, parameters.handle, parameters.size);
  }
  bool in_stream() {
    const auto& parameters = as<cuMemAllocAsync_params>();
    use_stream(parameters.hStream);
    return allocates(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, parameters.dptr, parameters.bytesize);
  }
  bool from_pool() {
    const auto& parameters = as<cuMemAllocFromPoolAsync_params>();
    use_stream(parameters.hStream);
    details_.pool = reinterpret_cast<std::uint64_t>(parameters.pool);
    return allocates(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, parameters.dptr, parameters.bytesize);
  }
  bool freed() { return frees(as<cuMemFree_v2_params>().dptr); }
  bool freed_in_stream() {
    use_stream(as<cuMemFreeAsync_params>().hStream);
    return frees(as<cuMemFreeAsync_params>().dptr);
  }
  /// cuMemFreeHost and cuMemHostUnregister.
  bool freed_on_host() {
    return frees(reinterpret_cast<std::uint64_t>(as<cuMemFreeHost_params>().p));
  }
  bool freed_physical() { return frees(as<cuMemRelease_params>().handle); }

  // ---- Events and streams

  bool event_recorded() {
    use_stream(as<cuEventRecord_params>().hStream);
    return uses_event(gpu::EventOperation::kRecord, as<cuEventRecord_params>().hEvent);
  }
  bool stream_waits() {
    use_stream(as<cuStreamWaitEvent_params>().hStream);
    return uses_event(gpu::EventOperation::kStreamWait, as<cuStreamWaitEvent_params>().hEvent);
  }
  bool event_awaited() {
    return uses_event(gpu::EventOperation::kSynchronize, as<cuEventSynchronize_params>().hEvent);
  }
  bool stream_awaited() {
    use_stream(as<cuStreamSynchronize_params>().hStream);
    return uses_event(gpu::EventOperation::kStreamSynchronize, nullptr);
  }
  /// Both functions have these parameters first.
  bool stream_made() {
    const auto& parameters = as<cuStreamCreate_params>();
    if (!succeeded() || parameters.phStream == nullptr)
      return false;
    use_stream(*parameters.phStream);
    details_.type = gpu::Type::kStreamMade;
    const bool is_non_blocking = (parameters.Flags & CU_STREAM_NON_BLOCKING) != 0;
    details_.operation = std::uint8_t{is_non_blocking};
    return details_.stream != gpu::kNoStream;
  }

 private:
  template <typename Parameters>
  [[nodiscard]] const Parameters& as() const {
    return *static_cast<const Parameters*>(call_.functionParams);
  }
  [[nodiscard]] CUresult result() const {
    return *static_cast<const CUresult*>(call_.functionReturnValue);
  }
  [[nodiscard]] bool succeeded() const { return result() == CUDA_SUCCESS; }

  void use_stream(CUstream stream) {
    if (api_.cuptiGetStreamIdEx == nullptr)
      return;
    std::uint32_t number = 0;
    const std::uint8_t per_thread{per_thread_stream_};
    const auto status = api_.cuptiGetStreamIdEx(call_.context, stream, per_thread, &number);
    if (status == CUPTI_SUCCESS)
      details_.stream = number;
  }

  /// `object` points to an address or a handle, both of 64 bits, if the call has succeeded.
  bool allocates(CUpti_ActivityMemoryKind kind, const void* object, std::size_t bytes) {
    auto operation = gpu::MemoryOperation::kAllocate;
    if (!succeeded())
      operation = gpu::MemoryOperation::kFailedAllocation;
    details_.type = gpu::Type::kMemory;
    details_.kind = static_cast<std::uint8_t>(kind);
    details_.operation = static_cast<std::uint8_t>(operation);
    details_.bytes = bytes;
    details_.result = result();
    if (succeeded() && object != nullptr) {
      details_.object = *static_cast<const std::uint64_t*>(object);
    }
    return true;
  }

  /// Freeing a null pointer frees nothing: many programs do it to initialize CUDA.
  bool frees(std::uint64_t address) {
    if (address == 0 || !succeeded())
      return false;
    details_.type = gpu::Type::kMemory;
    details_.operation = static_cast<std::uint8_t>(gpu::MemoryOperation::kFree);
    details_.object = address;
    return true;
  }

  bool uses_event(gpu::EventOperation operation, CUevent event) {
    if (!succeeded())
      return false;
    details_.type = gpu::Type::kEvent;
    details_.operation = static_cast<std::uint8_t>(operation);
    details_.object = reinterpret_cast<std::uint64_t>(event);
    return true;
  }

  const Api& api_;
  const CUpti_CallbackData& call_;
  bool per_thread_stream_;
  CallDetails& details_;
};

struct Function {
  CUpti_CallbackId id;
  bool (ReturnedCall::*read)();
  bool in_modules;
  bool per_thread_stream = false;  ///< stream 0 is the thread's own
};

// Functions whose names end in _ptsz are those of programs with a default stream per thread.
#define RANGESCOPE_ID(function) CUPTI_DRIVER_TRACE_CBID_##function
constexpr Function kFunctions[] = {
    {RANGESCOPE_ID(cuMemAlloc_v2), &ReturnedCall::device, true},
    {RANGESCOPE_ID(cuMemAllocPitch_v2), &ReturnedCall::pitched, true},
    {RANGESCOPE_ID(cuMemAllocManaged), &ReturnedCall::managed, true},
    {RANGESCOPE_ID(cuMemAllocHost_v2), &ReturnedCall::pinned, true},
    {RANGESCOPE_ID(cuMemHostAlloc), &ReturnedCall::pinned, true},
    {RANGESCOPE_ID(cuMemHostAlloc_v2), &ReturnedCall::pinned, true},
    {RANGESCOPE_ID(cuMemHostRegister), &ReturnedCall::registered, true},
    {RANGESCOPE_ID(cuMemHostRegister_v2), &ReturnedCall::registered, true},
    {RANGESCOPE_ID(cuMemCreate), &ReturnedCall::physical, true},
    {RANGESCOPE_ID(cuMemAllocAsync), &ReturnedCall::in_stream, true},
    {RANGESCOPE_ID(cuMemAllocAsync_ptsz), &ReturnedCall::in_stream, true, true},
    {RANGESCOPE_ID(cuMemAllocFromPoolAsync), &ReturnedCall::from_pool, true},
    {RANGESCOPE_ID(cuMemAllocFromPoolAsync_ptsz), &ReturnedCall::from_pool, true, true},
    {RANGESCOPE_ID(cuMemFree_v2), &ReturnedCall::freed, true},
    {RANGESCOPE_ID(cuMemFreeAsync), &ReturnedCall::freed_in_stream, true},
    {RANGESCOPE_ID(cuMemFreeAsync_ptsz), &ReturnedCall::freed_in_stream, true, true},
    {RANGESCOPE_ID(cuMemFreeHost), &ReturnedCall::freed_on_host, true},
    {RANGESCOPE_ID(cuMemHostUnregister), &ReturnedCall::freed_on_host, true},
    {RANGESCOPE_ID(cuMemRelease), &ReturnedCall::freed_physical, true},
    {RANGESCOPE_ID(cuEventSynchronize), &ReturnedCall::event_awaited, true},
    {RANGESCOPE_ID(cuStreamSynchronize), &ReturnedCall::stream_awaited, true},
    {RANGESCOPE_ID(cuStreamSynchronize_ptsz), &ReturnedCall::stream_awaited, true, true},
    {RANGESCOPE_ID(cuEventRecord), &ReturnedCall::event_recorded, false},
    {RANGESCOPE_ID(cuEventRecord_ptsz), &ReturnedCall::event_recorded, false, true},
    {RANGESCOPE_ID(cuEventRecordWithFlags), &ReturnedCall::event_recorded, false},
    {RANGESCOPE_ID(cuEventRecordWithFlags_ptsz), &ReturnedCall::event_recorded, false, true},
    {RANGESCOPE_ID(cuStreamWaitEvent), &ReturnedCall::stream_waits, false},
    {RANGESCOPE_ID(cuStreamWaitEvent_ptsz), &ReturnedCall::stream_waits, false, true},
    {RANGESCOPE_ID(cuStreamCreate), &ReturnedCall::stream_made, false},
    {RANGESCOPE_ID(cuStreamCreateWithPriority), &ReturnedCall::stream_made, false},
    {RANGESCOPE_ID(cuStreamBeginCapture), &ReturnedCall::nothing, false},
    {RANGESCOPE_ID(cuStreamBeginCapture_ptsz), &ReturnedCall::nothing, false, true},
    {RANGESCOPE_ID(cuStreamBeginCapture_v2), &ReturnedCall::nothing, false},
    {RANGESCOPE_ID(cuStreamBeginCapture_v2_ptsz), &ReturnedCall::nothing, false, true},
    {RANGESCOPE_ID(cuStreamEndCapture), &ReturnedCall::nothing, false},
    {RANGESCOPE_ID(cuStreamEndCapture_ptsz), &ReturnedCall::nothing, false, true},
    {RANGESCOPE_ID(cuGraphInstantiate), &ReturnedCall::nothing, false},
    {RANGESCOPE_ID(cuGraphInstantiate_v2), &ReturnedCall::nothing, false},
    {RANGESCOPE_ID(cuGraphInstantiateWithFlags), &ReturnedCall::nothing, false},
    {RANGESCOPE_ID(cuGraphInstantiateWithParams), &ReturnedCall::nothing, false},
    {RANGESCOPE_ID(cuGraphInstantiateWithParams_ptsz), &ReturnedCall::nothing, false, true},
    {RANGESCOPE_ID(cuGraphExecDestroy), &ReturnedCall::nothing, false},
};
#undef RANGESCOPE_ID

}  // namespace

DetailedFunction detailed_function(CUpti_CallbackId id) {
  for (std::size_t index = 0; index < std::size(kFunctions); ++index) {
    if (kFunctions[index].id == id)
      return static_cast<DetailedFunction>(index + 1);
  }
  return 0;
}

bool is_in_modules(DetailedFunction function) {
  return kFunctions[function - 1].in_modules;
}

bool details_of(const Api& api,
                DetailedFunction function,
                const CUpti_CallbackData& call,
                CallDetails& details) {
  if (call.functionParams == nullptr || call.functionReturnValue == nullptr)
    return false;
  const Function& properties = kFunctions[function - 1];
  ReturnedCall returned(api, call, properties.per_thread_stream, details);
  return (returned.*properties.read)();
}

}  // namespace rangescope::inject::cupti
