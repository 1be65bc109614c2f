// Reader of PyTorch's memory snapshots (docs/formats/snapshot.md): what
// torch.cuda.memory._snapshot() returns, as torch.cuda.memory._dump_snapshot(FILE) or pickle.dump
// writes it.
//
//   {"segments": [{"device": 0, "address": A, "total_size": N, "segment_type": "large",
//                  "is_expandable": False, "blocks": [
//                    {"address": A, "size": N, "state": "active_allocated", "frames": []}, ...]}],
//    "device_traces": [[{"action": "alloc", "addr": A, "size": N, "time_us": T, "frames": []},
//    ...]], "allocator_settings": {"max_split_size": -1, "roundup_power2_divisions": {"1": 0, ...},
//    ...}, "external_annotations": [{"stage": "START", "name": "Optimizer.step#AdamW.step",
//    "device": 0,
//                              "time_us": T}, ...]}
//
// Actions: alloc, free_requested, free_completed, segment_alloc, segment_free, segment_map,
// segment_unmap, oom (whose "addr" is "device_free"), snapshot. Times are UTC; an event names no
// thread. Annotations become ranges of one thread, to which all allocations belong.
#pragma once

#include <string_view>

#include "read/reader.hpp"

namespace rangescope::read::snapshot {

extern const Reader kReader;

/// kBadData where it is no pickle of data alone, or no snapshot.
[[nodiscard]] base::Result<model::Session> read_bytes(std::string_view bytes,
                                                      const std::string& name);

}  // namespace rangescope::read::snapshot
