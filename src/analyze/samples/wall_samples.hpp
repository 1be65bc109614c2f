// Samples of devices onto regions where nothing of the GPU was recorded (--light): what the whole
// device did while a range was open. It holds what other processes did meanwhile, and not what a
// range's work did after it ended.
//
// A value is the sum over occurrences of the samples inside each, those at its ends by their
// overlap. Of a sample with amount a that lies inside by the fraction f, anything from 0 to a may
// belong to the range: a variance of at most a^2 f (1 - f). That, half a percent for the counters
// and, for the clock of a GPU, which no kernel aligns here, a shift by one sample make the
// interval. O(samples + occurrences * (metrics + log samples)) a stream.
#pragma once

#include "analyze/tree/regions.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// True of a recording by --light that holds no GPU work from elsewhere either.
[[nodiscard]] bool is_light(const model::Session& session);

/// Metrics of regions with source "sampled over wall time" and Report::sampled, of the devices that
/// were active while ranges were open (of all where none was), and a note on what is missing and
/// why.
void add_wall_samples(const Regions& regions, model::Report& report);

}  // namespace rangescope::analyze
