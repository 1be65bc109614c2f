// The table for people at a terminal: a tree of regions, aligned, as wide as the terminal, and below it what is outside
// every range, the kernels, what was lost and what the doctor found.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::unique_ptr<Exporter> make_terminal();

}  // namespace rangescope::report
