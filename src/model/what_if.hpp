// What changes of a program would do to its time, as `report --what-if` asks: predicted by a replay
// of the recording (analyze/what_if). Times of regions are metrics of each:
// `predicted_wall_ns`, with its interval, and `predicted_saving`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::model {

inline constexpr std::string_view kPredictedWall = "predicted_wall_ns";
inline constexpr std::string_view kPredictedSaving = "predicted_saving";

/// One change, as it was written, and what it changes in this recording.
struct SupposedChange {
  std::string written;  ///< "kernel:softmax*=0.5"
  std::string subject;  ///< "480 kernel executions of 12 ms"
};

/// A time, and the same with all changes made. Nanoseconds.
struct PredictedTime {
  double now_ns = 0;    ///< as the report has it
  double after_ns = 0;  ///< expected
  double after_low_ns = 0, after_high_ns = 0;
  double replay_error = 0;  ///< of the recording, replayed without a change: 0.02
  bool is_bound = false;    ///< it does not replay: the saving is at most this

  [[nodiscard]] double saves_ns() const { return now_ns - after_ns; }
};

struct PredictedRegion {
  std::uint32_t region = 0;  ///< index in Report::regions
  PredictedTime time;        ///< of all its instances
};

struct WhatIf {
  std::vector<SupposedChange> changes;
  PredictedTime run;
  std::vector<PredictedRegion> regions;
};

}  // namespace rangescope::model
