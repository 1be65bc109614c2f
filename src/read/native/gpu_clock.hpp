// CUPTI's clock onto ours, from pairs that were read together, where CUPTI could not be given our
// clock.
//
// Between two samples the offset is interpolated linearly, outside it is the nearest sample's. The
// error is half the time that the three reads took (well under a microsecond) plus what the clocks
// drift between flushes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "wire/gpu.hpp"

namespace rangescope::read::native {

class GpuClock {
 public:
  void add(const wire::gpu::ClockSample& sample) {
    const std::int64_t ours = sample.before_ns + (sample.after_ns - sample.before_ns) / 2;
    if (samples_.empty() || sample.cupti_ns > samples_.back().cupti_ns)
      samples_.push_back({sample.cupti_ns, ours - sample.cupti_ns});
  }
  [[nodiscard]] bool empty() const { return samples_.empty(); }

  [[nodiscard]] std::int64_t correct(std::int64_t cupti_ns) const {
    const auto after = std::upper_bound(
        samples_.begin(), samples_.end(), cupti_ns, [](std::int64_t time, const Sample& sample) {
          return time < sample.cupti_ns;
        });
    if (after == samples_.begin())
      return cupti_ns + samples_.front().offset_ns;
    const Sample& before = *(after - 1);
    if (after == samples_.end())
      return cupti_ns + before.offset_ns;
    const double part = static_cast<double>(cupti_ns - before.cupti_ns) /
                        static_cast<double>(after->cupti_ns - before.cupti_ns);
    return cupti_ns + before.offset_ns +
           std::llround(part * static_cast<double>(after->offset_ns - before.offset_ns));
  }

  /// "offset -12 ns, drift 3.1 ppm"
  [[nodiscard]] std::string describe() const {
    if (samples_.empty())
      return {};
    const Sample& first = samples_.front();
    const Sample& last = samples_.back();
    const auto span = static_cast<double>(last.cupti_ns - first.cupti_ns);
    const double ppm =
        span > 0 ? static_cast<double>(last.offset_ns - first.offset_ns) / span * 1e6 : 0;
    return fmt::format("offset {} ns, drift {:.1f} ppm", first.offset_ns, ppm);
  }

 private:
  struct Sample {
    std::int64_t cupti_ns, offset_ns;
  };
  std::vector<Sample> samples_;
};

}  // namespace rangescope::read::native
