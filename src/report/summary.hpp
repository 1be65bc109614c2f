// The two Markdown pages of a run: kernels.md, every kernel by GPU time, and summary.md with summary.svg, one page for
// people who decide: where the time goes, how well the GPU is used, what bounds it, what to try.
//
// Both say only what the report holds. A thing that was not measured is named as such; advice names the number that it
// rests on.
#pragma once

#include <string>

#include "model/report.hpp"

namespace rangescope::report {

[[nodiscard]] std::string kernels_page(const model::Report& report);
[[nodiscard]] std::string summary_page(const model::Report& report);
/// Its figure: time by range, as SVG.
[[nodiscard]] std::string summary_figure(const model::Report& report);

}  // namespace rangescope::report
