// Sampled counters as tracks of a timeline: one value a sample, on the session's clock.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::report {

struct SampleTrack {
  const model::SampleStream* stream = nullptr;
  const model::SampledMetric* metric = nullptr;
  std::int64_t offset_ns = 0;  ///< to the stream's times: they are the session's then
  std::string title;           ///< "GPU 0 dram_read_bytes"
  std::string unit;            ///< of value(): amounts are rates, "byte/s", "W"

  /// NaN where nothing was read.
  [[nodiscard]] double value(std::size_t sample) const;

  /// Calls visit(time on the session's clock in ns, value) where the value is known and differs from the one before.
  template <class Visit>
  void changes(Visit visit) const {
    double last = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < stream->start_ns.size(); ++i) {
      const double now = value(i);
      if (std::isnan(now) || now == last) continue;
      last = now;
      visit(stream->start_ns[i] + offset_ns, now);
    }
  }
};

/// Tracks of every device that was sampled and used; nothing where the report was made of other input.
[[nodiscard]] std::vector<SampleTrack> sample_tracks(const model::Report& report, const model::Session& session);

}  // namespace rangescope::report
