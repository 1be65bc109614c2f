#include "inject/cupti/encode.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include "inject/hash.hpp"
#include "inject/text.hpp"

namespace rangescope::inject::cupti {

namespace gpu = wire::gpu;
namespace {

// 12.5, the first release that was seen to write the green context's fields.
constexpr std::uint32_t kContextWithGreen = 23;

// Asserts the promise of the header comment for the fields that are read: they have the same offset
// in the first and the last struct of the supported releases (12.0 wrote Kernel9, Memcpy5,
// MemcpyPtoP4, Memset4, GraphTrace and Device4).
#define RANGESCOPE_SAME(older, newer, field)                        \
  static_assert(offsetof(older, field) == offsetof(newer, field) && \
                sizeof(older::field) == sizeof(newer::field))
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

}  // namespace

void Encoder::activity(const Api& api, const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: return kernel(as<CUpti_ActivityKernel9>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& memcpy = as<CUpti_ActivityMemcpy5>(record);
      return copy(memcpy, gpu::Type::kCopy, memcpy.copyKind, memcpy.srcKind, memcpy.dstKind);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& memcpy = as<CUpti_ActivityMemcpyPtoP4>(record);
      return copy(memcpy, gpu::Type::kCopy, memcpy.copyKind, memcpy.srcKind, memcpy.dstKind);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& memset = as<CUpti_ActivityMemset4>(record);
      return copy(memset, gpu::Type::kMemset, static_cast<std::uint8_t>(memset.memoryKind));
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return graph(as<CUpti_ActivityGraphTrace>(record));
    case CUPTI_ACTIVITY_KIND_DEVICE: return device(as<CUpti_ActivityDevice4>(record));
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return context(as<CUpti_ActivityContext2>(record), api.version);
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = as<CUpti_ActivityAPI>(record);
      return launch(api, call.cbid, call.correlationId, call.threadId, call.start, call.end);
    }
    default: break;
  }
}

bool Encoder::has_times(std::uint64_t start, std::uint64_t end) {
  if (start == 0 || end == 0) {
    ++unfinished_;
    return false;
  }
  if (end < start) {
    ++impossible_;
    return false;
  }
  return true;
}

std::uint32_t Encoder::name_id(const char* name) {
  std::uint32_t id = names_.find(name);
  if (id != 0)
    return id;
  id = text_id(name, strnlen(name, GpuStream::kMostExtra));
  names_.add(name, id);
  return id;
}

std::uint32_t Encoder::text_id(const char* text, std::size_t bytes) {
  const std::uint32_t id = next_name_++;
  put_text(gpu::Type::kName, id, text, std::min(bytes, GpuStream::kMostExtra));
  return id;
}

// A definition, or an info, whose text follows it.
void Encoder::put_text(gpu::Type type, std::uint32_t id, const char* text, std::size_t bytes) {
  stream_.put_with(gpu::Name{head(type, id), static_cast<std::uint32_t>(bytes), 0}, text, bytes);
}

std::uint32_t Encoder::stream_id(std::uint32_t device,
                                 std::uint32_t context,
                                 std::uint32_t stream) {
  const StreamKey key{device, context, stream};
  std::uint32_t id = streams_.find(key);
  if (id == 0) {
    id = ++next_stream_;
    streams_.add(key, id);
    stream_.put(gpu::Stream{head(gpu::Type::kStream, id), device, context, stream, 0});
  }
  return id;
}

std::uint32_t Encoder::kind_id(const CUpti_ActivityKernel9& record) {
  const auto word = [](auto value) { return static_cast<std::uint32_t>(value); };
  const KindKey key{name_id(text_or(record.name, "")),
                    stream_id(record.deviceId, record.contextId, record.streamId),
                    {word(record.gridX), word(record.gridY), word(record.gridZ)},
                    {word(record.blockX), word(record.blockY), word(record.blockZ)},
                    {record.clusterX, record.clusterY, record.clusterZ},
                    record.registersPerThread,
                    word(record.staticSharedMemory),
                    word(record.dynamicSharedMemory)};
  std::uint32_t kind = kinds_.find(key);
  if (kind != 0)
    return kind;
  kind = next_kind_++;
  kinds_.add(key, kind);
  gpu::KernelKind definition{};
  definition.head = head(gpu::Type::kKind, kind);
  static_assert(sizeof definition == sizeof definition.head + sizeof key);
  std::memcpy(&definition.name, &key, sizeof key);
  stream_.put(definition);
  return kind;
}

void Encoder::kernel(const CUpti_ActivityKernel9& record) {
  if (!has_times(record.start, record.end))
    return;
  const std::uint32_t kind = kind_id(record);
  struct {
    gpu::Kernel kernel;
    std::uint64_t extensions[2];
  } extended{};
  const std::uint64_t duration = record.end - record.start;
  std::size_t extensions = 0;
  extended.kernel = {head(gpu::Type::kKernel, record.correlationId),
                     static_cast<std::int64_t>(record.start),
                     static_cast<std::uint32_t>(duration),
                     kind};
  if (record.graphNodeId != 0) {
    extended.kernel.head.small |= gpu::kHasGraphNode;
    extended.extensions[extensions++] = record.graphNodeId;
  }
  if (duration >= gpu::kUnknownDuration) {
    extended.kernel.head.small |= gpu::kHasLongDuration;
    extended.kernel.duration_ns = gpu::kUnknownDuration;
    extended.extensions[extensions++] = duration;
  }
  const std::size_t bytes = sizeof extended.kernel + extensions * 8;
  extended.kernel.head.words = static_cast<std::uint16_t>(bytes / 8);
  stream_.put(&extended, bytes);
}

template <typename Struct>
void Encoder::copy(const Struct& record,
                   gpu::Type type,
                   std::uint8_t kind,
                   std::uint8_t source_kind,
                   std::uint8_t destination_kind) {
  if (!has_times(record.start, record.end))
    return;
  struct {
    gpu::Copy copy;
    std::uint64_t node;
  } extended{{head(type, record.correlationId),
              static_cast<std::int64_t>(record.start),
              static_cast<std::int64_t>(record.end),
              record.bytes,
              stream_id(record.deviceId, record.contextId, record.streamId),
              kind,
              source_kind,
              destination_kind,
              0},
             record.graphNodeId};
  std::size_t bytes = sizeof extended.copy;
  if (record.graphNodeId != 0) {
    extended.copy.head.small = gpu::kHasGraphNode;
    bytes = sizeof extended;
  }
  extended.copy.head.words = static_cast<std::uint16_t>(bytes / 8);
  stream_.put(&extended, bytes);
}

void Encoder::graph(const CUpti_ActivityGraphTrace& record) {
  if (!has_times(record.start, record.end))
    return;
  stream_.put(gpu::GraphLaunch{head(gpu::Type::kGraphLaunch, record.correlationId),
                               static_cast<std::int64_t>(record.start),
                               static_cast<std::int64_t>(record.end),
                               record.graphId,
                               stream_id(record.deviceId, record.contextId, record.streamId)});
}

std::uint8_t Encoder::api_index(const Api& api, std::uint32_t cbid) {
  if (cbid >= kCbids)
    return 0;
  if (api_index_[cbid] != 0 || next_api_ == 256)
    return api_index_[cbid];
  const char* name = nullptr;
  const CUptiResult result = api.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name);
  if (result != CUPTI_SUCCESS || name == nullptr)
    return 0;
  const auto index = static_cast<std::uint8_t>(next_api_++);
  api_index_[cbid] = index;
  put_text(gpu::Type::kApi, index, name, strnlen(name, 256));
  return index;
}

void Encoder::launch(const Api& api,
                     std::uint32_t cbid,
                     std::uint32_t correlation,
                     std::uint32_t tid,
                     std::uint64_t start,
                     std::uint64_t end,
                     std::uint32_t module,
                     std::uint32_t same,
                     gpu::MadeBy made_by) {
  struct {
    gpu::LaunchOf of;
    std::uint64_t duration;
  } extended{};
  gpu::Type type = gpu::Type::kLaunch;
  std::size_t bytes = sizeof extended.of.in.launch;
  if (made_by.kind != gpu::MadeBy::kNothing) {
    type = gpu::Type::kLaunchOf;
    bytes = sizeof extended.of;
  } else if (module != 0) {
    type = gpu::Type::kLaunchIn;
    bytes = sizeof extended.of.in;
  }
  const std::uint64_t duration = end != 0 ? end - start : gpu::kUnknownDuration;
  const bool is_long = duration >= gpu::kUnknownDuration;
  const auto short_duration =
      is_long ? gpu::kUnknownDuration : static_cast<std::uint32_t>(duration);
  extended.of = {{{head(type, correlation, api_index(api, cbid)),
                   static_cast<std::int64_t>(start),
                   short_duration,
                   tid},
                  module,
                  same},
                 made_by};
  if (end != 0 && is_long) {
    std::memcpy(reinterpret_cast<char*>(&extended) + bytes, &duration, sizeof duration);
    bytes += sizeof duration;
  }
  extended.of.in.launch.head.words = static_cast<std::uint16_t>(bytes / 8);
  stream_.put(&extended, bytes);
}

void Encoder::details(std::uint32_t correlation, const CallDetails& details) {
  const auto head_of = [&](std::uint8_t small) { return head(details.type, correlation, small); };
  switch (details.type) {
    case gpu::Type::kMemory:
      stream_.put(gpu::Memory{head_of(details.kind),
                              details.object,
                              details.bytes,
                              details.pool,
                              details.context,
                              details.stream,
                              static_cast<gpu::MemoryOperation>(details.operation),
                              {},
                              details.result});
      break;
    case gpu::Type::kEvent:
      stream_.put(
          gpu::Event{head_of(details.operation), details.object, details.context, details.stream});
      break;
    case gpu::Type::kStreamMade:
      stream_.put(gpu::StreamMade{head_of(details.operation), details.context, details.stream});
      break;
    default: break;
  }
}

std::uint32_t Encoder::module(std::uint32_t around,
                              const char* name,
                              const char* type,
                              bool function) {
  const std::size_t name_bytes = std::strlen(name);
  const std::size_t type_bytes = std::strlen(type);
  char text[2048];
  if (name_bytes + type_bytes > sizeof text)
    return 0;
  std::memcpy(text, name, name_bytes);
  std::memcpy(text + name_bytes, type, type_bytes);
  const std::uint8_t flag{function};
  const std::uint64_t hash =
      fnv1a(text, name_bytes + type_bytes, kFnvSeed ^ (name_bytes * 2 + flag));
  const ModuleKey key{around,
                      {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)}};
  std::uint32_t id = modules_.find(key);
  if (id != 0)
    return id;
  id = next_module_++;
  modules_.add(key, id);
  const gpu::Module definition{head(gpu::Type::kModule, id, flag),
                               around,
                               static_cast<std::uint16_t>(name_bytes),
                               static_cast<std::uint16_t>(type_bytes)};
  stream_.put_with(definition, text, name_bytes + type_bytes);
  return id;
}

void Encoder::device(const CUpti_ActivityDevice4& record) {
  const char* name = text_or(record.name, "");
  const bool mig = record.isMigEnabled != 0;
  gpu::Device device{};
  device.head = head(gpu::Type::kDevice, record.id, std::uint8_t{mig});
  std::memcpy(device.uuid, mig ? &record.migUuid : &record.uuid, sizeof device.uuid);
  device.memory_bytes = record.globalMemorySize;
  device.l2_bytes = record.l2CacheSize;
  device.memory_bytes_per_s = record.globalMemoryBandwidth * 1000;  // kB/s
  device.sm_clock_hz = std::uint64_t{record.coreClockRate} * 1000;  // kHz
  device.compute_major = record.computeCapabilityMajor;
  device.compute_minor = record.computeCapabilityMinor;
  device.sm_count = record.numMultiprocessors;
  device.name_bytes = static_cast<std::uint32_t>(strnlen(name, 256));
  stream_.put_with(device, name, device.name_bytes);
}

void Encoder::context(const CUpti_ActivityContext2& record, std::uint32_t version) {
  gpu::Context context{
      head(gpu::Type::kContext, record.contextId), record.deviceId, record.nullStreamId, 0, 0};
  if (version >= kContextWithGreen) {
    context.parent = record.parentContextId;
    if (record.isGreenContext != 0) {
      context.head.small = 1;
      context.sm_count = record.numMultiprocessors;
    }
  }
  stream_.put(context);
}

void Encoder::node(std::uint32_t tid,
                   std::uint8_t type,
                   std::uint64_t time_ns,
                   std::uint64_t node,
                   std::uint64_t original) {
  stream_.put(gpu::GraphNode{
      head(gpu::Type::kGraphNode, tid, type), static_cast<std::int64_t>(time_ns), node, original});
}

void Encoder::loss(gpu::LossKind kind, std::uint64_t count, const char* detail) {
  const std::size_t bytes = strnlen(detail, 1024);
  stream_.put_with(gpu::Loss{head(gpu::Type::kLoss, static_cast<std::uint32_t>(kind)),
                             count,
                             static_cast<std::uint32_t>(bytes),
                             0},
                   detail,
                   bytes);
}

void Encoder::info(const char* key, const char* value) {
  char text[1024];
  const std::size_t key_bytes = strnlen(key, 64);
  const std::size_t value_bytes = strnlen(value, sizeof text - key_bytes - 1);
  std::memcpy(text, key, key_bytes);
  text[key_bytes] = '\0';
  std::memcpy(text + key_bytes + 1, value, value_bytes);
  put_text(gpu::Type::kInfo, 0, text, key_bytes + 1 + value_bytes);
}

void Encoder::info(const char* key, std::int64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld", static_cast<long long>(number));
  info(key, text);
}

void Encoder::clock_sample(std::int64_t before, std::int64_t cupti, std::int64_t after) {
  stream_.put(gpu::ClockSample{head(gpu::Type::kClockSample, 0), before, cupti, after});
}

}  // namespace rangescope::inject::cupti
