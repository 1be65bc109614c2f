#include "inject/cupti/encode.hpp"

#include <cstddef>
#include <cstring>

#include "inject/hash.hpp"

namespace rangescope::inject::cupti {

namespace gpu = wire::gpu;
namespace {

gpu::RecordHeader head(gpu::Type type, std::uint32_t id, std::uint8_t small = 0) {
  return {type, small, 0, id};
}

}  // namespace

std::uint32_t Encoder::name_id(const char* name) {
  std::uint32_t id = names_.find(name);
  if (id == 0) {
    id = next_name_++;
    names_.add(name, id);
    const std::size_t bytes = strnlen(name, GpuStream::kMostExtra);
    stream_.put_with(gpu::Name{head(gpu::Type::kName, id), static_cast<std::uint32_t>(bytes), 0}, name, bytes);
  }
  return id;
}

std::uint32_t Encoder::text_id(const char* text, std::size_t bytes) {
  const std::uint32_t id = next_name_++;
  if (bytes > GpuStream::kMostExtra) {
    bytes = GpuStream::kMostExtra;
  }
  stream_.put_with(gpu::Name{head(gpu::Type::kName, id), static_cast<std::uint32_t>(bytes), 0}, text, bytes);
  return id;
}

std::uint32_t Encoder::stream_id(std::uint32_t device, std::uint32_t context, std::uint32_t stream) {
  const StreamKey key{device, context, stream};
  std::uint32_t id = streams_.find(key);
  if (id == 0) {
    id = ++next_stream_;
    streams_.add(key, id);
    stream_.put(gpu::Stream{head(gpu::Type::kStream, id), device, context, stream, 0});
  }
  return id;
}

void Encoder::kernel(const KernelRecord& record) {
  if (record.end == 0 || record.start == 0) {
    ++unfinished_;
    return;
  }
  KindKey key{};
  key.name = name_id(record.name);
  key.stream = stream_id(record.device, record.context, record.stream);
  std::memcpy(key.grid, record.grid, sizeof key.grid);
  std::memcpy(key.block, record.block, sizeof key.block);
  std::memcpy(key.cluster, record.cluster, sizeof key.cluster);
  key.registers = record.registers_per_thread;
  key.static_shared = record.static_shared_bytes;
  key.dynamic_shared = record.dynamic_shared_bytes;
  std::uint32_t kind = kinds_.find(key);
  if (kind == 0) {
    kind = next_kind_++;
    kinds_.add(key, kind);
    gpu::KernelKind definition{head(gpu::Type::kKind, kind),
                               key.name,
                               key.stream,
                               {},
                               {},
                               {},
                               key.registers,
                               key.static_shared,
                               key.dynamic_shared};
    std::memcpy(definition.grid, key.grid, sizeof key.grid);
    std::memcpy(definition.block, key.block, sizeof key.block);
    std::memcpy(definition.cluster, key.cluster, sizeof key.cluster);
    stream_.put(definition);
  }
  struct {
    gpu::Kernel kernel;
    std::uint64_t more[2];
  } whole{};
  const std::uint64_t duration = record.end - record.start;
  std::size_t extensions = 0;
  whole.kernel.head = head(gpu::Type::kKernel, record.correlation);
  whole.kernel.start_ns = static_cast<std::int64_t>(record.start);
  whole.kernel.kind = kind;
  whole.kernel.duration_ns = static_cast<std::uint32_t>(duration);
  if (record.graph_node != 0) {
    whole.kernel.head.small |= gpu::kHasGraphNode;
    whole.more[extensions++] = record.graph_node;
  }
  if (duration >= gpu::kUnknownDuration) {
    whole.kernel.head.small |= gpu::kHasLongDuration;
    whole.kernel.duration_ns = gpu::kUnknownDuration;
    whole.more[extensions++] = duration;
  }
  const std::size_t bytes = sizeof whole.kernel + extensions * 8;
  whole.kernel.head.words = static_cast<std::uint16_t>(bytes / 8);
  stream_.put(&whole, bytes);
}

void Encoder::copy(const CopyRecord& record, gpu::Type type) {
  if (record.end == 0 || record.start == 0) {
    ++unfinished_;
    return;
  }
  struct {
    gpu::Copy copy;
    std::uint64_t node;
  } whole{};
  whole.copy = {head(type, record.correlation),
                static_cast<std::int64_t>(record.start),
                static_cast<std::int64_t>(record.end),
                record.bytes,
                stream_id(record.device, record.context, record.stream),
                record.kind,
                record.source,
                record.destination,
                0};
  whole.node = record.graph_node;
  std::size_t bytes = sizeof whole.copy;
  if (record.graph_node != 0) {
    whole.copy.head.small |= gpu::kHasGraphNode;
    bytes += 8;
  }
  whole.copy.head.words = static_cast<std::uint16_t>(bytes / 8);
  stream_.put(&whole, bytes);
}

void Encoder::graph(const GraphRecord& record) {
  if (record.end == 0 || record.start == 0) {
    ++unfinished_;
    return;
  }
  stream_.put(gpu::GraphLaunch{head(gpu::Type::kGraphLaunch, record.correlation),
                               static_cast<std::int64_t>(record.start), static_cast<std::int64_t>(record.end),
                               record.graph, stream_id(record.device, record.context, record.stream)});
}

void Encoder::launch(const Api& api, std::uint32_t cbid, std::uint32_t correlation, std::uint32_t tid,
                     std::uint64_t start, std::uint64_t end, std::uint32_t module, std::uint32_t same) {
  std::uint8_t index = cbid < kCbids ? api_index_[cbid] : 0;
  if (index == 0 && cbid < kCbids && next_api_ < 256) {
    const char* name = nullptr;
    if (api.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name) == CUPTI_SUCCESS && name != nullptr) {
      index = api_index_[cbid] = static_cast<std::uint8_t>(next_api_++);
      const std::size_t bytes = strnlen(name, 256);
      stream_.put_with(gpu::Name{head(gpu::Type::kApi, index), static_cast<std::uint32_t>(bytes), 0}, name, bytes);
    }
  }
  struct {
    gpu::LaunchIn in;
    std::uint64_t duration;
  } whole{};
  const std::uint64_t duration = end != 0 ? end - start : gpu::kUnknownDuration;
  const bool longer = duration >= gpu::kUnknownDuration;
  const std::size_t bytes = module != 0 ? sizeof whole.in : sizeof whole.in.launch;
  whole.in = {
      {head(module != 0 ? gpu::Type::kLaunchIn : gpu::Type::kLaunch, correlation, index),
       static_cast<std::int64_t>(start), longer ? gpu::kUnknownDuration : static_cast<std::uint32_t>(duration), tid},
      module,
      same};
  const bool extended = end != 0 && longer;
  std::memcpy(reinterpret_cast<char*>(&whole) + bytes, &duration, sizeof duration);
  whole.in.launch.head.words = static_cast<std::uint16_t>(bytes / 8 + (extended ? 1 : 0));
  stream_.put(&whole, bytes + (extended ? 8 : 0));
}

std::uint32_t Encoder::module(std::uint32_t around, const char* name, const char* type, bool function) {
  const std::size_t name_bytes = std::strlen(name), type_bytes = std::strlen(type);
  char text[2048];
  if (name_bytes + type_bytes > sizeof text) return 0;
  std::memcpy(text, name, name_bytes);
  std::memcpy(text + name_bytes, type, type_bytes);
  const std::uint64_t hash = fnv1a(text, name_bytes + type_bytes, kFnvSeed ^ (name_bytes * 2 + (function ? 1 : 0)));
  const ModuleKey key{around, {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)}};
  std::uint32_t id = modules_.find(key);
  if (id == 0) {
    id = next_module_++;
    modules_.add(key, id);
    stream_.put_with(gpu::Module{head(gpu::Type::kModule, id, function ? 1 : 0), around,
                                 static_cast<std::uint16_t>(name_bytes), static_cast<std::uint16_t>(type_bytes)},
                     text, name_bytes + type_bytes);
  }
  return id;
}

void Encoder::device(const DeviceRecord& record) {
  const std::size_t bytes = strnlen(record.name, 256);
  gpu::Device device{};
  device.head = head(gpu::Type::kDevice, record.id, record.mig ? 1 : 0);
  std::memcpy(device.uuid, record.uuid, sizeof device.uuid);
  device.memory_bytes = record.memory_bytes;
  device.l2_bytes = record.l2_bytes;
  device.memory_bytes_per_s = record.memory_bytes_per_s;
  device.sm_clock_hz = record.sm_clock_hz;
  device.compute_major = record.compute_major;
  device.compute_minor = record.compute_minor;
  device.sm_count = record.sm_count;
  device.name_bytes = static_cast<std::uint32_t>(bytes);
  stream_.put_with(device, record.name, bytes);
}

void Encoder::context(const ContextRecord& record) {
  stream_.put(gpu::Context{head(gpu::Type::kContext, record.id, record.green ? 1 : 0), record.device,
                           record.null_stream, record.sm_count, record.parent});
}

void Encoder::node(std::uint32_t tid, std::uint8_t type, std::uint64_t at, std::uint64_t node, std::uint64_t original) {
  stream_.put(gpu::GraphNode{head(gpu::Type::kGraphNode, tid, type), static_cast<std::int64_t>(at), node, original});
}

void Encoder::loss(gpu::LossKind kind, std::uint64_t count, const char* detail) {
  const std::size_t bytes = strnlen(detail, 1024);
  stream_.put_with(
      gpu::Loss{head(gpu::Type::kLoss, static_cast<std::uint32_t>(kind)), count, static_cast<std::uint32_t>(bytes), 0},
      detail, bytes);
}

void Encoder::info(const char* key, const char* value) {
  char text[1024];
  const std::size_t key_bytes = strnlen(key, 64);
  const std::size_t value_bytes = strnlen(value, sizeof text - key_bytes - 1);
  std::memcpy(text, key, key_bytes);
  text[key_bytes] = '\0';
  std::memcpy(text + key_bytes + 1, value, value_bytes);
  const std::size_t bytes = key_bytes + 1 + value_bytes;
  stream_.put_with(gpu::Info{head(gpu::Type::kInfo, 0), static_cast<std::uint32_t>(bytes), 0}, text, bytes);
}

void Encoder::clock_sample(std::int64_t before, std::int64_t cupti, std::int64_t after) {
  stream_.put(gpu::ClockSample{head(gpu::Type::kClockSample, 0), before, cupti, after});
}

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
