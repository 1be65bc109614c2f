// The flame graph of a comparison: how the CPU time of one region's functions grew, from the first side to the last.
#pragma once

#include "model/comparison.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

inline constexpr std::size_t kFlameMost = 30'000;  ///< functions that are drawn; samples of others count for callers

/// A part of the HTML page; the script draws it from
///   { region, sides: [A, B], sample_ns: [A, B], shortened, names: [[text, file]], nodes: [back, name, A, B, ...] }
/// where a node is called by the one `back` nodes before it (0: by none), and A and B are the samples that ended in it.
/// sample_ns: what a sample stands for, an occurrence of the region.
void write_flame(const model::Comparison& comparison, const model::ComparedRegion& region, Sink& sink);

}  // namespace rangescope::report
