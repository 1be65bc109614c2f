// Call chains of CPU samples as one tree of bounded size: the data of a flame graph.
//
// Chains with the same text are merged, also across processes and threads. The tree has at most
// `max_nodes` nodes: the lightest are left out, and their samples count at their nearest ancestor
// in the tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::report {

inline constexpr std::size_t kFlameNodes = 30'000, kFlameCounts = 200'000;

/// A frame as one word of a chain: "forward (llama.py:120)", "red(double)", "[libc.so.6]", "(JIT)",
/// "(cut)".
[[nodiscard]] std::string frame_text(const model::Session& session, const model::CpuFrame& frame);

/// A range or frame as an element of a line for flamegraph.pl: without ';', and without a number
/// after a space at its end, which would be read as the count.
[[nodiscard]] std::string folded_word(std::string_view text);

enum class FrameSort : std::uint8_t { kNative, kPython, kKernel, kCut };

struct FlameName {
  std::string text;    ///< frame_text()
  std::string module;  ///< path of its library; for Python of its source file
  FrameSort sort = FrameSort::kNative;
};

/// Samples of one chain in a region, without those of the region's children.
struct FlameCount {
  std::uint32_t node = model::kNone;  ///< kNone: no frame of the chain is in the tree
  std::int64_t samples = 0;
};

struct Flame {
  struct Node {
    std::uint32_t parent = model::kNone;  ///< has a lower index
    std::uint32_t name = 0;               ///< index into names
  };
  std::vector<FlameName> names;
  std::vector<Node> nodes;
  std::vector<std::vector<FlameCount>> regions;  ///< by index in Report::regions
  std::vector<FlameCount> outside;               ///< outside every range
  std::int64_t shortened = 0;                    ///< samples whose chain is only partly in the tree
};

/// Empty if the CPU was not sampled. O(stacks log stacks).
[[nodiscard]] Flame flame_of(const model::Report& report,
                             const model::Session& session,
                             std::size_t max_nodes = kFlameNodes,
                             std::size_t max_counts = kFlameCounts);

}  // namespace rangescope::report
