// The clock of samples onto the session's, by what both say of when the device was active.
//
// Algorithm: the shift at which the samples' activity and the share of each sample in which our
// work ran correlate best (Pearson), first around what the clocks of the machine suggest, else over
// all shifts at which both overlap; coarse, then ever finer. On a window of at most 100,000
// samples, so that its cost has a bound: O(window) a shift, about a thousand shifts.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace rangescope::analyze {

struct Alignment {
  std::int64_t offset_ns = 0;  ///< added to a sample's time it gives the session's
  double correlation = 0;  ///< of activity at that shift, -1..1; 0 where there was nothing to go by
  double residual_ns = 0;  ///< how far the first and the second half of the window disagree
  bool by_activity = false;  ///< else it is what the clocks suggest
};

/// Samples of a device in time order.
struct ActivitySamples {
  std::span<const std::int64_t> start_ns, end_ns;
  std::span<const float> activity;  ///< one a sample, 0..1 (NaN: unknown)
};

/// `busy`: when our work ran, in order, without overlap. `guess_ns`: the shift that the clocks of
/// the machine suggest.
[[nodiscard]] Alignment align_samples(const ActivitySamples& samples,
                                      std::span<const std::pair<std::int64_t, std::int64_t>> busy,
                                      std::int64_t guess_ns);

}  // namespace rangescope::analyze
