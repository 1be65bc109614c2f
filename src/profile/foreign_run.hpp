// Run folders of llm-perf-opt and of scripts that lay theirs out likewise:
//
//   RUN/nsys/*.nsys-rep, *.sqlite, *.csv     Nsight Systems, its export, tables of `nsys stats`
//   RUN/ncu/*.ncu-rep, raw.csv               Nsight Compute, its page as CSV
//   RUN/torch_profiler/*.json                traces of PyTorch
#pragma once

#include <filesystem>
#include <vector>

namespace rangescope::profile {

/// What of such a folder can be read, each recording once: an export instead of its report, and
/// tables only where there is no recording of their tool. Empty where the folder is none.
[[nodiscard]] std::vector<std::filesystem::path> captures_of_foreign_run(
    const std::filesystem::path& folder);

}  // namespace rangescope::profile
