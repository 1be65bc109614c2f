// The limits at which a rule fires, each with its reason. Shares are 0..1.
#pragma once

namespace rangescope::analyze {

inline constexpr double kMattersOfRun =
    0.01;  ///< of the run: smaller savings drown in run-to-run noise
inline constexpr double kMattersInside =
    0.05;  ///< of the ranges, for short runs that are mostly start-up
inline constexpr double kOneChild = 0.8;  ///< of the parent: such a child is the place to look

inline constexpr double kGpuIdle =
    0.5;  ///< busy share below which the GPU waits longer than it works
inline constexpr double kGpuFull =
    0.8;  ///< busy share above which faster launches save a fifth at most
inline constexpr double kLaunching =
    0.25;  ///< of wall time inside launch calls: the largest CPU cost
inline constexpr double kManyKernels =
    4;                                 ///< per instance: the cost of a single launch is no pattern
inline constexpr double kFewLong = 3;  ///< mean call over median latency: a few calls hold the sum
inline constexpr double kHeld = 0.1;   ///< of a range's time: shorter waits for a lock are ordinary
inline constexpr double kSynchronizing =
    0.1;  ///< of wall time in waits, while the GPU has gaps to fill
inline constexpr double kCopying =
    0.2;                                ///< of GPU busy time: less is soon overlapped by other work
inline constexpr double kHidden = 0.5;  ///< of copy time: from there on copies overlap well already

inline constexpr double kWarmUp =
    0.1;  ///< of a region in its first instances: median and total disagree
inline constexpr double kUnevenTimes =
    2;  ///< p95 over median: the jitter of a steady loop stays below
inline constexpr double kUnevenCount =
    10;  ///< instances: of fewer, the 95th percentile is the slowest one
inline constexpr double kUnevenShare =
    0.2;  ///< of the region above the median: outliers with a real cost
inline constexpr double kImbalance =
    0.2;  ///< max over mean - 1: what a joined step loses to the slowest

inline constexpr double kStandsOut = 3;  ///< times the spread of the other ranks: more than noise
inline constexpr double kChance = 3;  ///< standard deviations: exceeded by chance in 1 job of 1,000
inline constexpr double kMoreThanNoise =
    0.05;  ///< of the run: reported even if it was late only a few times
inline constexpr double kOften = 0.8;  ///< of instances, for two ranks: neither shows what is usual
inline constexpr double kMostlyWaits = 0.5;  ///< of calls' time, for ranks that arrive later
inline constexpr double kCause = 0.3;  ///< of the delay in one region: below, it has many causes
inline constexpr double kSlowerGpu = 0.05;  ///< for the same kernels: healthy GPUs differ less
inline constexpr double kSlowerHost = 0.1;  ///< for the same ranges: healthy hosts differ less
inline constexpr double kMuchMoreWork =
    0.1;  ///< above the others: less is the remainder of a division
inline constexpr double kSlowerLink =
    0.75;  ///< of the others' bandwidth: equal transfers stay above
inline constexpr double kLargeMessage = 65536;  ///< bytes: shorter ones measure latency
inline constexpr double kThrottled = 0.05;  ///< of the work at limited clocks: less moves no median

inline constexpr double kOutside = 0.1;   ///< of the run: less is a program's usual start and end
inline constexpr double kStartUp = 0.5;   ///< of a program before and after its GPU work
inline constexpr double kCovered = 0.02;  ///< of the run in ranges: less cannot explain the run
inline constexpr double kBetween = 0.1;   ///< of the time from first to last range: unnamed work

inline constexpr double kOneKernel = 0.4;  ///< of all kernel time: halving it saves a fifth
inline constexpr double kHalfOfPhase =
    0.5;  ///< of a phase's kernel time: the deepest module with so much
inline constexpr double kHot =
    0.1;  ///< of the time in ranges: the fallback where nothing else is known
inline constexpr double kAlmostAll = 0.95;  ///< of what was measured: one region speaks for all
inline constexpr double kHardlyUsed =
    0.1;                                 ///< of both peaks: gaps and tiny grids, not memory latency
inline constexpr double kSmallGrid = 1;  ///< waves: a smaller grid leaves SMs without work
inline constexpr double kOccupied =
    0.25;  ///< of the warps that fit: too few to hide memory latency
inline constexpr double kPadded =
    1.5;  ///< executed over useful FLOPs: more than rounding up the last tile

inline constexpr double kUseOfPeak = 0.05;             ///< a smaller use explains nothing
inline constexpr double kCheckpointShare = 0.25;       ///< of the peak: worth recomputing
inline constexpr double kFragmentedShare = 0.2;        ///< of what is reserved
inline constexpr double kFragmentedBytes = 268435456;  ///< less is the allocator's usual reserve

inline constexpr double kProfiler = 0.05;  ///< of the region: a table shows it from there on
inline constexpr double kTooShortNs =
    150;  ///< recording a range takes some 50 ns, part of it inside the range

}  // namespace rangescope::analyze
