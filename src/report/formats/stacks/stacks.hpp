// Call chains below range paths, for tools that draw flame graphs.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

/// A line a chain, "range;function;function COUNT": for flamegraph.pl and everything that reads its input.
[[nodiscard]] std::unique_ptr<Exporter> make_collapsed();
/// JSON of www.speedscope.app, one profile of all chains, weighed in nanoseconds of CPU time.
[[nodiscard]] std::unique_ptr<Exporter> make_speedscope();

}  // namespace rangescope::report
