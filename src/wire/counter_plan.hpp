// The plan of counters: the file that RANGESCOPE_COUNTERS names, written by the command line
// (collect/native), read by the injected library (inject/counters).
//
// Text, one item a line, names percent-encoded (every byte but letters, digits and _.:- as %XX):
//
//   rangescope-counters 1
//   metric dram__bytes.sum memory,quick      name, and the groups that want it, if any
//   configuration 2              the metrics that follow cannot be counted together with those
//   above pc 1                         instead of metrics: samples of the program counter
//   (wire/pc.hpp) per range|kernel|both rounds 5 skip-first -1 every 50                     only
//   occurrences 1, 51, 101 ... of each range are measured trace-first 3                occurrences
//   of each target that the timeline sees before counters begin; 0: none patience 10000 ms that a
//   range which lacks passes is waited for at least arm-wait 100                 ms that a range
//   which lacks its first round waits for a pass; 0: never cache keep|flush             flush:
//   caches are emptied before a measured occurrence, or kernel by payload                   ranges
//   of one name with different payloads (whole numbers) are different ranges resume PATH encoded:
//   the program is run several times; what one run leaves unfinished is there wait 0|1 1: a later
//   run: each occurrence waits until the hardware is programmed for it kernel x|r NAME of kernels
//   one by one, only those; exact or regex, any of the names that they have no-kernel x|r NAME not
//   those include p x [] =LLM ndecode * nlayer0      kind p|s, names x exact|r regex, anchors
//   -|[|]|[], domain -|=name, elements exclude ...
//
// Names are exact bytes or POSIX extended regular expressions (regcomp), searched for. The grammar
// is Nsight Compute's NVTX filter, already parsed. Unknown items are an error: the file is written
// for exactly this library.
#pragma once

#include <cstddef>

namespace rangescope::wire::counters {

inline constexpr char kPlanHead[] = "rangescope-counters 1";
inline constexpr std::size_t kMaxMetrics = 512;
inline constexpr std::size_t kMaxConfigurations = 8;
inline constexpr std::size_t kMaxExpressions = 64;
inline constexpr std::size_t kMaxElements = 16;
inline constexpr std::size_t kMaxKernels = 64;

}  // namespace rangescope::wire::counters
