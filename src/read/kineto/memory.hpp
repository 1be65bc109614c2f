// From the events "[memory]" of a trace (profile_memory=True) to an allocator's allocations.
//
//   {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": P, "tid": T, "ts":
//   4840790447523.462,
//    "args": {"Device Type": 1, "Device Id": 0, "Addr": A, "Bytes": N, "Total Allocated": N, "Total
//    Reserved": N}}
//
// One event an allocation or, with negative bytes, a free; bytes are those of the whole block, the
// totals those behind the event. A file does not have them in order. What was in use before the
// first event is its total less its bytes: of it, what is freed later is known singly. Device type
// 1 is CUDA; others (0: the host), and events without totals (old versions), are left out.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/session.hpp"
#include "read/kineto/event.hpp"

namespace rangescope::read::kineto {

class MemoryEvents {
 public:
  /// One of the thread with that index in the session.
  void add(const Event& event, std::uint32_t thread);
  /// Fills `session.allocators`, processes being those of the threads. Call it once. O(n log n).
  void finish(model::Session& session);

 private:
  struct Change {
    std::int64_t at_ns;
    std::int64_t bytes;
    std::uint64_t address;
    std::int64_t total_bytes;     ///< after it
    std::int64_t reserved_bytes;  ///< -1 where unknown
    std::uint32_t thread;
  };
  struct Key {
    std::uint32_t process, device;
    auto operator<=>(const Key&) const = default;
  };
  void add_allocator(Key key, std::vector<Change>& changes, model::Session& session);

  std::map<std::uint32_t, std::vector<Change>> of_device_;
};

}  // namespace rangescope::read::kineto
