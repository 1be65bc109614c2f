// When a rule speaks. Shares are 0..1; each with its reason.
#pragma once

#include <string_view>

namespace rangescope::analyze {

struct Threshold {
  double value;
  std::string_view why;
};

inline constexpr Threshold kMattersOfRun{0.01, "what saves less of the run drowns in its noise from run to run"};
inline constexpr Threshold kMattersInside{0.05,
                                          "in a short run start-up is most of it: then the ranges are what counts"};
inline constexpr Threshold kOneChild{0.8, "a child that holds so much of it is the place to look"};

inline constexpr Threshold kGpuIdle{0.5, "below half the GPU waits longer than it works"};
inline constexpr Threshold kGpuFull{0.8, "from there on faster launches save a fifth at most: the kernels decide"};
inline constexpr Threshold kLaunching{0.25,
                                      "of the wall time inside launching calls: the largest single cost on the CPU"};
inline constexpr Threshold kManyKernels{4, "kernels an occurrence: the cost of a single launch is not a pattern"};

inline constexpr Threshold kHeld{0.1, "of a range's time: shorter waits for a lock are its ordinary use"};

inline constexpr Threshold kSynchronizing{0.1, "of the wall time in waits, while the GPU has gaps to fill"};
inline constexpr Threshold kCopying{0.2, "of the GPU's busy time: less is hidden soon by other work"};
inline constexpr Threshold kHidden{0.5, "of the copies' time beside kernels: then the pattern overlaps already"};

inline constexpr Threshold kWarmUp{0.1,
                                   "of a region in its first occurrences: medians and totals tell different tales"};
inline constexpr Threshold kUnevenTimes{2, "p95 over median: jitter of a settled loop stays below"};
inline constexpr Threshold kUnevenCount{10, "occurrences: of fewer the 95th percentile is the slowest one"};
inline constexpr Threshold kUnevenShare{0.2, "of the region above the median of all: outliers that cost something"};
inline constexpr Threshold kImbalance{0.2, "longest over mean: what a step that all wait for loses to the slowest"};

inline constexpr Threshold kStandsOut{3,
                                      "times as much as what the other ranks differ by: noise alone does not reach it"};
inline constexpr Threshold kChance{
    3, "standard deviations: last so much more often happens by chance in one job of a thousand"};
inline constexpr Threshold kMoreThanNoise{
    0.05, "of the run: a rank that costs so much is told even if it came late a few times only"};
inline constexpr Threshold kOften{0.8, "of the occurrences, where there are two ranks and nobody says what is usual"};
inline constexpr Threshold kCause{0.3, "of the delay in one region: less, and it has many causes"};
inline constexpr Threshold kSlowerGpu{0.05,
                                      "longer for the same kernels: clocks of healthy GPUs of one kind are closer"};
inline constexpr Threshold kSlowerHost{0.1, "longer for the same ranges: healthy hosts of one kind are closer"};
inline constexpr Threshold kMuchMoreWork{0.1, "more of it: less is the usual rest of a division"};
inline constexpr Threshold kSlowerLink{0.75,
                                       "of the others' bandwidth: what transfers of one size differ by stays above"};
inline constexpr Threshold kLargeMessage{65536, "bytes: shorter ones measure latency"};
inline constexpr Threshold kThrottled{0.05, "of the work with clocks held down: less moves no median"};

inline constexpr Threshold kOutside{0.1, "of the run: less is the usual start and end of a program"};
inline constexpr Threshold kStartUp{0.5, "of a program: what lies before and behind its GPU work is most of it"};
inline constexpr Threshold kCovered{0.02, "of the run in ranges: below it their costs cannot explain the run"};
inline constexpr Threshold kBetween{0.1, "of the time between first and last range: work that nobody put a name to"};

inline constexpr Threshold kOneKernel{0.4, "of all kernels' time: halving it saves a fifth"};
inline constexpr Threshold kHalfOfPhase{0.5, "of the kernels' time of a phase: the deepest module with so much"};
inline constexpr Threshold kHot{0.1, "of the time in ranges: the largest part, where nothing better is known"};
inline constexpr Threshold kAlmostAll{0.95, "of what was measured: one region says what all of them say"};
inline constexpr Threshold kHardlyUsed{0.1, "of both peaks, gaps included: gaps and tiny grids, not latency of memory"};
inline constexpr Threshold kSmallGrid{1, "waves: a grid that does not fill the GPU once leaves SMs without work"};
inline constexpr Threshold kOccupied{0.25, "of the warps that fit: too few to hide the latency of memory"};
inline constexpr Threshold kPadded{1.5, "executed over useful FLOPs: more than the rounding of the last tile"};

inline constexpr Threshold kProfiler{0.05, "of the region: the limit from which a table shows it"};
inline constexpr Threshold kTooShortNs{150, "ns: recording a range costs some 50, and its begin and end are inside it"};

}  // namespace rangescope::analyze
