// Pictures of a run as SVG, for documents that take no page of HTML: a roofline, a histogram of
// durations, bars.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "model/report.hpp"

namespace rangescope::report {

/// Regions with rooflines under the roofs of their peaks, both axes logarithmic; "" where there is
/// no point.
[[nodiscard]] std::string roofline_figure(const model::Report& report);
/// Every kernel that counters were collected for, likewise; those with the most time with their
/// names.
[[nodiscard]] std::string kernel_roofline_figure(const model::Report& report);
/// How often each value of a metric came, in 20 bins from the least to the most; "" of fewer than
/// two values.
[[nodiscard]] std::string distribution_figure(const std::string& title, const std::string& unit,
                                              std::span<const double> values);
/// How often each duration came, in bins of a fifth of a decade; "" of fewer than two durations
/// above 0.
[[nodiscard]] std::string histogram_figure(const std::string& title,
                                           std::span<const double> durations_ns);

/// Names with their times as bars, one below the other.
[[nodiscard]] std::string bars_figure(const std::string& title,
                                      std::span<const std::pair<std::string, double>> ns);

}  // namespace rangescope::report
