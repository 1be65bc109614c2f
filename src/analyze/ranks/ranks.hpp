// Regions over the ranks of a parallel job: Report::ranks and Region::ranks.
//
// The time of a rank in a region is the sum over its processes and threads. `own` is that less
// child regions and calls of communication libraries, where a rank may just wait for others. Sums
// are made rank by rank, where it ran if need be (analyze/tally), and held against each other here.
// O(occurrences log occurrences).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/statistics/sums.hpp"
#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

/// What a rank has of a region.
struct OfRank {
  std::uint32_t rank = 0;
  std::int64_t sum_ns = 0, own_ns = 0;  ///< as model::OverRanks::by_rank, own_by_rank
  std::int64_t paced_ns = kUnknown;     ///< own_ns less waits for the GPU
};

/// Lengths of a region's occurrences, every 2^shift-th of a rank, in time order: of the n-th ones
/// of all ranks the longest, and whose it is. Of a rank with unlisted occurrences those before the
/// first of them.
struct Ordinals {
  std::uint64_t compared = 0;  ///< occurrences that all ranks have
  std::uint32_t shift = 0;
  struct Longest {
    std::uint64_t ns = 0;
    std::uint32_t rank = 0;
  };
  std::vector<Longest> longest;
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      ties;  ///< position in `longest`, another rank as long; sorted

  /// `first`: nothing was added yet.
  void add(const Ordinals& other, bool first);
  void add_tied(const Ordinals& other, std::uint32_t first);  ///< from `first` on
  void thin(std::uint32_t to_shift);
  [[nodiscard]] std::uint64_t times(std::uint32_t rank) const;
  [[nodiscard]] std::size_t kept() const {
    return static_cast<std::size_t>((compared + (1ull << shift) - 1) >> shift);
  }
};

/// What the ranks have of a region.
struct ByRank {
  std::vector<OfRank> ranks;  ///< those that opened it, ascending once all are there
  std::uint64_t closed = 0;   ///< occurrences of ranks
  Ordinals ordinals;
};

/// Makes that of a session.
class RankTimes {
 public:
  explicit RankTimes(const Regions& regions);
  /// Of one region, or of several that are taken together; at most `max_lengths` a rank.
  [[nodiscard]] ByRank of(std::span<const std::uint32_t> members,
                          std::size_t max_lengths = SIZE_MAX) const;

 private:
  const Regions& regions_;
  std::vector<std::int64_t> own_, paced_;  ///< of each occurrence
};

/// Of regions whose times add up; occurrences are compared where it is one. Nothing of fewer than
/// two ranks.
[[nodiscard]] std::optional<model::OverRanks> over_ranks(const std::vector<const ByRank*>& regions,
                                                         const std::vector<model::Rank>& ranks);

/// "rank 3", "ranks 0, 1, 2": of many the first eight and how many more.
[[nodiscard]] std::string ranks_named(std::span<const std::uint32_t> ranks);

/// The least shift by which at most `max_kept` of `count` remain.
[[nodiscard]] std::uint32_t shift_for(std::size_t count, std::size_t max_kept);

/// Report::ranks alone, from processes and devices.
void list_ranks(const model::Session& session, model::Report& report);

}  // namespace rangescope::analyze
