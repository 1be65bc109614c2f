// Two or more sides, region by region: what changed, and is it statistically significant?
//
// Regions are matched by domain, kind and path; a region that only one side has is listed, and
// where it looks like another one under a new name the rename is offered. Noise is taken from
// repeated runs where each side has enough of them for a test at `alpha`; else from the occurrences
// inside the runs, cut into eight stretches of time, since occurrences that follow each other are
// alike. Bytes that an allocator counted need no repetition: without repeated runs they are
// compared as they are. The whole run and the time outside ranges are compared as regions are.
// Tests: analyze/statistics/permutation.hpp. Regions, functions and kernels are three families of
// values, each with its own adjustment. The gate takes what is found here as it is. O(regions + the
// test).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "analyze/statistics/permutation.hpp"
#include "base/result.hpp"
#include "model/comparison.hpp"
#include "model/digest.hpp"
#include "model/selection.hpp"

namespace rangescope::analyze {

struct CompareOptions {
  std::vector<std::string>
      values;  ///< tags; every side must have them. Empty: those of `usual` that all sides have
  /// The fastest instance is the quietest number of a busy machine (J. Chen and J. Revels, "Robust
  /// benchmarking in noisy environments", 2016).
  std::vector<std::string> usual = {
      "wall_ns.median", "wall_ns.min", "gpu.busy_ns", "memory.peak_bytes"};
  std::map<std::string, std::string> renames;  ///< path or name in the first side -> in the others
  model::RangeSelection ranges;                ///< these regions and what is in them
  std::vector<model::RangeTerm> regions;       ///< these regions alone; empty: all
  double alpha = 0.05;
  bool in_turns = false;  ///< runs of all sides were made in turns: what the machine did meanwhile
                          ///< fell on all alike
  std::size_t deals = 10000;  ///< at most so many permutations
};

/// Units that one run gives where occurrences are the noise: stretches of consecutive occurrences.
inline constexpr std::size_t kStretches = 8;

/// kNotComparable where the sides have nothing in common that could be compared, or where the runs
/// of one side are not repetitions of each other; kUsage with the nearest name for a value that
/// does not exist; kNothingCaptured where expressions match no region, with the regions that there
/// are.
[[nodiscard]] base::Result<model::Comparison> compare(std::span<const model::Side> sides,
                                                      const CompareOptions& options = {});

}  // namespace rangescope::analyze
