// Which range occurrences every launch belongs to.
//
// A *context* is the list of innermost occurrences around a launch call: one a domain from the
// launching thread's stack, every start/end range open in the process, and what the thread
// inherits. Launches that see the same share a context. In traces of PyTorch (Process::operators)
// threads of the autograd engine inherit as if they had no ranges: the functions that it evaluates
// there belong to the range in which backward() was called.
//
// Algorithm: one sweep a process over its launches in time order; each thread keeps a cursor into
// its occurrences (which are in sweep order, tree.hpp). The innermost range that contains a call is
// the last one begun, or the nearest of its parents that has not ended: O(launches + occurrences +
// sum of open start/end ranges over launches), after sorting what is out of order. Processes in
// parallel. Memory: 4 bytes a launch and about 12 a context.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/tree/tree.hpp"

namespace rangescope::analyze {

/// Set in an entry of a context when the launching thread has no range of its own there and
/// inherits another thread's.
inline constexpr std::uint32_t kInherited = 1u << 31;

struct Contexts {
  std::vector<std::uint32_t> of_launch;  ///< context of each launch; 0: no range was open
  std::vector<std::uint32_t> of_kernel, of_copy,
      of_memset;  ///< only when there are replays of captured paths, else empty
  std::vector<std::uint32_t> begin{0, 0};  ///< entries of context c: [begin[c], begin[c + 1])
  std::vector<std::uint32_t> entries;      ///< occurrence | kInherited
  std::uint64_t foreign_launches = 0;      ///< launches of a thread or process that does not exist
  /// Launches of threads without a range while several others had one open: none is inherited.
  std::uint64_t undecided_launches = 0;

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t context) const {
    return {entries.data() + begin[context], begin[context + 1] - begin[context]};
  }
  [[nodiscard]] std::size_t size() const { return begin.size() - 1; }
};

[[nodiscard]] Contexts build_contexts(const model::Session& session,
                                      const Tree& tree,
                                      const Options& options);
/// The same for other timestamps or intervals of threads, given as calls.
[[nodiscard]] Contexts build_contexts(const model::Session& session,
                                      const Tree& tree,
                                      const Options& options,
                                      std::span<const model::Launch> calls);

/// Kernels, copies and sets of CUDA graph replays whose nodes were captured inside ranges: below
/// the range open at launch they get an occurrence of the captured path, one for each replay. What
/// was open around the whole capture is dropped from the path (unless nothing else was open), so
/// that a replay reads `graph_replay > captured_layer`.
void add_replays(const model::Session& session, Domains domains, Tree& tree, Contexts& contexts);

}  // namespace rangescope::analyze
