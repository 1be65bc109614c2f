// CSV for spreadsheets and scripts (RFC 4180): one header row, one row a region, base units, every measure.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::unique_ptr<Exporter> make_csv();

}  // namespace rangescope::report
