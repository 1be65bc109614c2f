#include "model/digest.hpp"

#include <algorithm>

namespace rangescope::model {

void add_whole_run(std::optional<double> peak_memory_bytes, Digest& digest) {
  if (!peak_memory_bytes) return;
  const auto is_named_so = [](const DigestRegion& region) {
    return region.path.size() == 1 && region.path.front() == kWholeRun;
  };
  if (std::ranges::any_of(digest.regions, is_named_so)) return;
  DigestRegion& row = digest.regions.emplace_back();
  row.path = {std::string(kWholeRun)};
  row.occurrences = 1;
  row.is_whole_run = true;
  row.values["memory.peak_bytes"] = *peak_memory_bytes;
}

}  // namespace rangescope::model
