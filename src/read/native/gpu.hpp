// The GPU part of a native capture: `<pid>.gpu` (format: wire/gpu.hpp) into a session that holds the process's ranges.
//
// Linear in the file's size, plus a sweep over the ranges of threads that captured CUDA graphs. Damage becomes a Loss:
// a torn tail is cut, an unknown record skipped, a record that contradicts its own size ends its block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "base/result.hpp"
#include "model/session.hpp"

namespace rangescope::read::native {

struct GpuStreamHead {
  std::uint32_t pid = 0;
  std::int64_t start_ns = 0;  ///< CLOCK_MONOTONIC
};

/// The header of a GPU stream, when `file` begins with one.
[[nodiscard]] std::optional<GpuStreamHead> gpu_stream_head(std::span<const std::byte> file);

/// Adds what `file` holds to `session`, as the work of session.processes[process], whose threads and ranges must be
/// there already. `where` names the file in losses. kBadData when it is no GPU stream, or one of a newer version.
[[nodiscard]] base::Result<void> read_gpu(std::span<const std::byte> file, const std::string& where,
                                          std::uint32_t process, model::Session& session);

// The GPU streams of a folder of captures, each given to the process image that wrote it.

/// Reads every `*.gpu` of `folder` (or of `folder`/native) into `session`, whose processes, threads and ranges are
/// there already. A stream belongs to the latest image of its pid that began before it; a process that left no other
/// capture is added; streams of the pids in `left_out` are not read. A stream that cannot be read is a loss.
void read_gpu_files(const std::filesystem::path& folder, const std::set<std::uint32_t>& left_out,
                    model::Session& session);

// Where the nodes of CUDA graphs were made: the ranges that were open on their thread, from the capture's begin on.
//
// A replayed kernel belongs to the range of its launch and, below it, to the path inside the capture. So ranges that
// were open before the graph was made ("graph_capture", around the whole capture) are no part of it.

struct NodeMade {
  std::uint64_t node = 0;      ///< CUPTI's id; the upper half is the graph
  std::uint64_t original = 0;  ///< the node that it was copied from, or 0
  std::uint32_t thread = 0;    ///< index into Session::threads
  std::int64_t at_ns = 0;
  std::uint8_t type = 0;  ///< CUgraphNodeType; 0 is a kernel
};

class GraphNodes {
 public:
  void graph_made(std::uint32_t graph, std::int64_t at_ns) { graphs_.try_emplace(graph, at_ns); }
  void add(const NodeMade& node);
  /// Kernel nodes of a graph, 0 where unknown.
  [[nodiscard]] std::uint32_t kernel_nodes(std::uint32_t graph) const;
  /// Index into session.graph_nodes for a node that a kernel, copy or set names; added when it is new.
  std::uint32_t use(std::uint64_t node, std::uint32_t process, model::Session& session);
  /// Gives every used node its captured path. O(n log n) in nodes, one pass over the session's ranges.
  void place(model::Session& session) const;

 private:
  [[nodiscard]] const NodeMade* origin(std::uint64_t node) const;

  std::unordered_map<std::uint32_t, std::int64_t> graphs_;
  std::unordered_map<std::uint64_t, NodeMade> made_;
  std::unordered_map<std::uint64_t, std::uint32_t> used_;
};

}  // namespace rangescope::read::native
