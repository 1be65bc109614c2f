// The operators of a framework as a table for people.
#pragma once

#include "model/report.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

/// Nothing where the report has none; as many rows as kernels are shown.
void write_operators(const model::Report& report, const Style& style, Sink& sink);

}  // namespace rangescope::report
