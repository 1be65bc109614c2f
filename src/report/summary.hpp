// The two Markdown pages of a pipeline run: kernels.md, every kernel by GPU time, and stakeholder_summary.md, one page
// for people who decide: where the time goes, what bounds it, what to try.
//
// Both say only what the report holds. A thing that was not measured is named as such; advice names the number that it
// rests on.
#pragma once

#include <string>

#include "model/report.hpp"

namespace rangescope::report {

[[nodiscard]] std::string kernels_page(const model::Report& report);
[[nodiscard]] std::string stakeholder_page(const model::Report& report);

}  // namespace rangescope::report
