// What a recorded session says about the ranges that were meant: the evidence that every diagnosis
// of a program rests on. Plain data; nothing is judged here.
//
// An occurrence of a meant range is where an expression begins to match: of `decode/` in the stack
// decode > layer0 it is decode. Paths, occurrences and what lies inside come from the region tree
// and its contexts (analyze/): work is inside when the whole call that launched it lies in the
// occurrence, on its thread (push/pop) or in its process (start/end). The whole session is looked
// at, so give it a short one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collect/nsight/ladder.hpp"
#include "model/selection.hpp"
#include "model/session.hpp"

namespace rangescope::doctor {

/// A range that the program has, meant or not: a path of one domain and kind.
struct SeenRange {
  std::string domain;             ///< "" is the default domain
  std::vector<std::string> path;  ///< from the outermost range; one name for start/end ranges
  model::RangeKind kind = model::RangeKind::kPushPop;
  std::uint64_t occurrences = 0;  ///< closed and unclosed
  std::uint64_t unclosed = 0;
  std::uint64_t kernels =
      0;  ///< launched while it was open, by its thread (start/end: its process)
  std::uint64_t graph_launches = 0;
  std::int64_t total_ns = 0;  ///< of closed occurrences

  /// "LLM@prefill > layer0"
  [[nodiscard]] std::string shown() const;
};

/// One range that was meant.
struct RangeFacts {
  [[nodiscard]] const model::RangeExpression& expression() const { return term.forms.front(); }

  model::RangeTerm term;          ///< with one form: the one that was seen, else the first
  bool kind_said = false;         ///< what was written says push/pop or start/end
  std::vector<std::size_t> seen;  ///< indexes into ProgramFacts::ranges, most occurrences first

  std::uint64_t occurrences = 0, unclosed = 0;  ///< closed and unclosed; of these unclosed
  std::uint64_t blind =
      0;  ///< occurrences that ended after the last GPU work that was recorded of a killed program
  std::uint64_t nested = 0;  ///< occurrences inside another range of their domain and thread
  std::size_t threads = 0, processes = 0;
  std::size_t child_processes =
      0;  ///< of `processes`, those that are children of another process of the session
  std::uint64_t registered = 0;  ///< occurrences whose name was a registered string
  std::int64_t span_ns =
      0;  ///< from the begin of the first to the end of the last closed occurrence
  std::int64_t first_ns = 0,
               median_ns = 0;  ///< wall time: of the first occurrence, median of all closed ones

  std::uint64_t kernels =
      0;  ///< chosen ones launched inside; kernels of graphs included where they are known singly
  std::map<std::string, std::uint64_t> left_out;  ///< kernels inside that are not chosen, by name
  std::uint64_t copies = 0, memsets = 0, graph_launches = 0;
  std::uint64_t other_thread_kernels =
      0;                           ///< launched while it was open by other threads of its process
  std::uint64_t bare_kernels = 0;  ///< of these, by threads that had no range of their own open
  std::size_t other_threads = 0;
  std::uint64_t child_kernels =
      0;  ///< launched while it was open by processes below its own, outside their ranges
  std::uint64_t late_kernels = 0;  ///< of `kernels`, those that ended after their occurrence did
  std::uint64_t late_occurrences = 0;
  std::map<std::string, std::uint64_t>
      calls;                 ///< every recorded driver call inside that is no launch, copy or wait
  std::size_t contexts = 0;  ///< most CUDA contexts that work inside ran in, of one process
  bool first_cuda_call_inside =
      false;  ///< nothing of CUDA was called before, in one of its processes
  /// Occurrences by the sequence of kernels that they launch (names in order), most frequent first.
  /// Closed ones only.
  std::vector<std::uint64_t> sequences;
  bool only_first_differs = false;  ///< one sequence, but for the first occurrence
  bool shapes_differ = false;       ///< the same kernels, in other launch configurations
};

struct ProgramFacts {
  std::vector<SeenRange> ranges;     ///< every range, most occurrences first
  std::vector<std::string> domains;  ///< names of domains with ranges; "" is the default one
  std::size_t processes = 0;         ///< that loaded the library
  std::string unrecorded;            ///< of processes that did and could make no file: why
  /// Of a program that uses NVTX and was not recorded: the kind of loss, and what was seen.
  std::string not_recorded_kind, not_recorded;
  std::uint64_t occurrences = 0;  ///< of all ranges
  bool nvtx = false;              ///< some NVTX call was made
  std::uint64_t kernels = 0, graph_launches = 0;
  bool cuda = false;  ///< CUDA was initialised in some process
  std::string
      gpu_unavailable;   ///< why GPU activity was not recorded; "" when it was, or there was none
  std::string gpu_lost;  ///< what is missing of it
  std::uint64_t orphan_kernels = 0;   ///< launched by calls that were not recorded
  std::uint64_t unbalanced_pops = 0;  ///< pops without push
  std::vector<RangeFacts> meant;
};

/// Facts about every included term; about the whole program where there are none. Kernels of ranges
/// are those chosen.
[[nodiscard]] ProgramFacts gather(const model::Session& session,
                                  const model::RangeSelection& ranges,
                                  const model::KernelSelection& kernels = {});

/// The replay ladder's questions, answered for one meant range, or for all of them together.
[[nodiscard]] collect::Evidence evidence_of(const ProgramFacts& facts, const RangeFacts& range);
[[nodiscard]] collect::Evidence evidence_of(const ProgramFacts& facts);

}  // namespace rangescope::doctor
