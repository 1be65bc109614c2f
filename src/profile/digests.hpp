// Rank digests of a job (analyze/tally): written where a rank ran, merged into the job's report.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "analyze/analyze.hpp"
#include "analyze/tally/digest.hpp"
#include "base/result.hpp"
#include "profile/analyzed.hpp"
#include "runs/job/folder.hpp"

namespace rangescope::profile {

/// Where the report of a job comes from.
enum class JobFrom : std::uint8_t {
  kAuto,  ///< digests, where there are more ranks than kFewRanks and nothing is asked for that they
          ///< lack
  kCaptures,  ///< everything that was recorded
  kDigests,
};
/// Captures of so many ranks are opened without being asked for: seconds, and medians are exact.
inline constexpr std::size_t kFewRanks = 16;

/// Merges the digests of these runs on this machine's cores. A rank without one has its capture
/// read, which is a loss; one that has neither is a loss too.
[[nodiscard]] base::Result<analyze::tally::Digest> merge_runs(
    std::span<const std::filesystem::path> runs);

/// Do digests tell all that these options ask for?
[[nodiscard]] bool digests_suffice(const analyze::Options& options);

/// The report of a job by its ranks' digests, or by `merged`, a file of all of them that
/// rangescope-mpi wrote. kNothingCaptured where no rank left anything.
[[nodiscard]] base::Result<Analyzed> analyze_digests(const runs::job::Job& job,
                                                     const analyze::Options& options,
                                                     const std::filesystem::path& merged = {});

}  // namespace rangescope::profile
