// What calls allocated and freed, and which events they recorded: CUDA_GPU_MEMORY_USAGE_EVENTS
// (nsys profile --cuda-memory-usage=true) and CUPTI_ACTIVITY_KIND_CUDA_EVENT. That a stream waits
// for an event is a row of CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.
#include "read/nsys/sqlite/parts.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

enum { kCallProcess, kCallDevice, kCallContext, kCallStream, kCallCorrelation, kCallCommon };
constexpr std::string_view kCallCommonColumns =
    "globalPid deviceId contextId streamId correlationId ";

/// Number of the row's stream, 0 where it has none, and its correlation id.
template <class Event>
void read_common(Activity& part, const Value* row, Event& event) {
  std::uint64_t process = kUnknownProcess;
  if (row[kCallProcess].integer())
    process = process_of(row[kCallProcess].bits);
  const std::uint32_t device = small(row[kCallDevice]), context = small(row[kCallContext]);
  event.stream = part.streams.number({process, device, context, small(row[kCallStream]), 0});
  event.launch = model::kNone;
  const std::int64_t correlation = row[kCallCorrelation].as_int(-1);
  if (correlation <= 0 || correlation >= model::kNone)
    return;
  event.launch = static_cast<std::uint32_t>(correlation);
  part.correlations.add(process, event.launch);
}

}  // namespace

model::MemoryKind memory_kind_of(const Value& value) {
  if (!value.integer() || value.bits < 0)
    return model::MemoryKind::kUnknown;
  return memory_kind(value.bits + 1);
}

Activity read_memory(const Source& source) {
  enum { kStart = kCallCommon, kAddress, kBytes, kKind, kOperation, kPool, kImportedPool };
  constexpr std::int64_t kAllocation = 0, kDeallocation = 1;
  Activity part;
  const Table* table = usable_table(source,
                                    "CUDA_GPU_MEMORY_USAGE_EVENTS",
                                    {"start", "bytes", "memoryOperationType"},
                                    part.outcome);
  if (table == nullptr)
    return part;
  part.outcome.scanned = source.scan(
      *table,
      std::string(kCallCommonColumns) +
          "start address bytes memKind memoryOperationType localMemoryPoolAddress "
          "importedMemoryPoolAddress",
      [&](std::size_t rows) { begin(part, part.memory, rows); },
      [&](const Value* row) {
        if (!row[kStart].integer())
          return bad_row(part.outcome, "start is not a number");
        if (!row[kBytes].integer() || row[kBytes].bits < 0)
          return bad_row(part.outcome, "bytes is not a number");
        const std::int64_t operation = row[kOperation].as_int(-1);
        const bool is_known = operation == kAllocation || operation == kDeallocation;
        if (!is_known)
          return bad_row(part.outcome, "memoryOperationType is neither 0 nor 1");
        model::MemoryEvent event;
        read_common(part, row, event);
        event.at_ns = row[kStart].bits;
        event.address = static_cast<std::uint64_t>(row[kAddress].as_int());
        event.bytes = static_cast<std::uint64_t>(row[kBytes].bits);
        event.kind = memory_kind_of(row[kKind]);
        if (operation == kDeallocation)
          event.operation = model::MemoryOperation::kFree;
        event.pool = static_cast<std::uint64_t>(row[kPool].as_int(row[kImportedPool].as_int()));
        part.memory.push_back(event);
      });
  return part;
}

Activity read_event_records(const Source& source) {
  enum { kEvent = kCallCommon };
  Activity part;
  const Table* table = usable_table(source,
                                    "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                                    {"streamId", "correlationId", "eventId"},
                                    part.outcome);
  if (table == nullptr)
    return part;
  part.outcome.scanned = source.scan(
      *table,
      std::string(kCallCommonColumns) + "eventId",
      [&](std::size_t rows) { begin(part, part.events, rows); },
      [&](const Value* row) {
        if (!row[kEvent].integer())
          return bad_row(part.outcome, "eventId is not a number");
        model::EventCall call;
        read_common(part, row, call);
        call.event = static_cast<std::uint64_t>(row[kEvent].bits);
        part.events.push_back(call);
      });
  return part;
}

}  // namespace rangescope::read::nsys_sqlite
