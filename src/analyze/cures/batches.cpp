#include "analyze/cures/batches.hpp"

#include <algorithm>
#include <iterator>

#include "analyze/replay/between_calls.hpp"

namespace rangescope::analyze::cures {

std::vector<Batch> batches_of(const Recording& recording) {
  constexpr std::uint64_t kBatch_bytes = 64 * 1024;
  std::vector<Batch> batches;
  for (const Instance& instance : recording.instances()) {
    for (const Id work : instance.works) {
      const bool is_batch =
          recording.is_copy_to_gpu(work) && recording.copy(work).bytes >= kBatch_bytes;
      if (!is_batch)
        continue;
      const Id call = replay::launch_of(recording.graph(), work);
      const auto position = std::ranges::lower_bound(instance.calls, call);
      const bool is_own = position != instance.calls.end() && *position == call;
      if (!is_own || position == instance.calls.begin())
        continue;
      const Id before = *std::prev(position);
      if (replay::is_long_stretch(recording.operation(before), 2))
        batches.push_back({before, work});
    }
  }
  return batches;
}

}  // namespace rangescope::analyze::cures
