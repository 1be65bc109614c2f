// Kernels grouped by set, name, shape and whether a graph ran them, with the durations and launch
// latencies of each group side by side. Ten million kernels make a few thousand groups; every table
// of kernels is a sum over groups.
//
// Algorithm: grouping by an open-addressing hash table per worker, then a counting sort of the
// times by group: O(kernels). Memory: 4 bytes a kernel for the group, and 4 + 4 for its times where
// they fit 32 bits (below 4.29 s), else 8 + 8.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/tree/sets.hpp"

namespace rangescope::analyze {

struct Group {
  std::uint32_t set = 0;
  std::uint32_t name = 0;  ///< index into KernelGroups::names
  std::uint32_t shape = 0;
  bool graph = false;  ///< run by a CUDA graph launch
  std::uint64_t calls = 0;
  std::uint64_t total_ns = 0;
  std::size_t begin = 0;  ///< its times: [begin, begin + calls)
};

template <class T>
struct KernelTimes {
  std::vector<T> duration, latency;
};

struct KernelGroups {
  struct ShownKernel {
    std::uint32_t kernel_name;  ///< first of Session::kernel_names with this text
    bool nccl;
  };
  std::vector<ShownKernel> names;        ///< distinct by what is shown
  std::vector<std::uint32_t> of_kernel;  ///< group; kNone where the kernel was not chosen
  std::vector<Group> groups;
  bool wide = false;  ///< which of the two is filled
  KernelTimes<std::uint32_t> times32;
  KernelTimes<std::int64_t> times64;
  std::uint64_t without_launch = 0, backward = 0;
};

/// Whether the launch of a piece of work on `stream` is known: it exists, and in the process of the
/// stream.
[[nodiscard]] inline bool launched(const model::Session& session,
                                   std::uint32_t launch,
                                   std::uint32_t stream) {
  if (launch >= session.launches.size())
    return false;
  const std::uint32_t thread = session.launches[launch].thread;
  if (thread >= session.threads.size())
    return false;
  return stream >= session.streams.size() ||
         session.streams[stream].process == session.threads[thread].process;
}

/// The context of item `i`; `of_item` overrides that of its launch where replays were placed. 0:
/// outside all ranges.
[[nodiscard]] inline std::uint32_t context_of(const model::Session& session,
                                              const Contexts& contexts,
                                              const std::vector<std::uint32_t>& of_item,
                                              std::size_t i,
                                              std::uint32_t launch,
                                              std::uint32_t stream) {
  if (!launched(session, launch, stream))
    return 0;
  return of_item.empty() ? contexts.of_launch[launch] : of_item[i];
}

/// The text by which a kernel is shown: demangled where known, else its short or mangled name.
[[nodiscard]] model::StringId shown_name(const model::KernelName& name);

[[nodiscard]] KernelGroups group_kernels(const model::Session& session,
                                         const Contexts& contexts,
                                         const Sets& sets,
                                         const std::vector<char>& chosen,
                                         int threads);

}  // namespace rangescope::analyze
