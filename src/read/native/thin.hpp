// Which ranges of a large capture a session lists, and what it counts of the others.
//
// A range of 40 bytes for 16 bytes of capture, and as much again in analyze, is too much for a
// capture of gigabytes. Of one of those, ranges stay listed to which something else may refer:
// those that never end, that hold another one that stays, a mark, a payload, a call of CUDA or a
// CPU sample; those of MPI and NCCL; start/end ranges; and of each *cell* (range path of one
// thread) `listed` that are spread evenly over the run, the first and the last ones, and the
// longest. The others leave the session when they are popped, and are counted: sums exactly,
// lengths in a sketch. A range that is popped and is last in Session::ranges holds nothing that
// stays: this is all that is looked at.
//
// Two walks over the file: the first (with `plan` null) counts each cell's ranges and finds its
// longest, the second decides. O(1) a range; memory: some 200 bytes a cell, and what is listed.
// Pushes of one name that a thread never pops are one cell, as in analyze/tree/tree.hpp; where
// there are so many the first walk is made again, knowing which.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/session.hpp"

namespace rangescope::read::native {

/// When something happened to which a range may belong: of a process, and of its threads by tid.
/// Sorted.
struct Moments {
  std::vector<std::int64_t> of_process;
  std::map<std::uint32_t, std::vector<std::int64_t>> of_thread;
};

/// An open range as the thinning sees it.
struct OpenCell {
  std::uint32_t cell = model::kNone;
  std::uint32_t depth = 0;
  std::uint64_t ordinal = 0;  ///< of its cell, from 0
  std::uint64_t push = 0;     ///< of the file, from 0
  model::UnlistedInside inside;
  std::size_t marks = 0, fields = 0, attributes = 0;  ///< of the session when it began
};

class Thinner {
 public:
  static constexpr std::size_t kMostSpans = std::size_t{1} << 16;
  static constexpr std::uint32_t kDeepest =
      127;  ///< ranges: what lies deeper stays (analyze/tree/tree.hpp)
  static constexpr std::size_t kRunaway = 64;  ///< pushes of one name that are never popped
  using Pushes = std::unordered_set<std::uint64_t>;

  /// What the first walk finds of a cell.
  struct Counted {
    std::uint64_t count = 0;
    std::vector<std::int64_t> longest;  ///< a heap, the least on top
  };

  Thinner(model::Session& session,
          std::uint32_t process,
          std::size_t listed,
          const Moments& moments,
          const std::vector<Counted>* plan,
          const Pushes& runaways)
      : session_(session),
        cost_(model::recording_cost(session.processes[process])),
        listed_(listed),
        first_(std::max<std::size_t>(1, listed / 16)),
        longest_(std::max<std::size_t>(1, listed / 64)),
        moments_(moments),
        plan_(plan),
        runaways_(runaways) {}

  /// What follows is of this thread, which has no range open.
  void begin_thread(std::uint32_t thread);
  /// A push; `above`: the open range of its domain around it, or null.
  OpenCell enter(const OpenCell* above,
                 std::uint32_t domain,
                 model::StringId name,
                 std::int64_t at);
  /// The pop of it, whose end the session's range has; `whole`: it is known. True where the range
  /// does not stay: it has been taken out of the session, and its attributes.
  bool leave(const OpenCell& open, std::uint32_t range, OpenCell* above, bool whole);
  /// A push that nothing pops before its thread's stream ends.
  void stays_open(const OpenCell& open, std::uint32_t range);
  /// After the last stream.
  void finish();

  [[nodiscard]] std::vector<Counted> take_counted() { return std::move(counted_); }
  /// Pushes of names of which a thread left kRunaway or more open.
  [[nodiscard]] Pushes runaways() const;

 private:
  struct Cell {
    std::uint32_t parent = model::kNone, domain = 0, thread = 0;
    model::StringId name = 0;
    std::uint32_t latest = model::kNone;  ///< child that was entered last
    std::uint32_t listed = model::kNone;  ///< a closed range of it that stays
    std::uint32_t tally = model::kNone;   ///< index into Session::unlisted
    std::uint32_t as_long = 0;            ///< as the shortest of the longest, and listed
    std::uint64_t occurrences = 0;        ///< so far
  };
  struct Later {  ///< unlisted ranges behind the first third, by tally
    model::Distribution wall, unrecorded;
  };

  std::uint32_t cell_of(std::uint32_t parent, std::uint32_t domain, model::StringId name);
  [[nodiscard]] bool holds_something(const OpenCell& open, const model::Range& range);
  [[nodiscard]] bool is_listed(const OpenCell& open, std::int64_t length);
  void count_long(std::vector<std::int64_t>& longest, std::int64_t length) const;
  void tally(const OpenCell& open, std::int64_t length, std::int64_t recorded);
  void span_ends(std::int64_t at);
  void end_thread();

  model::Session& session_;
  model::RecordingCost cost_;
  std::size_t listed_, first_, longest_;
  const Moments& moments_;
  const std::vector<Counted>* plan_;
  const Pushes& runaways_;
  using Named =
      std::tuple<std::uint32_t, std::uint32_t, model::StringId>;  ///< thread, domain, name
  std::map<Named, std::vector<std::uint64_t>> left_open_;
  std::map<Named, std::pair<std::uint32_t, std::uint32_t>>
      first_of_;  ///< cell and depth of the first runaway
  std::uint64_t pushes_ = 0;
  std::vector<Counted> counted_;
  std::vector<Cell> cells_;
  std::vector<Later> later_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>
      known_;  ///< cells, by a hash of their path
  std::uint32_t latest_root_ = model::kNone;
  std::uint32_t thread_ = 0;
  const std::vector<std::int64_t>* of_thread_ = nullptr;
  std::size_t next_of_process_ = 0, next_of_thread_ = 0;  ///< first moment behind the latest pop
  std::size_t open_ = 0;                                  ///< ranges of all domains
  std::int64_t open_since_ns_ = 0;
  std::vector<model::OpenSpan> spans_;  ///< of this thread
  std::int64_t shortest_gap_ns_ = 0;    ///< shorter ones are closed
};

}  // namespace rangescope::read::native
