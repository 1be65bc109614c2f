// Call chains of CPU samples as one tree, bounded: what a flame graph is drawn from.
//
// Chains of one text are one, whatever process and thread they come from. The tree holds the
// heaviest functions: with more than `most_nodes` of them, the lightest are left out and their
// samples count where their chain leaves the tree.
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

/// A range or frame as a word of a line for flamegraph.pl: no ';', and no count of its own at the
/// end.
[[nodiscard]] std::string folded_word(std::string_view text);

enum class FrameSort : std::uint8_t { kNative, kPython, kKernel, kCut };

struct FlameName {
  std::string text;    ///< frame_text()
  std::string module;  ///< path of the file it lies in; of Python that of its source
  FrameSort sort = FrameSort::kNative;
};

/// Samples of a chain in a region, outside its children.
struct FlameCount {
  std::uint32_t node = model::kNone;  ///< kNone: nothing of the chain is in the tree
  std::int64_t samples = 0;
};

struct Flame {
  struct Node {
    std::uint32_t parent = model::kNone;  ///< before this one
    std::uint32_t name = 0;               ///< index into names
  };
  std::vector<FlameName> names;
  std::vector<Node> nodes;
  std::vector<std::vector<FlameCount>> regions;  ///< by index in Report::regions
  std::vector<FlameCount> outside;               ///< outside every range
  std::int64_t shortened = 0;                    ///< samples whose chain is not whole in the tree
};

/// Empty where the CPU was not sampled. O(stacks log stacks).
[[nodiscard]] Flame flame_of(const model::Report& report, const model::Session& session,
                             std::size_t most_nodes = kFlameNodes,
                             std::size_t most_counts = kFlameCounts);

}  // namespace rangescope::report
