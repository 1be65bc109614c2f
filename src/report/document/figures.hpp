// Pictures of a run as SVG, for documents that take no page of HTML: a roofline, a histogram of durations.
#pragma once

#include <span>
#include <string>

#include "model/report.hpp"

namespace rangescope::report {

/// As the text of an element.
[[nodiscard]] std::string xml_escaped(std::string_view text);

/// Regions with rooflines under the roofs of their peaks, both axes logarithmic; "" where there is no
/// point.
[[nodiscard]] std::string roofline_figure(const model::Report& report);
/// How often each duration came, in bins of a fifth of a decade; "" of fewer than two durations above 0.
[[nodiscard]] std::string histogram_figure(const std::string& title, std::span<const double> durations_ns);

}  // namespace rangescope::report
