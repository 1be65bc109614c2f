// What a region costs once it has settled, what measuring added to it, and how evenly threads and processes share it.
//
// Warm-up: the first occurrences of a range in a thread that took more than twice the median of those after the first
// third, as long as one follows the other, and of which two later ones did not take as long; at most a third of all,
// and of three at least. An occurrence that gave the GPU as much more to do as it took longer is not one: it did more
// work.
//
// What measuring added: while counters are collected, the GPU's timeline is paused and calls wait for the hardware to
// be programmed. Occurrences that such a pause touched are compared with the mean of the settled ones that none did
// (three at least): what they took longer in sum is not the program's, where it is more than 5 % of the region. Waits
// at begins of ranges (--arm-wait) are known exactly and lie in the ranges around. O(occurrences).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

enum class Phase : std::uint8_t {
  kSettled,
  kWarmUp,
  kSlowed,   ///< counters were collected during it
  kWithout,  ///< it never ended, or is a replay: without wall time
};

/// How many of the occurrences, in time order, warm the range up. `busy`: as below.
[[nodiscard]] std::size_t warm_ups(const model::Session& session, const Tree& tree,
                                   const std::vector<std::uint32_t>& in_order, const UnlistedOfCell* unlisted,
                                   const std::vector<std::uint64_t>& busy);

/// The phase of each occurrence. `busy`: GPU busy time of each, empty where none was recorded.
[[nodiscard]] std::vector<Phase> find_phases(const model::Session& session, const Tree& tree, const Buckets& by_cell,
                                             const std::vector<std::uint64_t>& busy);

/// Fills Region::steady and across of every region, takes what measuring added out of its wall times, and finds the
/// time outside all ranges.
void add_steady(const model::Session& session, const Tree& tree, const std::vector<RegionKey>& keys,
                const Buckets& by_cell, const std::vector<std::uint64_t>& busy, const std::vector<Phase>& phases,
                model::Report& report);

/// What cells [first, last) of a node, or of several, have of each process or thread; nothing where one has all.
[[nodiscard]] std::optional<model::Across> across_of(const Tree& tree, const model::Session& session,
                                                     const std::vector<std::uint32_t>& cells);

/// In a trace of PyTorch, a range of a GPU's stream or of the profiler: no time of the program's threads.
[[nodiscard]] bool is_beside_program(const model::Session& session, const model::Range& range);

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;  ///< start and end
/// Of ranges that lie in no other of their thread; the end of one that never ended is kOpen.
[[nodiscard]] Spans top_spans(const model::Session& session, const Tree& tree);
/// The time of [begin, end) in which none of them was open; `waits_ns` of it waited for counters. Nothing without any.
[[nodiscard]] std::optional<model::Outside> outside_of(Spans spans, std::int64_t begin_ns, std::int64_t end_ns,
                                                       double waits_ns);

/// For each occurrence: was the GPU timeline of its process paused during any of it? Empty where it never was.
[[nodiscard]] std::vector<char> touched_by_pause(const model::Session& session, const Tree& tree);

}  // namespace rangescope::analyze
