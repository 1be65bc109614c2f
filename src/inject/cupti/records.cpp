#include "inject/cupti/records.hpp"

#include <cstddef>
#include <cstring>

namespace rangescope::inject::cupti {
namespace {

// What the header comment promises, for the fields that are read: equal places in the first and the last struct of the
// supported releases (12.0 wrote Kernel9, Memcpy5, MemcpyPtoP4, Memset4, GraphTrace and Device4).
#define RANGESCOPE_SAME(older, newer, field) \
  static_assert(offsetof(older, field) == offsetof(newer, field) && sizeof(older::field) == sizeof(newer::field))
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, registersPerThread);
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, start);
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, end);
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, streamId);
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, dynamicSharedMemory);
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, correlationId);
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, name);
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, graphNodeId);
RANGESCOPE_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, clusterZ);
RANGESCOPE_SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, bytes);
RANGESCOPE_SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, correlationId);
RANGESCOPE_SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, graphNodeId);
RANGESCOPE_SAME(CUpti_ActivityMemcpyPtoP3, CUpti_ActivityMemcpyPtoP4, correlationId);
RANGESCOPE_SAME(CUpti_ActivityMemcpyPtoP3, CUpti_ActivityMemcpyPtoP4, graphNodeId);
RANGESCOPE_SAME(CUpti_ActivityMemset3, CUpti_ActivityMemset4, graphNodeId);
RANGESCOPE_SAME(CUpti_ActivityGraphTrace, CUpti_ActivityGraphTrace2, streamId);
RANGESCOPE_SAME(CUpti_ActivityDevice4, CUpti_ActivityDevice5, name);
RANGESCOPE_SAME(CUpti_ActivityDevice4, CUpti_ActivityDevice5, migUuid);
RANGESCOPE_SAME(CUpti_ActivityContext, CUpti_ActivityContext3, nullStreamId);
#undef RANGESCOPE_SAME

template <typename Struct>
const Struct& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Struct&>(record);
}

template <typename Struct>
CopyRecord copy_of(const CUpti_Activity& record) {
  const auto& from = as<Struct>(record);
  return {from.start,    from.end,         from.bytes,    from.correlationId, from.deviceId, from.contextId,
          from.streamId, from.graphNodeId, from.copyKind, from.srcKind,       from.dstKind};
}

constexpr std::uint32_t kContextWithGreen = 23;  // 12.5 is the first release seen to write the green context's fields

}  // namespace

KernelRecord read_kernel(const CUpti_Activity& record, Family) {
  const auto& from = as<CUpti_ActivityKernel9>(record);
  KernelRecord to{};
  to.start = from.start;
  to.end = from.end;
  to.correlation = from.correlationId;
  to.device = from.deviceId;
  to.context = from.contextId;
  to.stream = from.streamId;
  to.graph_node = from.graphNodeId;
  to.name = from.name != nullptr ? from.name : "";
  const std::int32_t grid[3] = {from.gridX, from.gridY, from.gridZ};
  const std::int32_t block[3] = {from.blockX, from.blockY, from.blockZ};
  const std::uint32_t cluster[3] = {from.clusterX, from.clusterY, from.clusterZ};
  for (int i = 0; i < 3; ++i) {
    to.grid[i] = static_cast<std::uint32_t>(grid[i]);
    to.block[i] = static_cast<std::uint32_t>(block[i]);
    to.cluster[i] = cluster[i];
  }
  to.registers_per_thread = from.registersPerThread;
  to.static_shared_bytes = static_cast<std::uint32_t>(from.staticSharedMemory);
  to.dynamic_shared_bytes = static_cast<std::uint32_t>(from.dynamicSharedMemory);
  return to;
}

CopyRecord read_copy(const CUpti_Activity& record, Family) {
  return copy_of<CUpti_ActivityMemcpy5>(record);
}

CopyRecord read_peer_copy(const CUpti_Activity& record, Family) {
  return copy_of<CUpti_ActivityMemcpyPtoP4>(record);
}

CopyRecord read_memset(const CUpti_Activity& record, Family) {
  const auto& from = as<CUpti_ActivityMemset4>(record);
  return {from.start,
          from.end,
          from.bytes,
          from.correlationId,
          from.deviceId,
          from.contextId,
          from.streamId,
          from.graphNodeId,
          static_cast<std::uint8_t>(from.memoryKind),
          0,
          0};
}

GraphRecord read_graph(const CUpti_Activity& record, Family) {
  const auto& from = as<CUpti_ActivityGraphTrace>(record);
  return {from.start, from.end, from.correlationId, from.deviceId, from.contextId, from.streamId, from.graphId};
}

ApiRecord read_api(const CUpti_Activity& record, Family) {
  const auto& from = as<CUpti_ActivityAPI>(record);
  return {from.start, from.end, from.correlationId, from.threadId, from.cbid};
}

DeviceRecord read_device(const CUpti_Activity& record, Family) {
  const auto& from = as<CUpti_ActivityDevice4>(record);
  DeviceRecord to{};
  to.id = from.id;
  to.name = from.name != nullptr ? from.name : "";
  to.mig = from.isMigEnabled != 0;
  std::memcpy(to.uuid, to.mig ? &from.migUuid : &from.uuid, sizeof to.uuid);
  to.memory_bytes = from.globalMemorySize;
  to.l2_bytes = from.l2CacheSize;
  to.memory_bytes_per_s = from.globalMemoryBandwidth * 1000;  // kB/s
  to.sm_clock_hz = std::uint64_t{from.coreClockRate} * 1000;  // kHz
  to.compute_major = from.computeCapabilityMajor;
  to.compute_minor = from.computeCapabilityMinor;
  to.sm_count = from.numMultiprocessors;
  return to;
}

ContextRecord read_context(const CUpti_Activity& record, std::uint32_t version) {
  const auto& from = as<CUpti_ActivityContext2>(record);
  ContextRecord to{from.contextId, from.deviceId, from.nullStreamId, 0, false, 0};
  if (version >= kContextWithGreen) {
    to.parent = from.parentContextId;
    to.green = from.isGreenContext != 0;
    to.sm_count = to.green ? from.numMultiprocessors : 0;
  }
  return to;
}

}  // namespace rangescope::inject::cupti
