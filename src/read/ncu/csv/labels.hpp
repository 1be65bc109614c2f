// Labels of the details page back to metric names, for CSV printed without --print-metric-name name.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::read::ncu_csv {

/// The metric of a label in a section ("GPU Speed Of Light Throughput", "Duration" -> "gpu__time_duration.sum"); names
/// and labels that are not known come back as they are, the latter with their section: "Section/Label".
[[nodiscard]] std::string metric_of_label(std::string_view section, std::string_view label);

}  // namespace rangescope::read::ncu_csv
