// Where the threads of one region spent their time: parts of the wall time, functions, waits. And,
// for a program without ranges, its processes, functions and waits.
#pragma once

#include "base/result.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// The page of Style::cpu: a path ("decode > layer0"), the name of a range, "program" or "outside
/// ranges". kUsage with the nearest names if the report has no such region; kNothingCaptured if its
/// CPU was not sampled.
[[nodiscard]] base::Result<Document> cpu_page(const model::Report& report, const Style& style);

// Sections of a program without ranges; empty if ranges were recorded.

/// Its processes by command; empty for a single process.
[[nodiscard]] Section process_section(const model::Report& report, const Style& style);
/// All functions by self time.
[[nodiscard]] Section program_functions(const model::Report& report, const Style& style);
/// The program's own functions by CPU time, with the libraries that they call.
[[nodiscard]] Section own_function_section(const model::Report& report, const Style& style);
/// Where its threads wait.
[[nodiscard]] Section wait_section(const model::Report& report, const Style& style);

}  // namespace rangescope::report
