// What the CPU does in a region, in a few words.
#pragma once

#include <string>

#include "model/report.hpp"

namespace rangescope::analyze {

/// "58 % Python, 21 % launching (624 kernels, 3.1 us each); hottest function llama.py:forward, 37 %": at most three
/// parts of a tenth or more, then the function with the most self time. "" where the CPU was not sampled or nothing
/// stands out. `of_service`: also of what waits for work nearly all the time that function is told, by its share of the
/// rest.
[[nodiscard]] std::string cpu_causes(const model::Region& region);
[[nodiscard]] std::string cpu_causes(const model::CpuWork& cpu, double kernels, bool of_service = false);

/// "75 %", "2.2 %", "99.9 %": whole percents where that is two digits.
[[nodiscard]] std::string share_text(double share);

}  // namespace rangescope::analyze
