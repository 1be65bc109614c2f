#include "read/native/call_details.hpp"

#include <algorithm>

#include "base/find.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::native {

namespace gpu = wire::gpu;
namespace {

model::MemoryOperation operation_of(gpu::MemoryOperation operation) {
  switch (operation) {
    case gpu::MemoryOperation::kFree: return model::MemoryOperation::kFree;
    case gpu::MemoryOperation::kFailedAllocation: return model::MemoryOperation::kFailedAllocation;
    case gpu::MemoryOperation::kAllocate: break;
  }
  return model::MemoryOperation::kAllocate;
}

}  // namespace

void CallDetails::add(const gpu::Memory& memory, std::uint32_t launch, std::uint32_t stream) {
  model::MemoryEvent event;
  event.address = memory.address;
  event.bytes = memory.bytes;
  event.pool = memory.pool;
  event.process = process_;
  event.thread = session_.launches[launch].thread;
  event.device = memory.context;
  event.stream = stream;
  event.launch = launch;
  event.kind = memory_kind(memory.head.small);
  event.operation = operation_of(memory.operation);
  memory_.push_back(event);
}

void CallDetails::add(const gpu::Event& event, std::uint32_t launch, std::uint32_t stream) {
  using Recorded = gpu::EventOperation;
  using Operation = model::EventOperation;
  switch (static_cast<Recorded>(event.head.small)) {
    case Recorded::kRecord:
      events_.push_back({event.event, launch, stream, Operation::kRecord});
      break;
    case Recorded::kStreamWait:
      events_.push_back({event.event, launch, stream, Operation::kStreamWait});
      break;
    case Recorded::kSynchronize:
      events_.push_back({event.event, launch, model::kNone, Operation::kSynchronize});
      break;
    case Recorded::kStreamSynchronize:
      if (stream != model::kNone)
        awaited_streams_[launch] = stream;
      break;
  }
}

void CallDetails::moved(std::size_t from, const std::vector<std::uint32_t>& places) {
  const auto move = [&](auto& items) {
    for (auto& item : items)
      item.launch = places[item.launch - from];
    std::erase_if(items, [](const auto& item) { return item.launch == model::kNone; });
  };
  move(memory_);
  move(events_);
  std::unordered_map<std::uint32_t, std::uint32_t> awaited;
  for (const auto& [launch, stream] : awaited_streams_) {
    const std::uint32_t place = places[launch - from];
    if (place != model::kNone)
      awaited.emplace(place, stream);
  }
  awaited_streams_ = std::move(awaited);
}

void CallDetails::finish(const DeviceOfContext& device_of_context) {
  for (model::MemoryEvent& event : memory_) {
    const model::Launch& call = session_.launches[event.launch];
    const bool known_end = call.end_ns != model::kOpen;
    const bool at_end = event.operation != model::MemoryOperation::kFree && known_end;
    event.at_ns = at_end ? call.end_ns : call.start_ns;
    event.device = base::find_or(device_of_context, event.device, model::kNone);
  }
  std::ranges::stable_sort(memory_, {}, &model::MemoryEvent::at_ns);
  complete_frees(memory_);
  for (model::MemoryEvent& event : memory_) {
    if (!is_on_device(event.kind))
      event.device = model::kNone;
  }
  // Threads hand over their calls one after the other.
  const auto start_of = [&](const model::EventCall& event) {
    return session_.launches[event.launch].start_ns;
  };
  std::ranges::stable_sort(events_, {}, start_of);
  session_.memory_events.insert(session_.memory_events.end(), memory_.begin(), memory_.end());
  session_.event_calls.insert(session_.event_calls.end(), events_.begin(), events_.end());
}

void CallDetails::complete_frees(std::vector<model::MemoryEvent>& events) const {
  std::unordered_map<std::uint64_t, const model::MemoryEvent*> in_use;  // by address
  for (model::MemoryEvent& event : events) {
    if (event.operation == model::MemoryOperation::kAllocate)
      in_use[event.address] = &event;
    if (event.operation != model::MemoryOperation::kFree)
      continue;
    const auto found = in_use.find(event.address);
    if (found == in_use.end())
      continue;  // from before the recording
    const model::MemoryEvent& allocation = *found->second;
    event.bytes = allocation.bytes;
    event.pool = allocation.pool;
    event.kind = allocation.kind;
    event.device = allocation.device;
    in_use.erase(found);
  }
}

std::uint32_t CallDetails::awaited_stream(std::uint32_t launch) const {
  return base::find_or(awaited_streams_, launch, model::kNone);
}

}  // namespace rangescope::read::native
