// The payload extension of NVTX (nvToolsExtPayload.h), which libraries such as NCCL use: they push
// a plain range and pop it with nvtxRangePopPayload, or push and start with a structured payload
// too. Each client of the extension calls the entry below once.
//
// Recorded are the numbers in a payload of a push or pop, and the message of any event: an entry of
// its schema that is flagged as message and has a known offset. Texts and arrays are not recorded.
// Deferred events (nvtxEventSubmit, nvtxEventBatchSubmit) are not taken.

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

// ---- Schemas whose message can be read ----

struct Message {
  std::uint64_t schema;
  std::uint64_t offset;
  std::uint64_t bytes;  // of text embedded in the payload; 0: a handle or a pointer is there
  std::uint32_t domain;
  bool registered;
  std::atomic<bool> is_written;  // everything above
};

constexpr std::uint32_t kMostMessages = 512;
// Never changed once written. Searched linearly: programs register a few dozen schemas.
Message messages[kMostMessages];
std::atomic<std::uint32_t> message_count{0};
std::atomic<std::uint64_t> next_id{NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START};

void keep_message(std::uint32_t domain, std::uint64_t schema, const nvtxPayloadSchemaAttr_t& attr) {
  constexpr std::uint64_t kNeeded =
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  if ((attr.fieldMask & kNeeded) != kNeeded || attr.entries == nullptr)
    return;
  for (std::size_t i = 0; i < attr.numEntries; ++i) {
    const nvtxPayloadSchemaEntry_t& entry = attr.entries[i];
    const bool is_message = (entry.flags & (3u << 10)) == NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE;
    const bool has_offset = entry.offset != 0 || i == 0;
    if (!is_message || !has_offset)
      continue;
    const bool registered = entry.type == NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE;
    const bool text = entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING ||
                      entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8;
    const bool pointer = (entry.flags & NVTX_PAYLOAD_ENTRY_FLAG_POINTER) != 0;
    if (!registered && !(text && (pointer || entry.arrayOrUnionDetail > 0)))
      continue;
    const std::uint32_t slot = message_count.fetch_add(1);
    if (slot >= kMostMessages)
      return;
    Message& message = messages[slot];
    message.schema = schema;
    message.offset = entry.offset;
    message.bytes = registered || pointer ? 0 : entry.arrayOrUnionDetail;
    message.domain = domain;
    message.registered = registered;
    message.is_written.store(true, std::memory_order_release);
    return;
  }
}

// Ids below NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START are chosen by the client, and valid in its domain.
template <typename Entry>
bool describes(const Entry& entry, std::uint32_t domain, std::uint64_t schema) {
  if (!entry.is_written.load(std::memory_order_acquire) || entry.schema != schema)
    return false;
  return entry.domain == domain || schema >= NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;
}

Name message_in(std::uint32_t domain, const nvtxPayloadData_t& data) {
  std::uint32_t count = message_count.load(std::memory_order_relaxed);
  if (count > kMostMessages)
    count = kMostMessages;
  for (std::uint32_t i = 0; i < count && data.payload != nullptr; ++i) {
    const Message& message = messages[i];
    if (!describes(message, domain, data.schemaId))
      continue;
    const std::uint64_t bytes = message.bytes > 0 ? message.bytes : sizeof(void*);
    const bool is_inside = message.offset <= data.size && bytes <= data.size - message.offset;
    if (data.size != SIZE_MAX && !is_inside)
      return {};
    const char* field = static_cast<const char*>(data.payload) + message.offset;
    if (message.bytes > 0)
      return name_of(field, strnlen(field, message.bytes));
    void* pointer = nullptr;
    std::memcpy(&pointer, field, sizeof pointer);
    if (message.registered)
      return string_of(pointer);
    return name_of(static_cast<const char*>(pointer));
  }
  return {};
}

// ---- Schemas whose numbers are recorded ----

struct RegisteredLayout {
  std::uint64_t schema;
  std::uint32_t domain;
  PayloadLayout layout;
  std::atomic<bool> is_written;  // everything above
};
// Never changed once written. The index is the layout's id in captures.
RegisteredLayout layouts[kMostLayouts];
std::atomic<std::uint32_t> layout_count{0};

// Sets size and kind of a number from its NVTX type; false for types that are not numbers.
bool number_of(std::uint64_t type, PayloadLayout::Entry& entry) {
  using wire::native::Number;
  const auto set = [&entry](Number number, std::size_t bytes) {
    entry.number = number;
    entry.bytes = static_cast<std::uint8_t>(bytes);
    return true;
  };
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_SHORT: return set(Number::kSigned, sizeof(short));
    case NVTX_PAYLOAD_ENTRY_TYPE_USHORT: return set(Number::kUnsigned, sizeof(short));
    case NVTX_PAYLOAD_ENTRY_TYPE_INT: return set(Number::kSigned, sizeof(int));
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT: return set(Number::kUnsigned, sizeof(int));
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG: return set(Number::kSigned, sizeof(long));
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONG: return set(Number::kUnsigned, sizeof(long));
    case NVTX_PAYLOAD_ENTRY_TYPE_INT8: return set(Number::kSigned, 1);
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT8: return set(Number::kUnsigned, 1);
    case NVTX_PAYLOAD_ENTRY_TYPE_INT16: return set(Number::kSigned, 2);
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT16: return set(Number::kUnsigned, 2);
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32: return set(Number::kSigned, 4);
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT32: return set(Number::kUnsigned, 4);
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64: return set(Number::kSigned, 8);
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_SIZE:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT64: return set(Number::kUnsigned, 8);
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32: return set(Number::kFloat, 4);
    case NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64: return set(Number::kFloat, 8);
    default: return false;
  }
}

// A number with a name that is in the payload itself, within the bytes that we record. Sets its
// size and kind.
bool is_embedded_number(const nvtxPayloadSchemaEntry_t& entry, PayloadLayout::Entry& number) {
  constexpr std::uint64_t kNotEmbedded =
      NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_IS_ARRAY;
  if ((entry.flags & kNotEmbedded) != 0 || entry.name == nullptr)
    return false;
  if (entry.offset > PayloadLayout::kMostBytes || !number_of(entry.type, number))
    return false;
  return entry.offset + number.bytes <= PayloadLayout::kMostBytes;
}

void keep_layout(std::uint32_t domain, std::uint64_t schema, const nvtxPayloadSchemaAttr_t& attr) {
  constexpr std::uint64_t kNeeded =
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  if ((attr.fieldMask & kNeeded) != kNeeded || attr.entries == nullptr)
    return;
  PayloadLayout layout{};
  for (std::size_t i = 0; i < attr.numEntries && layout.count < PayloadLayout::kMostEntries; ++i) {
    const nvtxPayloadSchemaEntry_t& entry = attr.entries[i];
    const bool has_offset = entry.offset != 0 || i == 0;
    PayloadLayout::Entry& number = layout.entries[layout.count];
    if (!has_offset || !is_embedded_number(entry, number))
      continue;
    number.name = name_of(entry.name, strnlen(entry.name, 256));
    char* kept = arena_array<char>(number.name.bytes + 1);
    if (kept == nullptr)
      return;
    std::memcpy(kept, number.name.text, number.name.bytes);
    number.name.text = kept;
    number.offset = static_cast<std::uint16_t>(entry.offset);
    layout.bytes = std::max<std::uint32_t>(layout.bytes, number.offset + number.bytes);
    ++layout.count;
  }
  if (layout.count == 0)
    return;
  const std::uint32_t slot = layout_count.fetch_add(1);
  if (slot >= kMostLayouts)
    return;
  layouts[slot].schema = schema;
  layouts[slot].domain = domain;
  layouts[slot].layout = layout;
  layouts[slot].is_written.store(true, std::memory_order_release);
}

void take_payload(std::uint32_t domain, const nvtxPayloadData_t& data) {
  if (data.payload == nullptr)
    return;
  const std::uint32_t count = std::min(layout_count.load(std::memory_order_relaxed), kMostLayouts);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!describes(layouts[i], domain, data.schemaId))
      continue;
    const PayloadLayout& layout = layouts[i].layout;
    if (data.size == SIZE_MAX || data.size >= layout.bytes)
      record_payload(domain, layout, i, data.payload);
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

// ---- Callbacks: they call the chained tool first, then record ----

constexpr std::size_t kSlots = 63;
// Functions that a chained tool attached; the same for every client.
std::atomic<std::intptr_t> other[kSlots];

template <std::size_t slot, typename R, typename... A>
R call_other(A... arguments) {
  const std::intptr_t function = other[slot].load(std::memory_order_acquire);
  if (function == 0)
    return R();
  return reinterpret_cast<R (*)(A...)>(function)(chain::pass(arguments)...);
}

int push(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, std::size_t count) {
  call_other<NVTX3EXT_CBID_nvtxRangePushPayload, int>(d, data, count);
  if (control::dormant())
    return kNotTracked;
  const int level = record_push(event_of(d, data, count));
  take_payloads(domain_of(d), data, count);
  return level;
}
int pop(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, std::size_t count) {
  call_other<NVTX3EXT_CBID_nvtxRangePopPayload, int>(d, data, count);
  if (control::dormant())
    return kNotTracked;
  take_payloads(domain_of(d), data, count);
  return record_pop(domain_of(d));
}
nvtxRangeId_t start(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, std::size_t count) {
  const auto others_id =
      call_other<NVTX3EXT_CBID_nvtxRangeStartPayload, nvtxRangeId_t>(d, data, count);
  if (control::dormant())
    return others_id;
  return record_start(event_of(d, data, count), others_id);
}
void end(nvtxDomainHandle_t d, nvtxRangeId_t id, const nvtxPayloadData_t* data, std::size_t count) {
  call_other<NVTX3EXT_CBID_nvtxRangeEndPayload, void>(d, id, data, count);
  if (!control::dormant())
    record_end(id);
}
void mark(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, std::size_t count) {
  call_other<NVTX3EXT_CBID_nvtxMarkPayload, void>(d, data, count);
  if (!control::dormant())
    record_mark(event_of(d, data, count));
}

// The id of a schema: the other tool's, the one that the client wants, or a new one.
template <typename Attributes>
std::uint64_t id_of(const Attributes* attr, std::uint64_t wanted_field, std::uint64_t others_id) {
  if (others_id != 0)
    return others_id;
  const bool wants_id =
      attr != nullptr && (attr->fieldMask & wanted_field) != 0 && attr->schemaId != 0;
  if (wants_id)
    return attr->schemaId;
  return next_id++;
}
std::uint64_t register_schema(nvtxDomainHandle_t d, const nvtxPayloadSchemaAttr_t* attr) {
  const auto others_id =
      call_other<NVTX3EXT_CBID_nvtxPayloadSchemaRegister, std::uint64_t>(d, attr);
  const std::uint64_t id = id_of(attr, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID, others_id);
  if (attr != nullptr) {
    const Quiet quiet;
    keep_message(domain_of(d), id, *attr);
    keep_layout(domain_of(d), id, *attr);
  }
  return id;
}
std::uint64_t register_enum(nvtxDomainHandle_t d, const nvtxPayloadEnumAttr_t* attr) {
  const auto others_id = call_other<NVTX3EXT_CBID_nvtxPayloadEnumRegister, std::uint64_t>(d, attr);
  return id_of(attr, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID, others_id);
}
// For other releases of the extension, whose structs may have another layout.
template <std::size_t slot>
std::uint64_t register_unknown(nvtxDomainHandle_t d, const void* attr) {
  const auto others_id = call_other<slot, std::uint64_t>(d, attr);
  if (others_id != 0)
    return others_id;
  return next_id++;
}

std::int64_t timestamp() {
  if (other[NVTX3EXT_CBID_nvtxTimestampGet].load(std::memory_order_acquire) != 0)
    return call_other<NVTX3EXT_CBID_nvtxTimestampGet, std::int64_t>();
  return now_ns();
}

// Lets the other tool attach itself first, and keeps the functions that it attached.
bool initialize_other(nvtxExtModuleInfo_t* module) {
  void* library = chain::library();
  if (library == nullptr)
    return false;
  auto* const start_other = reinterpret_cast<NvtxExtInitializeInjectionFunc_t>(
      dlsym(library, "InitializeInjectionNvtxExtension"));
  if (start_other == nullptr || start_other(module) == 0)
    return false;
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

// Returning 0 makes the extension continue without a tool. Other modules (counters, memory) are not
// taken.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    nvtxExtModuleInfo_t* module) {
  using namespace rangescope::inject;
  const NoCancel no_cancel;
  if (module == nullptr || module->segmentsCount == 0 || module->segments == nullptr)
    return 0;
  const bool chained = initialize_other(module);
  if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || !writer_start())
    return chained ? 1 : 0;
  attach(*module);
  return 1;
}
