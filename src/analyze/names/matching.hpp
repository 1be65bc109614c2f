// Which region of one side is which of another, which are new or gone, and which look like renamed
// ones.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/comparison.hpp"
#include "model/digest.hpp"
#include "model/selection.hpp"

namespace rangescope::analyze {

/// A region as all sides know it: of[side][run], nullptr where a run does not have it.
struct MatchedRegion {
  std::vector<std::string> path;
  std::string domain;
  model::RangeKind kind = model::RangeKind::kPushPop;
  std::string renamed_from;
  bool is_whole_run = false, is_outside_ranges = false;  ///< as in DigestRegion
  std::vector<std::vector<const model::DigestRegion*>> of;
};

/// Is it in at least one run of every side?
[[nodiscard]] bool on_all_sides(const MatchedRegion& region);

/// All regions, in the order in which the sides show them. kUsage for a rename of a path that the
/// first side does not have, or that makes two of its ranges one. O(regions log regions).
[[nodiscard]] base::Result<std::vector<MatchedRegion>> match_regions(
    std::span<const model::Side> sides, const std::map<std::string, std::string>& renames);

/// Keeps the regions that `ranges` chooses; of these the ones that `only` names themselves, where
/// it names any. kNothingCaptured as analyze::compare().
[[nodiscard]] base::Result<void> filter_regions(std::vector<MatchedRegion>& regions,
                                                const model::RangeSelection& ranges,
                                                std::span<const model::RangeTerm> only);

/// Do all sides have a range of the program in common? Where some side has no ranges, a row of the
/// run in common is enough.
[[nodiscard]] bool have_common_region(std::span<const MatchedRegion> regions);

/// Path of the first side's range of the longest time, if the last side lacks it; else "".
[[nodiscard]] std::string largest_gone(std::span<const MatchedRegion> regions);

/// Pairs of a region that only the first side has and one that only another side has, under the
/// same parent, that agree in two of: name nearly the same, count, ranges inside, time an
/// occurrence. Best first, each region in one offer a side at most.
[[nodiscard]] std::vector<model::RenameOffer> offer_renames(std::span<const MatchedRegion> regions,
                                                            std::size_t sides);

}  // namespace rangescope::analyze
