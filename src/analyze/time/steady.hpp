// What a region costs once it has settled, what measuring added to it, and how evenly threads and
// processes share it.
//
// Warm-up: the first occurrences of a range in a thread that took more than twice the median of
// those after the first third, as long as one follows the other, and of which two later ones did
// not take as long; at most a third of all, and of three at least. An occurrence that gave the GPU
// as much more to do as it took longer is not one: it did more work.
//
// What measuring added: while counters are collected, the GPU's timeline is paused and calls wait
// for the hardware to be programmed. Occurrences that such a pause touched are compared with the
// mean of the settled ones that none did (three at least): what they took longer in sum is not the
// program's, where it is more than 5 % of the region. Waits at begins of ranges (--arm-wait) are
// known exactly and lie in the ranges around. O(occurrences).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "analyze/statistics/stretches.hpp"
#include "analyze/statistics/sums.hpp"
#include "analyze/tree/regions.hpp"
#include "model/sketch.hpp"

namespace rangescope::analyze {

enum class Phase : std::uint8_t {
  kSettled,
  kWarmUp,
  kSlowed,   ///< counters were collected during it
  kWithout,  ///< it never ended, or is a replay: without wall time
};

/// The phase of each occurrence. `busy`: GPU busy time of each, empty where none was recorded.
[[nodiscard]] std::vector<Phase> find_phases(const model::Session& session,
                                             const Tree& tree,
                                             const Buckets& by_cell,
                                             const std::vector<std::uint64_t>& busy);

/// The occurrences that have ended of one region, or of several that are taken together, with their
/// wall times.
struct Occurrences {
  std::vector<std::int64_t> settled, warm_ups, slowed;
  model::Distribution unlisted;  ///< settled as well
  /// For how long any was open: by process, by thread (its tid), and in the run.
  std::map<std::uint32_t, std::int64_t> of_process, of_thread;
  std::int64_t open_ns = 0;
  bool far_apart = false;  ///< as the session's: its processes are not compared

  /// Wall times of a region: where counters slowed some occurrences and that was taken out, of the
  /// others.
  [[nodiscard]] bool without_slowed(const model::WallTime& wall) const;
};
/// Of several regions what comes first in each, and again in the next one, is no warm-up of them
/// together.
[[nodiscard]] Occurrences occurrences_of(const Regions& regions,
                                         const std::vector<Phase>& phases,
                                         std::span<const std::uint32_t> members);
/// Wall time of an occurrence, steady state (but for the share of GPU time) and `across` of a
/// region that has them.
void add_occurrences(const Occurrences& from, bool across, model::Region& region);

/// What of a region has settled; nothing where nothing has.
[[nodiscard]] std::optional<model::Steady> steady_of(std::uint64_t settled,
                                                     double settled_ns,
                                                     const model::Spread& spread,
                                                     std::int64_t warm_ups,
                                                     double warm_up_ns,
                                                     double longest_ns);
/// What its processes have of it, else the threads of its only one; nothing where one has all.
/// `slowest`: its number.
[[nodiscard]] std::optional<model::Across> across_of(const PartSums& processes,
                                                     const PartSums& threads);

/// Fills Region::steady and across of every region, takes what measuring added out of its wall
/// times, and finds the time outside all ranges.
void add_steady(const Regions& regions,
                const std::vector<std::uint64_t>& busy,
                const std::vector<Phase>& phases,
                model::Report& report);

/// Of ranges that lie in no other of their thread; the end of one that never ended is kOpen.
[[nodiscard]] Spans top_spans(const model::Session& session, const Tree& tree);
/// The time of [begin, end) in which none of them was open; `waits_ns` of it waited for counters.
/// Nothing without any.
[[nodiscard]] std::optional<model::Outside> outside_of(Spans spans,
                                                       std::int64_t begin_ns,
                                                       std::int64_t end_ns,
                                                       double waits_ns);

/// For each occurrence: was the GPU timeline of its process paused during any of it? Empty where it
/// never was.
[[nodiscard]] std::vector<char> touched_by_pause(const model::Session& session, const Tree& tree);

}  // namespace rangescope::analyze
