#include "runs/usage.hpp"

#include <algorithm>

#include "runs/manifest.hpp"

namespace rangescope::runs {

std::optional<model::ProcessUsage> usage_together(std::span<const std::filesystem::path> runs) {
  std::optional<model::ProcessUsage> all;
  for (const std::filesystem::path& run : runs) {
    const auto manifest = read_manifest(run);
    if (!manifest || !manifest->usage)
      return std::nullopt;
    const model::ProcessUsage& usage = *manifest->usage;
    if (!all) {
      all = usage;
      continue;
    }
    all->machine.reset();  // to each rank the others are among those that keep CPUs busy
    all->user_ns += usage.user_ns;
    all->system_ns += usage.system_ns;
    if (all->peak_rss_bytes && usage.peak_rss_bytes)
      all->peak_rss_bytes = std::max(*all->peak_rss_bytes, *usage.peak_rss_bytes);
    else
      all->peak_rss_bytes.reset();
  }
  return all;
}

}  // namespace rangescope::runs
