// OpenMetrics text: every measure and metric of every region, for a node exporter's textfile folder or a push gateway.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::unique_ptr<Exporter> make_openmetrics();

}  // namespace rangescope::report
