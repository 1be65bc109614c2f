// Which stretches of a program are recorded (profile/windows.hpp), as the command line says it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "model/sketch.hpp"

namespace rangescope::profile {

struct WindowChoice {
  struct Counted {
    std::string range;  ///< empty: from cudaProfilerStart() to cudaProfilerStop()
    std::uint32_t first = 0, last = 0;
  };
  /// Freezes the last windows once they hold an instance of the range longer than `limit_ns`, or,
  /// where that is 0, longer than `factor` times the `quantile` of the instances before.
  struct When {
    std::string range;
    double quantile = 0, factor = 1, limit_ns = 0;
  };
  std::optional<std::chrono::nanoseconds>
      keep_last;  ///< how much of the end is kept, in windows that follow each other
  std::optional<When> when;
  std::optional<Counted> counted;                 ///< from instance `first` of a range to `last`
  bool stopped = false;                           ///< begins dormant
  std::optional<std::chrono::nanoseconds> after;  ///< the first window begins
  std::optional<std::chrono::nanoseconds> length;
  [[nodiscard]] bool any() const { return keep_last || counted || stopped || after || length; }
};

/// "step > p99 * 1.5", "step > 20ms". kUsage.
[[nodiscard]] base::Result<WindowChoice::When> parse_when(const std::string& text);
/// The length that an instance must exceed, where `lengths_ns` are those of all instances before.
/// Nothing while they are too few for a quantile. Quantiles are within model::kRelativeError.
[[nodiscard]] std::optional<double> limit_ns(const WindowChoice::When& when,
                                             const model::Distribution& lengths_ns);
/// "step:100-110", "step:100". kUsage.
[[nodiscard]] base::Result<WindowChoice::Counted> parse_counted(const std::string& text);

}  // namespace rangescope::profile
