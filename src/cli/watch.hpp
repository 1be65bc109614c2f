// Tables of a program while it runs.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "analyze/options.hpp"
#include "cli/bind.hpp"

namespace rangescope::cli {

struct WatchRequest {
  std::string root;  ///< of the runs
  std::optional<std::chrono::nanoseconds> every;
  std::string openmetrics;  ///< address that serves the numbers of the table too; "" for none
  ReportChoice choice;
  analyze::Options analysis;
};

/// Runs `words`, the arguments of this rangescope, without what asks for watching, and draws beside it. The exit code
/// is the program's.
[[nodiscard]] base::Result<int> watch(WatchRequest request, const std::vector<std::string>& words);

}  // namespace rangescope::cli
