// The plan of counters: the file that RANGESCOPE_COUNTERS names, written by the command line
// (collect/native), read by the injected library (inject/counters).
//
// Text, one item a line. Names are percent-encoded: every byte except letters, digits and _.:- is
// %XX.
//
//   rangescope-counters 1
//   metric dram__bytes.sum memory,quick
//                             name, and the groups that need it, if any
//   configuration 2           the following metrics cannot be counted together with those above
//   pc 1                      instead of metrics: samples of the program counter (wire/pc.hpp)
//   per range|kernel|both
//   rounds 5
//   skip-first -1
//   every 50                  only occurrences 1, 51, 101 ... of each range are measured
//   trace-first 3             occurrences of each target in the timeline before counters begin;
//                             0: none
//   patience 10000            ms, the shortest wait for a range that lacks passes
//   arm-wait 100              ms that a range without a complete round waits for a pass; 0: never
//   cache keep|flush          flush: caches are emptied before a measured occurrence or kernel
//   by payload                ranges of one name with different integer payloads are different
//   resume PATH               encoded: the file in which one run saves unfinished rounds for the
//                             next
//   wait 0|1                  1: a later run: each occurrence waits for the hardware
//   kernel x|r NAME           only these kernels (one by one): exact name or regex, which may match
//                             any of a kernel's names
//   no-kernel x|r NAME        not these
//   include p x [] =LLM ndecode * nlayer0
//                             kind p|s, names exact x or regex r, anchors -|[|]|[],
//                             domain -|=name, elements
//   exclude ...
//
// Names are exact bytes or POSIX extended regular expressions (regcomp), which are searched for.
// The grammar is Nsight Compute's NVTX filter, already parsed. Unknown items are an error: the file
// is written for exactly this library.
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
