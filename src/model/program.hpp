// The region that a program without ranges is.
#pragma once

#include <algorithm>
#include <string_view>

#include "model/report.hpp"

namespace rangescope::model {

inline constexpr std::string_view kProgram = "program";

/// No range was recorded: the report's one region is the program.
[[nodiscard]] inline bool is_program(const Report& report) {
  return report.regions.size() == 1 && report.regions.front().path.size() == 1 &&
         report.regions.front().path.front() == kProgram &&
         std::all_of(report.processes.begin(),
                     report.processes.end(),
                     [](const ReportProcess& process) { return process.ranges == 0; });
}

}  // namespace rangescope::model
