// Markdown for issues, pull requests and notes: the same columns as the terminal table.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::unique_ptr<Exporter> make_markdown();

}  // namespace rangescope::report
