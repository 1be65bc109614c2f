// Figures of a run as SVG, for documents without HTML: a roofline, a histogram of durations, bars.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "model/report.hpp"

namespace rangescope::report {

/// The roofline points of all regions below their roofs, both axes logarithmic; "" without points.
[[nodiscard]] std::string roofline_figure(const model::Report& report);
/// The same for every kernel with counters; those with most time have their names.
[[nodiscard]] std::string kernel_roofline_figure(const model::Report& report);
/// How often each value of a metric occurred, in 20 bins from the smallest to the largest; "" for
/// fewer than two values.
[[nodiscard]] std::string distribution_figure(const std::string& title,
                                              const std::string& unit,
                                              std::span<const double> values);
/// How often each duration occurred, in bins of a fifth of a decade; "" for fewer than two
/// durations above 0.
[[nodiscard]] std::string histogram_figure(const std::string& title,
                                           std::span<const double> durations_ns);

/// Names with their times as bars, one below the other.
[[nodiscard]] std::string bars_figure(const std::string& title,
                                      std::span<const std::pair<std::string, double>> ns);

}  // namespace rangescope::report
