// Built instead of the other files of this folder where the CUPTI headers are absent.
#include "sample/gpu/counters.hpp"

namespace rangescope::sample {

base::Result<std::unique_ptr<Cupti>> open_cupti() {
  return base::fail(base::Code::kToolMissing,
                    "rangescope was built without CUPTI",
                    {},
                    "Install the CUDA toolkit (CUPTI's headers) and build rangescope again.");
}

}  // namespace rangescope::sample
