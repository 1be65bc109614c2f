// `--wait-idle`: a run begins when nobody else uses its GPUs.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace rangescope::profile {

/// Waits until the GPUs that CUDA_VISIBLE_DEVICES leaves (in `environment` of the program, else in ours) have done
/// nothing for a second, as NVML tells, at most `limit`. What a report should say of it; "" where they were idle at
/// once.
[[nodiscard]] std::string wait_for_idle(std::chrono::nanoseconds limit,
                                        const std::map<std::string, std::string>& environment);

}  // namespace rangescope::profile
