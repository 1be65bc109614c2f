// Where the threads of one region were: the parts of its wall time, and its functions.
#pragma once

#include "base/result.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// The page of Style::cpu, a path ("decode > layer0"), the name of a range, "program" or "outside
/// ranges". kUsage with the nearest names where the report has no such region; kNothingCaptured
/// where its CPU was not sampled.
[[nodiscard]] base::Result<Document> cpu_page(const model::Report& report, const Style& style);

/// The program's processes by command, nothing where it was one; and, where no range was recorded,
/// its functions.
[[nodiscard]] Section process_section(const model::Report& report, const Style& style);
[[nodiscard]] Section program_functions(const model::Report& report, const Style& style);
/// Where no range was recorded: the program's own functions by CPU time, where its threads wait.
[[nodiscard]] Section own_function_section(const model::Report& report, const Style& style);
[[nodiscard]] Section wait_section(const model::Report& report, const Style& style);

}  // namespace rangescope::report
