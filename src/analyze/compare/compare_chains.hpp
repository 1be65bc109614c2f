// Call chains of CPU samples on all sides of a comparison. Chains are the same where all their
// functions are (function_label).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "analyze/names/matching.hpp"
#include "model/comparison.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Numbers functions as they come, into a list that outlives it.
class ChainFrames {
 public:
  explicit ChainFrames(std::vector<model::ChainFrame>& list) : list_(list) {}
  std::uint32_t number(const model::ChainFrame& frame);
  /// Those of one run; the same chain once. O(stacks * depth).
  [[nodiscard]] std::vector<model::DigestChain> chains(
      const model::Session& session, const std::vector<model::CpuStackCount>& stacks);

 private:
  std::vector<model::ChainFrame>& list_;
  std::map<std::string, std::uint32_t> known_;  ///< by label: files of two builds have two paths
  std::vector<std::uint32_t> of_frame_;         ///< of the session
};

/// Puts the chains of the runs of each side together.
class ChainSides {
 public:
  ChainSides(std::span<const model::Side> sides, model::Comparison& out);
  void add(const MatchedRegion& region, model::ComparedRegion& to) const;

 private:
  std::vector<std::vector<std::vector<std::uint32_t>>>
      to_;  ///< by side, run and frame of the run's digest
};

}  // namespace rangescope::analyze
