// When GPUs were busy: unions of kernel, copy, set and graph intervals, per device, for every
// region and occurrence.
//
// Algorithm: the union of intervals in order of their start needs only the end of what was seen so
// far (Klee's measure problem in one dimension), so one pass over a device's work in time order
// keeps every region's and every occurrence's union at once: O(n d) for n pieces of work and d
// ranges around each launch, after a sort that is linear where the recorder kept the order. Devices
// in parallel; the passes for regions and for occurrences too.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/tree/groups.hpp"

namespace rangescope::analyze {

struct RegionBusy {
  std::uint64_t busy = 0, exclusive_busy = 0, overlap = 0;
  std::uint64_t copies = 0;  ///< union of copies
  std::uint64_t gaps = 0;    ///< between first start and last end, per device
};

struct Busy {
  std::vector<RegionBusy> regions;               ///< by region of Sets
  std::vector<std::uint64_t> occurrence_busy;    ///< by occurrence of the tree
  std::vector<std::uint64_t> occurrence_kernel;  ///< sum of kernel durations
  std::vector<std::uint64_t> cell_gaps;  ///< idle time within the spans of the cell's occurrences
};

[[nodiscard]] Busy measure_busy(const model::Session& session,
                                const Tree& tree,
                                const Contexts& contexts,
                                const Sets& sets,
                                const KernelGroups& groups,
                                int threads);

/// Number of the card behind each stream: streams of processes that see the same card (by UUID or
/// PCI address) share it.
[[nodiscard]] std::vector<std::uint32_t> cards_of_streams(const model::Session& session,
                                                          std::size_t& cards);

}  // namespace rangescope::analyze
