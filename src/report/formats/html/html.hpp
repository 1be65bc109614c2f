// One offline HTML file: regions, timeline, roofline, kernels, metrics, losses, provenance.
//
// The page is built by npm from web/ and embedded (template.html). This exporter puts the data in as JSON, once, inside
// <script type="application/json">: `<`, `>`, `&` and the line separators U+2028/9 are written as \uNNNN, so that no
// recorded name can end the element. The page formats numbers and computes none.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::unique_ptr<Exporter> make_html();

}  // namespace rangescope::report
