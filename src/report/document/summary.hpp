// The two Markdown pages of a run: kernels.md, every kernel by GPU time, and summary.md with summary.svg, one page for
// people who decide: the report's verdict with what to try, where the time goes, how well the GPU is used, what limits
// it.
//
// Both print what the report holds and judge nothing.
#pragma once

#include <string>

#include "model/report.hpp"

namespace rangescope::report {

[[nodiscard]] std::string kernels_page(const model::Report& report);
[[nodiscard]] std::string summary_page(const model::Report& report);
/// Its figure: time by range, as SVG.
[[nodiscard]] std::string summary_figure(const model::Report& report);

}  // namespace rangescope::report
