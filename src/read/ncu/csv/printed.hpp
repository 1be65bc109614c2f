// The page that ncu prints for people, as the CSV of its details page or summary.
//
//   [5233] zoo@127.0.0.1
//     gemm(const float *, int) (16, 8, 1)x(256, 1, 1), Context 1, Stream 13, Device 0, CC 9.0
//       NVTX Push/Pop Stack for Thread 5233:
//        <default domain>
//           <0,prefill>
//       Section: GPU Speed Of Light Throughput
//       ----------------------- ----------- ------------
//       Metric Name             Metric Unit Metric Value
//       ----------------------- ----------- ------------
//       Duration                    usecond        20.29
//       ----------------------- ----------- ------------
//
// The summaries of --print-summary have five columns, and a kernel's line ends with its invocations:
//
//     gemm(const float *, int) (16, 8, 1)x(256, 1, 1), Device 0, CC 9.0, Invocations 4
//
// ncu 2020 to 2026, from any line on: what preceded the first line is unknown. Text of rules is left out.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::read::ncu_csv {

/// "" where the text holds no table of ncu.
[[nodiscard]] std::string printed_as_csv(std::string_view text);

}  // namespace rangescope::read::ncu_csv
