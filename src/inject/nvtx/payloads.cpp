// The payload extension of NVTX (nvToolsExtPayload.h), which libraries such as NCCL use: they push
// a range as everybody does and pop it with nvtxRangePopPayload, or push and start with a
// structured payload too. Each client of the extension calls the entry below once.
//
// Of a payload of a push or pop its numbers are taken, and of any event the message: an entry of
// its schema that is flagged as message and lies at a known place. Texts and arrays are not
// recorded. Deferred events (nvtxEventSubmit, nvtxEventBatchSubmit) are not taken.

#define NVTX_NO_IMPL
#include <dlfcn.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <algorithm>
#include <atomic>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/chain.hpp"
#include "inject/nvtx/control.hpp"
#include "inject/nvtx/handles.hpp"
#include "inject/nvtx/payloads.hpp"
#include "inject/nvtx/quiet.hpp"
#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {
namespace {

// ---- Schemas whose message can be read
// -----------------------------------------------------------------------------

struct Message {
  std::uint64_t schema;
  std::uint64_t offset;
  std::uint64_t bytes;  // of text embedded in the payload; 0: a handle or a pointer lies there
  std::uint32_t domain;
  bool registered;
  std::atomic<bool> known;  // the rest is written
};

constexpr std::uint32_t kMostMessages = 512;
Message messages[kMostMessages];  // filled once, found by looking through: programs register a few
                                  // dozen schemas
std::atomic<std::uint32_t> message_count{0};
std::atomic<std::uint64_t> next_id{NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START};

void keep_message(std::uint32_t domain, std::uint64_t schema, const nvtxPayloadSchemaAttr_t& attr) {
  constexpr std::uint64_t kNeeded =
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  if ((attr.fieldMask & kNeeded) != kNeeded || attr.entries == nullptr) return;
  for (std::size_t i = 0; i < attr.numEntries; ++i) {
    const nvtxPayloadSchemaEntry_t& entry = attr.entries[i];
    if ((entry.flags & (3u << 10)) != NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE ||
        (entry.offset == 0 && i > 0))
      continue;
    const bool registered = entry.type == NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE;
    const bool text = entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING ||
                      entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8;
    const bool pointer = (entry.flags & NVTX_PAYLOAD_ENTRY_FLAG_POINTER) != 0;
    if (!registered && !(text && (pointer || entry.arrayOrUnionDetail > 0))) continue;
    const std::uint32_t slot = message_count.fetch_add(1);
    if (slot >= kMostMessages) return;
    Message& made = messages[slot];
    made.schema = schema;
    made.offset = entry.offset;
    made.bytes = registered || pointer ? 0 : entry.arrayOrUnionDetail;
    made.domain = domain;
    made.registered = registered;
    made.known.store(true, std::memory_order_release);
    return;
  }
}

Name message_in(std::uint32_t domain, const nvtxPayloadData_t& data) {
  std::uint32_t count = message_count.load(std::memory_order_relaxed);
  if (count > kMostMessages) count = kMostMessages;
  for (std::uint32_t i = 0; i < count && data.payload != nullptr; ++i) {
    const Message& m = messages[i];
    if (!m.known.load(std::memory_order_acquire) || m.schema != data.schemaId ||
        (m.domain != domain && m.schema < NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START))
      continue;
    const std::uint64_t bytes = m.bytes > 0 ? m.bytes : sizeof(void*);
    if (data.size != SIZE_MAX && (m.offset > data.size || bytes > data.size - m.offset)) return {};
    const char* at = static_cast<const char*>(data.payload) + m.offset;
    if (m.bytes > 0) return name_of(at, strnlen(at, m.bytes));
    void* there = nullptr;
    std::memcpy(&there, at, sizeof there);
    if (m.registered) return string_of(there);
    const auto* text = static_cast<const char*>(there);
    return text == nullptr ? Name{} : name_of(text, strnlen(text, wire::native::kMaxNameBytes + 1));
  }
  return {};
}

// ---- Schemas whose numbers are recorded
// ----------------------------------------------------------------------------

struct KnownLayout {
  std::uint64_t schema;
  std::uint32_t domain;
  PayloadLayout layout;
  std::atomic<bool> known;  // the rest is written
};
KnownLayout layouts[kMostLayouts];  // filled once; the index is the layout's id in captures
std::atomic<std::uint32_t> layout_count{0};

// Size and kind of a number by its NVTX type; false for what is none.
bool number_of(std::uint64_t type, PayloadLayout::Entry& entry) {
  using wire::native::Number;
  const auto is = [&entry](Number number, std::size_t bytes) {
    entry.number = number;
    entry.bytes = static_cast<std::uint8_t>(bytes);
    return true;
  };
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_SHORT: return is(Number::kSigned, sizeof(short));
    case NVTX_PAYLOAD_ENTRY_TYPE_USHORT: return is(Number::kUnsigned, sizeof(short));
    case NVTX_PAYLOAD_ENTRY_TYPE_INT: return is(Number::kSigned, sizeof(int));
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT: return is(Number::kUnsigned, sizeof(int));
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG: return is(Number::kSigned, sizeof(long));
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONG: return is(Number::kUnsigned, sizeof(long));
    case NVTX_PAYLOAD_ENTRY_TYPE_INT8: return is(Number::kSigned, 1);
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT8: return is(Number::kUnsigned, 1);
    case NVTX_PAYLOAD_ENTRY_TYPE_INT16: return is(Number::kSigned, 2);
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT16: return is(Number::kUnsigned, 2);
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32: return is(Number::kSigned, 4);
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT32: return is(Number::kUnsigned, 4);
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64: return is(Number::kSigned, 8);
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_SIZE:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT64: return is(Number::kUnsigned, 8);
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32: return is(Number::kFloat, 4);
    case NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64: return is(Number::kFloat, 8);
    default: return false;
  }
}

void keep_layout(std::uint32_t domain, std::uint64_t schema, const nvtxPayloadSchemaAttr_t& attr) {
  constexpr std::uint64_t kNeeded =
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  if ((attr.fieldMask & kNeeded) != kNeeded || attr.entries == nullptr) return;
  PayloadLayout layout{};
  constexpr std::uint64_t kElsewhere =
      NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_IS_ARRAY;
  for (std::size_t i = 0; i < attr.numEntries && layout.count < PayloadLayout::kMostEntries; ++i) {
    const nvtxPayloadSchemaEntry_t& entry = attr.entries[i];
    PayloadLayout::Entry& made = layout.entries[layout.count];
    if ((entry.flags & kElsewhere) != 0 || (entry.offset == 0 && i > 0) || entry.name == nullptr ||
        entry.offset > PayloadLayout::kMostBytes || !number_of(entry.type, made) ||
        entry.offset + made.bytes > PayloadLayout::kMostBytes)
      continue;
    made.name = name_of(entry.name, strnlen(entry.name, 256));
    char* kept = arena_array<char>(made.name.bytes + 1);
    if (kept == nullptr) return;
    std::memcpy(kept, made.name.text, made.name.bytes);
    made.name.text = kept;
    made.offset = static_cast<std::uint16_t>(entry.offset);
    layout.bytes = std::max<std::uint32_t>(layout.bytes, made.offset + made.bytes);
    ++layout.count;
  }
  if (layout.count == 0) return;
  const std::uint32_t slot = layout_count.fetch_add(1);
  if (slot >= kMostLayouts) return;
  layouts[slot].schema = schema;
  layouts[slot].domain = domain;
  layouts[slot].layout = layout;
  layouts[slot].known.store(true, std::memory_order_release);
}

void take_payload(std::uint32_t domain, const nvtxPayloadData_t& data) {
  if (data.payload == nullptr) return;
  const std::uint32_t count = std::min(layout_count.load(std::memory_order_relaxed), kMostLayouts);
  for (std::uint32_t i = 0; i < count; ++i) {
    const KnownLayout& known = layouts[i];
    if (!known.known.load(std::memory_order_acquire) || known.schema != data.schemaId ||
        (known.domain != domain && known.schema < NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START))
      continue;
    if (data.size == SIZE_MAX || data.size >= known.layout.bytes)
      record_payload(domain, known.layout, i, data.payload);
    return;
  }
}

Event event_of(nvtxDomainHandle_t domain, const nvtxPayloadData_t* data, std::size_t count) {
  Event event;
  event.domain = domain_of(domain);
  for (std::size_t i = 0; data != nullptr && i < count && event.name.text == nullptr; ++i)
    event.name = message_in(event.domain, data[i]);
  return event;
}

// ---- Callbacks: handed on to the chained tool, then taken
// -------------------------------------------------------------

constexpr std::size_t kSlots = 63;
std::atomic<std::intptr_t>
    other[kSlots];  // what a chained tool attached; the same for every client

template <std::size_t slot, typename R, typename... A>
R hand_on(A... arguments) {
  const std::intptr_t function = other[slot].load(std::memory_order_acquire);
  if (function == 0) return R();
  return reinterpret_cast<R (*)(A...)>(function)(chain::pass(arguments)...);
}

int push(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, std::size_t count) {
  hand_on<NVTX3EXT_CBID_nvtxRangePushPayload, int>(d, data, count);
  if (control::dormant()) return kNotTracked;
  const int level = record_push(event_of(d, data, count));
  take_payloads(domain_of(d), data, count);
  return level;
}
int pop(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, std::size_t count) {
  hand_on<NVTX3EXT_CBID_nvtxRangePopPayload, int>(d, data, count);
  if (control::dormant()) return kNotTracked;
  take_payloads(domain_of(d), data, count);
  return record_pop(domain_of(d));
}
nvtxRangeId_t start(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, std::size_t count) {
  const auto given = hand_on<NVTX3EXT_CBID_nvtxRangeStartPayload, nvtxRangeId_t>(d, data, count);
  if (control::dormant()) return given;
  return record_start(event_of(d, data, count), given);
}
void end(nvtxDomainHandle_t d, nvtxRangeId_t id, const nvtxPayloadData_t* data, std::size_t count) {
  hand_on<NVTX3EXT_CBID_nvtxRangeEndPayload, void>(d, id, data, count);
  if (!control::dormant()) record_end(id);
}
void mark(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, std::size_t count) {
  hand_on<NVTX3EXT_CBID_nvtxMarkPayload, void>(d, data, count);
  if (!control::dormant()) record_mark(event_of(d, data, count));
}

// The id that a client wants, that the other tool gave, or a new one.
template <typename Attributes>
std::uint64_t id_of(const Attributes* attr, std::uint64_t wanted_field, std::uint64_t theirs) {
  if (theirs != 0) return theirs;
  return attr != nullptr && (attr->fieldMask & wanted_field) != 0 && attr->schemaId != 0
             ? attr->schemaId
             : next_id++;
}
std::uint64_t register_schema(nvtxDomainHandle_t d, const nvtxPayloadSchemaAttr_t* attr) {
  const auto theirs = hand_on<NVTX3EXT_CBID_nvtxPayloadSchemaRegister, std::uint64_t>(d, attr);
  const std::uint64_t id = id_of(attr, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID, theirs);
  if (attr != nullptr) {
    const Quiet quiet;
    keep_message(domain_of(d), id, *attr);
    keep_layout(domain_of(d), id, *attr);
  }
  return id;
}
std::uint64_t register_enum(nvtxDomainHandle_t d, const nvtxPayloadEnumAttr_t* attr) {
  const auto theirs = hand_on<NVTX3EXT_CBID_nvtxPayloadEnumRegister, std::uint64_t>(d, attr);
  return id_of(attr, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID, theirs);
}
// Of another release of the extension, whose structs may be laid out otherwise.
template <std::size_t slot>
std::uint64_t register_unknown(nvtxDomainHandle_t d, const void* attr) {
  const auto theirs = hand_on<slot, std::uint64_t>(d, attr);
  return theirs != 0 ? theirs : next_id++;
}

std::int64_t timestamp() {
  if (other[NVTX3EXT_CBID_nvtxTimestampGet].load(std::memory_order_acquire) != 0)
    return hand_on<NVTX3EXT_CBID_nvtxTimestampGet, std::int64_t>();
  return now_ns();
}

// Lets the other tool attach itself first, and notes what it attached.
bool initialize_other(nvtxExtModuleInfo_t* module) {
  void* library = chain::library();
  auto* const begin = library == nullptr ? nullptr
                                         : reinterpret_cast<NvtxExtInitializeInjectionFunc_t>(
                                               dlsym(library, "InitializeInjectionNvtxExtension"));
  if (begin == nullptr || begin(module) == 0) return false;
  const nvtxExtModuleSegment_t& segment = module->segments[0];
  for (std::size_t i = 0; i < segment.slotCount && i < kSlots; ++i) {
    constexpr std::intptr_t kDisabled = 1;
    if (segment.functionSlots[i] > kDisabled)
      other[i].store(segment.functionSlots[i], std::memory_order_release);
  }
  return true;
}

// NCCL 2.17 to 2.30 carries release 0x0103 of the extension, whose structs, flags and types are
// those of our header.
bool knows_layout(std::uint16_t release) {
  static_assert(NVTX_EXT_PAYLOAD_COMPATID == 0x0104,
                "compare the structs of the new release with those before");
  return release == 0x0103 || release == NVTX_EXT_PAYLOAD_COMPATID;
}

void attach(const nvtxExtModuleInfo_t& module) {
  const nvtxExtModuleSegment_t& segment = module.segments[0];
  const auto set = [&segment](std::size_t slot, auto* function) {
    if (slot < segment.slotCount)
      segment.functionSlots[slot] = reinterpret_cast<std::intptr_t>(function);
  };
  set(NVTX3EXT_CBID_nvtxRangePushPayload, push);
  set(NVTX3EXT_CBID_nvtxRangePopPayload, pop);
  set(NVTX3EXT_CBID_nvtxRangeStartPayload, start);
  set(NVTX3EXT_CBID_nvtxRangeEndPayload, end);
  set(NVTX3EXT_CBID_nvtxMarkPayload, mark);
  set(NVTX3EXT_CBID_nvtxTimestampGet, timestamp);
  if (knows_layout(module.compatId)) {
    set(NVTX3EXT_CBID_nvtxPayloadSchemaRegister, register_schema);
    set(NVTX3EXT_CBID_nvtxPayloadEnumRegister, register_enum);
  } else {
    set(NVTX3EXT_CBID_nvtxPayloadSchemaRegister,
        register_unknown<NVTX3EXT_CBID_nvtxPayloadSchemaRegister>);
    set(NVTX3EXT_CBID_nvtxPayloadEnumRegister,
        register_unknown<NVTX3EXT_CBID_nvtxPayloadEnumRegister>);
  }
}

}  // namespace

void take_payloads(std::uint32_t domain, const void* data, std::size_t count) {
  constexpr std::size_t kMost = 1 << 16;  // MPI_Waitall gives one for each request
  const auto* list = static_cast<const nvtxPayloadData_t*>(data);
  for (std::size_t i = 0; list != nullptr && i < count && i < kMost; ++i)
    take_payload(domain, list[i]);
}

}  // namespace rangescope::inject

// 0 tells the extension to go on as without a tool. Other modules (counters, memory) are not taken.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    nvtxExtModuleInfo_t* module) {
  using namespace rangescope::inject;
  const NoCancel no_cancel;
  if (module == nullptr || module->segmentsCount == 0 || module->segments == nullptr) return 0;
  const bool chained = initialize_other(module);
  if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || !writer_start()) return chained ? 1 : 0;
  attach(*module);
  return 1;
}
