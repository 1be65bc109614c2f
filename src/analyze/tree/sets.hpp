// Sets: which regions a piece of GPU work counts in. Contexts with the same regions share a set, so
// that ten million kernels need only a few thousand of them; sums are made per set and then handed
// to its regions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/tree/contexts.hpp"
#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

struct SetEntry {
  std::uint32_t region;
  bool exclusive;  ///< the work was not launched inside a child of the region
  bool inherited;  ///< the launching thread only inherited the range
};

/// Besides the regions of the report there are two more: everything, and what lies outside all
/// ranges.
struct Sets {
  static constexpr std::uint32_t kUnattributed = 0;  ///< launched, but outside every range
  static constexpr std::uint32_t kNoLaunch = 1;      ///< its launch was not recorded

  std::uint32_t total_region = 0, unattributed_region = 0;
  std::size_t regions = 0;  ///< with those two
  std::vector<std::uint32_t> of_context;
  std::vector<std::uint32_t> begin{0};  ///< entries of set s: [begin[s], begin[s + 1])
  std::vector<SetEntry> entries;

  [[nodiscard]] std::span<const SetEntry> of(std::uint32_t set) const {
    return {entries.data() + begin[set], begin[set + 1] - begin[set]};
  }
  [[nodiscard]] std::size_t size() const { return begin.size() - 1; }
};

/// O(contexts + sets x depth).
[[nodiscard]] Sets build_sets(const Tree& tree,
                              const Contexts& contexts,
                              const std::vector<RegionKey>& keys);

}  // namespace rangescope::analyze
