// What ran on one card, in time order, as samples see it: kinds of work whose rates are estimated,
// and what ran when.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analyze/tree/groups.hpp"

namespace rangescope::analyze {

struct SampledPiece {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t kind = 0;  ///< index into SampledWork::kinds
  std::uint32_t set = 0;   ///< of Sets; Sets::size() for kernels that were not chosen
  /// Of a kernel: mean duration of its kind / its own. Each execution does the same work, some in
  /// less time. 1 where durations differ by so much that the work must.
  float pace = 1;
};

/// Executions that are taken to be alike: one kernel in one shape, copies of one direction, one
/// graph.
struct WorkKind {
  std::uint32_t name = kNone;  ///< KernelGroups::names; kNone for what is no kernel
  std::int64_t calls = 0;
  double total_ns = 0, squares_ns2 = 0;  ///< of durations
};

struct SampledWork {
  std::vector<SampledPiece> pieces;  ///< by start
  std::vector<WorkKind> kinds;       ///< at most `most_kinds`; the rest share the last one
  /// When kernels ran: copies leave the SMs idle.
  std::vector<std::pair<std::int64_t, std::int64_t>> kernels;
};

[[nodiscard]] SampledWork work_of_card(const model::Session& session,
                                       const Contexts& contexts,
                                       const Sets& sets,
                                       const KernelGroups& groups,
                                       const std::vector<std::uint32_t>& card_of,
                                       std::uint32_t card,
                                       std::size_t most_kinds);

}  // namespace rangescope::analyze
