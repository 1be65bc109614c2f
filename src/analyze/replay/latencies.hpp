// What a recording says of the time between a cause and its effect: medians, where nothing else
// held the effect.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analyze/replay/graph.hpp"
#include "analyze/replay/stream_order.hpp"
#include "analyze/replay/timeline.hpp"

namespace rangescope::analyze::replay {

/// All but return_ns and wait_ns, which need to know what each wait awaited. O(n).
[[nodiscard]] Latencies latencies_of(const Timeline& timeline, const StreamOrder& order);

/// So large a share of the values is smaller; `otherwise` where there are none.
[[nodiscard]] std::int64_t quantile_of(std::vector<std::int64_t> values,
                                       double share,
                                       std::int64_t otherwise);
[[nodiscard]] inline std::int64_t median_of(std::vector<std::int64_t> values,
                                            std::int64_t otherwise) {
  return quantile_of(std::move(values), 0.5, otherwise);
}

}  // namespace rangescope::analyze::replay
