// What nvprof prints at its end and for --print-gpu-summary, as the tables of sums that nsys stats prints.
//
//   ==27694== Profiling result:
//               Type  Time(%)      Time     Calls       Avg       Min       Max  Name
//    GPU activities:   99.94%  1.11524s       301  3.7051ms  3.6928ms  3.7174ms  void matrixMul<int=32>(float*, int)
//                       0.06%  406.30us         2  203.15us  136.13us  270.18us  [CUDA memcpy HtoD]
//         API calls:   49.19%  285.17ms         3  95.055ms  153.32us  284.86ms  cudaMalloc
//
// nvprof 5 to 7 has no types. With --csv units stand in a row below the header. Of NVTX results the ranges are taken,
// whose GPU work is in the totals above them; times of API calls are left out, as everywhere in this reader.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rangescope::read::nsys_csv {

/// "" where the text has no such table.
[[nodiscard]] std::string nvprof_as_csv(std::string_view text);
/// Results that the text holds: of several processes, or of runs that wrote into one log.
[[nodiscard]] std::size_t nvprof_results(std::string_view text);

}  // namespace rangescope::read::nsys_csv
