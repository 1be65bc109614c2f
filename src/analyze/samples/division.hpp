// One stream of samples divided among the work of its card (samples.hpp has the method).
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/samples/sample_row.hpp"
#include "analyze/samples/sample_work.hpp"
#include "model/sample.hpp"

namespace rangescope::analyze {

/// By metric of the stream, then by set or kind of work. The last kind is the idle device, the last
/// set that of kernels that were not chosen.
struct DividedSamples {
  std::vector<std::vector<SamplePart>> of_set, of_kind;
  std::vector<double> set_ns,
      kind_ns;                       ///< sampled time of the work (overlapping work counts twice)
  std::vector<double> set_total_ns;  ///< all of its time
  std::vector<double> totals;        ///< by metric
  double busy_ns = 0, other_ns = 0;
};

/// `sets`: how many there are. `offset_ns`: from the clock of the stream to the session's.
[[nodiscard]] DividedSamples divide_samples(const model::SampleStream& stream,
                                            const SampledWork& work,
                                            std::size_t sets,
                                            std::int64_t offset_ns);

}  // namespace rangescope::analyze
