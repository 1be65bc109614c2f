// The region tree: every range occurrence gets its parent and its cell; cells with equal paths
// share a node.
//
// A *cell* is a range path as one thread opened it; a *node* is that path over all threads and
// processes. A region of the report is a run of the cells of a node: all of them (aggregate), those
// of a process, or one (a thread). Rules for overlapping, unclosed and cross-thread ranges:
// docs/design/region-tree.md.
//
// Algorithm: interval nesting by a stack sweep (Bentley and Ottmann's sweep-line idea in one
// dimension). Per thread the ranges are put in order (start ascending, end descending, recording
// order), which recorders nearly keep, and swept once with one stack per domain: O(n log n) at
// worst, O(n) when recorded in order; threads of the program in parallel. Memory: 12 bytes an
// occurrence, and what the nodes need.
//
// Nesting is bounded, so that paths never take quadratic memory. Where a thread leaves kRunaway
// push/pop ranges or more of one name open (numbers in it aside), a pop is missing: all of them are
// occurrences of the first one's region. What lies deeper than kDeepest ranges is below the range
// at that depth.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "analyze/options.hpp"
#include "analyze/statistics/length.hpp"
#include "model/range_expression.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

using model::kNone;

inline constexpr std::size_t kRunaway = 64;
inline constexpr std::size_t kDeepest = 128;

/// Ranges of one name that a thread pushed and never popped.
struct Runaway {
  model::StringId name = 0;  ///< of the first
  std::uint64_t count = 0;
};

struct Cell {
  std::uint32_t process = 0;
  std::uint32_t thread = 0;      ///< kNone where a measurement does not say
  std::uint32_t parent = kNone;  ///< cell of the same thread
  std::uint32_t domain = 0;
  model::StringId name = 0;
  model::RangeKind kind = model::RangeKind::kPushPop;
  bool module = false;  ///< as in model::Range
  std::uint32_t node = kNone;
  std::int64_t first_start_ns = 0;
  std::uint64_t inclusive_ns = 0;  ///< of closed occurrences
  std::uint64_t exclusive_ns = 0;  ///< less the union of their children
  std::uint32_t closed = 0, unclosed = 0;
  /// What recording added to them (recording.hpp): in neither of these.
  std::uint64_t recorded_ns = 0;
  std::uint32_t replayed = 0;  ///< occurrences without CPU time: replays of a captured path
};

struct Node {
  std::uint32_t parent = kNone;
  std::uint32_t domain = 0;
  model::StringId name = 0;
  model::RangeKind kind = model::RangeKind::kPushPop;
  std::uint32_t depth = 0;
  std::int64_t first_start_ns = 0;
  bool module = false;
};

/// The occurrences of a cell that the session does not list (model::Unlisted).
struct UnlistedOfCell {
  model::Distribution wall;  ///< as wall_of() of listed ones
  /// Without what recording added, until take_out_recording() has decided.
  model::Distribution unrecorded;
  std::uint64_t first_listed = 0;
  std::int64_t usual_ns = 0, usual_unrecorded_ns = 0, inside_recorded_ns = 0;
  /// As recorded: of all, and of unlisted ones directly inside of them.
  std::int64_t sum_ns = 0, inside_ns = 0;
  [[nodiscard]] std::uint64_t count() const { return wall.moments.n; }
};

struct Tree {
  // Occurrences: those of a thread are adjacent, in sweep order. Replays of captured paths come
  // after all of them.
  std::vector<std::uint32_t> range_of;  ///< index into Session::ranges; kNone for a replay
  std::vector<std::uint32_t> parent;    ///< occurrence, kNone at the top and for start/end ranges
  std::vector<std::uint32_t> cell;
  /// What recording added to each; empty where that is unknown or too little.
  std::vector<std::uint32_t> recorded_ns;
  /// Occurrences of thread t: [thread_begin[t], thread_begin[t + 1]).
  std::vector<std::size_t> thread_begin;
  std::vector<Cell> cells;
  std::vector<Node> nodes;
  std::vector<std::uint32_t> depth_first;  ///< nodes, parents before children
  /// Cells, node by node, within a node by process and thread.
  std::vector<std::uint32_t> node_cells;
  std::vector<std::size_t> node_begin;  ///< cells of node n: [node_begin[n], node_begin[n + 1])
  std::uint64_t unclosed = 0;
  /// Closed ranges that overlap another of their stack without containment.
  std::uint64_t crossing = 0;
  std::uint64_t backward = 0;  ///< ranges that end before they start: left out
  std::uint64_t foreign = 0;   ///< ranges of a thread or domain that does not exist: left out
  std::uint64_t deep = 0;      ///< ranges nested deeper than kDeepest
  std::vector<Runaway> runaways;
  std::map<std::uint32_t, UnlistedOfCell> unlisted_of;  ///< by cell

  [[nodiscard]] const UnlistedOfCell* unlisted(std::uint32_t cell_number) const {
    const auto found = unlisted_of.find(cell_number);
    return found == unlisted_of.end() ? nullptr : &found->second;
  }
};

/// By index into Session::ranges, that into Session::unlisted_inside, or kNone; empty where nothing
/// is unlisted.
[[nodiscard]] std::vector<std::uint32_t> unlisted_inside(const model::Session& session);

/// Names every range that has a whole number as NVTX payload "name [payload]", so that occurrences
/// of different sizes are different regions; range expressions still mean the name as it was.
/// Before analyze(). O(ranges).
void name_by_payload(model::Session& session);

/// Occurrences, parents, cells and their wall sums. link_nodes() must follow, after replays were
/// added.
[[nodiscard]] Tree build_tree(const model::Session& session, Domains domains, int threads);

/// Occurrences of ranges by their start.
struct Earlier {
  const model::Session& session;
  const Tree& tree;
  bool operator()(std::uint32_t a, std::uint32_t b) const {
    const std::int64_t start_a = session.ranges[tree.range_of[a]].start_ns;
    const std::int64_t start_b = session.ranges[tree.range_of[b]].start_ns;
    return std::pair(start_a, a) < std::pair(start_b, b);
  }
};

/// The range of an occurrence that has ended; null for an open one and for a replay.
[[nodiscard]] inline const model::Range* closed_range(const model::Session& session,
                                                      const Tree& tree,
                                                      std::uint32_t occurrence) {
  const std::uint32_t range = tree.range_of[occurrence];
  if (range == kNone || session.ranges[range].end_ns == kOpen)
    return nullptr;
  return &session.ranges[range];
}

/// Threads for work on that many records: of few, starting others takes longer than the work.
[[nodiscard]] inline int threads_for(std::size_t records, int threads) {
  constexpr std::size_t kFewRecords = 20000;
  if (records < kFewRecords)
    return 1;
  return threads;
}

/// In a trace of PyTorch, a range of a GPU's stream or of the profiler: no time of the program's
/// threads.
[[nodiscard]] bool is_beside_program(const model::Session& session, const model::Range& range);

/// Gives every cell its node and puts nodes and cells in order.
void link_nodes(Tree& tree, const model::Session& session);

/// Names from the outermost range to this one.
[[nodiscard]] std::vector<std::string_view> path_of(const Tree& tree,
                                                    const model::Session& session,
                                                    std::uint32_t node);

/// What a kernel launched in exactly this region sees.
[[nodiscard]] model::RangeState state_of(const Tree& tree,
                                         const model::Session& session,
                                         std::uint32_t node);

}  // namespace rangescope::analyze
