// What `report --what-if` asks: one supposition about the program a text.
//
//   kernel:softmax*=0.5     kernels whose names the regular expression fits take half of their time
//   region:attention=0      what these ranges do on their thread, and launch, takes no time
//   copies=0.5              copies in both directions take half of their time
//   copies=overlapped       copies to the GPU run ahead, from pinned memory, on a stream of their
//   own launches=graph          what an instance of a range launches is one CUDA graph
//   launches:step=graph     the same of the instances of `step`
//   rank:3=mean             outside of collectives the rank is as fast as the mean of all; or a
//   factor
//
// A factor of 0 removes the work, and with it the calls that only launched it. Names may contain
// `=`: the last one separates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/selection.hpp"

namespace rangescope::analyze {

struct WhatIfRule {
  enum class Target : std::uint8_t { kKernels, kRegion, kCopies, kLaunches, kRank };
  enum class Action : std::uint8_t {
    kScale,    ///< times `factor`
    kOverlap,  ///< of copies
    kGraph,    ///< of launches
    kMean,     ///< of a rank
  };

  std::string written;  ///< "kernel:softmax*=0.5"
  Target target = Target::kKernels;
  Action action = Action::kScale;
  double factor = 1;
  std::uint32_t rank = 0;
  std::vector<model::KernelPattern> kernels;  ///< any of them
  std::vector<model::RangeTerm> ranges;  ///< any of them; empty for launches: chosen by the data
};

/// kUsage with the part that is wrong, and how to write it.
[[nodiscard]] base::Result<std::vector<WhatIfRule>> parse_what_if(
    const std::vector<std::string>& written);

}  // namespace rangescope::analyze
