// The reader of Nsight Compute reports (file.hpp has the format): one Measurement a result.
//
// Kernels of kernel and application replay carry the NVTX state of the launch; a range result
// carries the range that the capture's own filter (the --nvtx-include of the recorded command line)
// named, since the state holds whatever else was open when the range began. Values are in the units
// of model::metric_unit; strings (policies, names) and attributes of the device are not
// measurements and stay behind.
#pragma once

#include "read/ncu/report/file.hpp"
#include "read/reader.hpp"

namespace rangescope::read::ncu_report {

extern const Reader kReader;

/// O(results * metrics). Results that are damaged become losses; kBadData when all are.
[[nodiscard]] base::Result<model::Session> to_session(const File& file);

}  // namespace rangescope::read::ncu_report
