// The tables of what ran on GPUs.
#include "read/nsys/sqlite/parts.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

/// Columns that every activity table starts with here, in this order.
enum { kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, kCommon };
constexpr std::string_view kCommonColumns =
    "start end deviceId contextId streamId correlationId globalPid ";

/// Times, stream and correlation id of a row; false when it has no usable times.
template <class Event>
bool common(Activity& part, const Value* row, Event& event, std::uint64_t& process) {
  if (!row[kStart].integer())
    return bad_row(part.outcome, "start is not a number"), false;
  if (!row[kEnd].integer())
    return bad_row(part.outcome, "end is not a number"), false;
  event.start_ns = row[kStart].bits;
  event.end_ns = row[kEnd].bits;
  if (event.end_ns < event.start_ns)
    return bad_row(part.outcome, "end is before start"), false;
  process = row[kProcess].integer() ? process_of(row[kProcess].bits) : kUnknownProcess;
  event.stream = part.streams.number(
      {process, small(row[kDevice]), small(row[kContext]), small(row[kStream]), 0});
  event.launch = model::kNone;
  if (row[kCorrelation].integer() && row[kCorrelation].bits >= 0 &&
      row[kCorrelation].bits < model::kNone) {
    event.launch = static_cast<std::uint32_t>(row[kCorrelation].bits);
    part.correlations.add(process, event.launch);
  }
  return true;
}

std::uint32_t node_of(Activity& part, std::uint64_t process, const Value& node) {
  if (!node.integer() || node.bits == 0)
    return model::kNone;
  return part.nodes.number({process, static_cast<std::uint64_t>(node.bits)});
}

/// CUPTI has 0xffffffff for none.
std::uint64_t event_of(const Value& value) {
  const std::int64_t event = value.as_int();
  if (event <= 0 || event >= 0xffffffff)
    return 0;
  return static_cast<std::uint64_t>(event);
}

/// CUpti_ActivityMemcpyKind and, from 11, nsys's own numbers for migrations of unified memory.
model::CopyKind copy_kind(const Value& value) {
  if (!value.integer() || value.bits < 0 || value.bits > 13)
    return model::CopyKind::kUnknown;
  constexpr model::CopyKind kUnified[] = {model::CopyKind::kHostToDevice,
                                          model::CopyKind::kDeviceToHost,
                                          model::CopyKind::kDeviceToDevice};
  if (value.bits > 10)
    return kUnified[value.bits - 11];
  return static_cast<model::CopyKind>(value.bits);
}

/// Reads one table of events. `columns`: its own, behind the common ones; `fill(part, row, process,
/// event)` takes those.
template <class Event, class Fill>
Activity read_events(const Source& source,
                     std::string_view name,
                     std::vector<Event> Activity::*events,
                     std::string_view columns,
                     Fill fill) {
  Activity part;
  const Table* table = usable_table(source, name, {"start", "end"}, part.outcome);
  if (table == nullptr)
    return part;
  part.outcome.scanned = source.scan(
      *table,
      std::string(kCommonColumns).append(columns),
      [&](std::size_t rows) { begin(part, part.*events, rows); },
      [&](const Value* row) {
        Event event;
        std::uint64_t process = 0;
        if (!common(part, row, event, process))
          return;
        fill(part, row, process, event);
        (part.*events).push_back(event);
      });
  return part;
}

}  // namespace

const Table* usable_table(const Source& source,
                          std::string_view name,
                          std::initializer_list<std::string_view> columns,
                          Outcome& outcome) {
  outcome.table = name;
  const Table* table = source.find(name);
  if (table == nullptr)
    return nullptr;
  for (const std::string_view column : columns) {
    if (table->has(column))
      continue;
    outcome.error = base::Error{
        base::Code::kBadData,
        "the table has no column " + std::string(column),
        source.path().string() + ": " + std::string(name) + "." + std::string(column),
        "Export the report again: nsys export --type sqlite --force-overwrite true REPORT"};
    return nullptr;
  }
  return table;
}

Activity read_kernels(const Source& source) {
  enum {
    kDemangled = kCommon,
    kShort,
    kMangled,
    kRegisters,
    kGrid,
    kBlock = kGrid + 3,
    kStatic = kBlock + 3,
    kDynamic,
    kNode,
    kCluster
  };
  return read_events(
      source,
      "CUPTI_ACTIVITY_KIND_KERNEL",
      &Activity::kernels,
      "demangledName shortName mangledName registersPerThread gridX gridY gridZ blockX blockY "
      "blockZ "
      "staticSharedMemory dynamicSharedMemory graphNodeId clusterX clusterY clusterZ",
      [](Activity& part, const Value* row, std::uint64_t process, model::Kernel& kernel) {
        const std::int64_t short_name = row[kShort].as_int(-1);
        kernel.name = part.names.number(
            {row[kDemangled].as_int(short_name), short_name, row[kMangled].as_int(-1)});
        model::KernelShape shape;
        for (std::size_t i = 0; i < 3; ++i) {
          shape.grid[i] = small(row[kGrid + i]);
          shape.block[i] = small(row[kBlock + i]);
          shape.cluster[i] = small(row[kCluster + i]);
        }
        shape.registers_per_thread = small(row[kRegisters]);
        shape.static_shared_bytes = small(row[kStatic]);
        shape.dynamic_shared_bytes = small(row[kDynamic]);
        kernel.shape = part.shapes.number(shape);
        kernel.graph_node = node_of(part, process, row[kNode]);
      });
}

Activity read_copies(const Source& source) {
  enum { kBytes = kCommon, kKind, kNode, kSource, kDestination };
  return read_events(
      source,
      "CUPTI_ACTIVITY_KIND_MEMCPY",
      &Activity::copies,
      "bytes copyKind graphNodeId srcKind dstKind",
      [](Activity& part, const Value* row, std::uint64_t process, model::Copy& copy) {
        copy.bytes = positive(row[kBytes]);
        copy.kind = copy_kind(row[kKind]);
        copy.migration = row[kKind].integer() && row[kKind].bits > 10 && row[kKind].bits <= 13;
        copy.graph_node = node_of(part, process, row[kNode]);
        copy.source = memory_kind_of(row[kSource]);
        copy.destination = memory_kind_of(row[kDestination]);
      });
}

Activity read_memsets(const Source& source) {
  enum { kBytes = kCommon, kNode };
  return read_events(
      source,
      "CUPTI_ACTIVITY_KIND_MEMSET",
      &Activity::memsets,
      "bytes graphNodeId",
      [](Activity& part, const Value* row, std::uint64_t process, model::Memset& memset) {
        memset.bytes = positive(row[kBytes]);
        memset.graph_node = node_of(part, process, row[kNode]);
      });
}

Activity read_graphs(const Source& source) {
  enum { kGraph = kCommon, kExec };
  return read_events(source,
                     "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                     &Activity::graphs,
                     "graphId graphExecId",
                     [](Activity&, const Value* row, std::uint64_t, model::GraphLaunch& graph) {
                       graph.graph_id = static_cast<std::uint64_t>(row[kGraph].as_int());
                       graph.exec_id = static_cast<std::uint64_t>(row[kExec].as_int());
                     });
}

Activity read_synchronizations(const Source& source) {
  enum { kType = kCommon, kEvent };
  // nsys 2025.3 (schema 3.20) brought deprecatedSyncType and writes 2 where CUPTI's number for a
  // stream wait is 3.
  const Table* table = source.find("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION");
  const bool from_zero = table != nullptr && table->has("deprecatedSyncType");
  return read_events(
      source,
      "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
      &Activity::synchronizations,
      "syncType eventId",
      [from_zero](Activity& part, const Value* row, std::uint64_t, model::Synchronization& wait) {
        const std::int64_t type = row[kType].as_int(-1) + (from_zero ? 1 : 0);
        wait.kind =
            type >= 1 && type <= 4 ? static_cast<model::SyncKind>(type) : model::SyncKind::kUnknown;
        if (part.synchronizations.empty())
          part.awaited_events.clear();  // read again
        part.awaited_events.push_back(event_of(row[kEvent]));
      });
}

Calls read_calls(const Source& source) {
  Calls part;
  const Table* table = usable_table(
      source, "CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "globalTid", "correlationId"}, part.outcome);
  if (table == nullptr)
    return part;
  enum { kCallStart, kCallEnd, kThread, kCallCorrelation, kName };
  part.outcome.scanned = source.scan(
      *table,
      "start end globalTid correlationId nameId",
      [&](std::size_t rows) { begin(part, part.launches, rows); },
      [&](const Value* row) {
        if (!row[kCallStart].integer())
          return bad_row(part.outcome, "start is not a number");
        if (!row[kThread].integer())
          return bad_row(part.outcome, "globalTid is not a number");
        model::Launch call;
        call.start_ns = row[kCallStart].bits;
        if (row[kCallEnd].integer())
          call.end_ns = row[kCallEnd].bits;
        if (call.end_ns < call.start_ns)
          return bad_row(part.outcome, "end is before start");
        call.thread = part.threads.number(static_cast<std::uint64_t>(row[kThread].bits));
        const std::int64_t correlation = row[kCallCorrelation].as_int(model::kNone);
        call.correlation = model::kNone;
        if (correlation >= 0 && correlation < model::kNone)
          call.correlation = static_cast<std::uint32_t>(correlation);
        call.name = part.names.number(row[kName].as_int(-1));
        call.kind = model::LaunchKind::kOther;
        part.launches.push_back(call);
      });
  return part;
}

std::vector<NodeEvent> read_node_events(const Source& source, Scanned& scanned) {
  std::vector<NodeEvent> events;
  const Table* table = source.find("CUDA_GRAPH_NODE_EVENTS");
  if (table == nullptr)
    table = source.find("CUDA_GRAPH_EVENTS");
  if (table == nullptr || !table->has("graphNodeId") || !table->has("start") ||
      !table->has("globalTid"))
    return events;
  scanned = source.scan(
      *table,
      "start globalTid graphNodeId originalGraphNodeId",
      [&](std::size_t) { events.clear(); },
      [&](const Value* row) {
        if (!row[0].integer() || !row[1].integer() || !row[2].integer())
          return;
        events.push_back({static_cast<std::uint64_t>(row[2].bits),
                          static_cast<std::uint64_t>(row[3].as_int()),
                          row[0].bits,
                          static_cast<std::uint64_t>(row[1].bits)});
      });
  return events;
}

}  // namespace rangescope::read::nsys_sqlite
