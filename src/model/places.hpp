// In which regions each kernel was launched. Kernels that count in the same regions share a
// *place*.
#pragma once

#include <cstdint>
#include <vector>

namespace rangescope::model {

struct Places {
  struct Holder {
    std::uint32_t place = 0, region = 0;  ///< index in Report::regions
    bool innermost = false;  ///< the work was not launched inside a child of the region
  };
  std::vector<std::uint32_t>
      of_kernel;  ///< of each kernel of the session; kNone for one that was not chosen
  std::vector<Holder>
      holders;  ///< by place: every region that it lies in, in each scope and domain
};

}  // namespace rangescope::model
