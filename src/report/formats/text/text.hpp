// Formats for people: the table of a terminal and Markdown. Both render the report's document.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::unique_ptr<Exporter> make_terminal();
[[nodiscard]] std::unique_ptr<Exporter> make_markdown();

}  // namespace rangescope::report
