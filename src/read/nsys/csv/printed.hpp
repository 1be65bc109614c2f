// What `nsys stats` and `nsys profile --stats=true` print for people, as the CSV that they print for programs.
//
//    ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):
//
//    Time (%)  Total Time (ns)  Instances  Name
//    --------  ---------------  ---------  ----
//        60.0             3000          3  k
//
// The line of dashes says where each column stands. A table ends at a line that is no row of it: logs that were pasted
// have blank lines anywhere (`nsys-log.txt` of NVIDIA/Fuser).
#pragma once

#include <string>
#include <string_view>

namespace rangescope::read::nsys_csv {

/// Its tables, with the name of each report in front and everything else left out; "" where the text has none.
[[nodiscard]] std::string printed_as_csv(std::string_view text);

}  // namespace rangescope::read::nsys_csv
