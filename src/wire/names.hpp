// The environment variables and files by which the command line and the library in the profiled
// program find each other.
#pragma once

namespace rangescope::wire {

/// The library that NVTX 3 loads at its first call, and CUDA in cuInit.
inline constexpr char kNvtxInjection[] = "NVTX_INJECTION64_PATH";
inline constexpr char kCudaInjection[] = "CUDA_INJECTION64_PATH";
/// Another tool's library, to which ours forwards every call.
inline constexpr char kChainNvtx[] = "RANGESCOPE_CHAIN_NVTX";
inline constexpr char kChainCuda[] = "RANGESCOPE_CHAIN_CUDA";

inline constexpr char kDir[] = "RANGESCOPE_DIR";  ///< folder of the captures
inline constexpr char kMaxCaptureSize[] = "RANGESCOPE_MAX_CAPTURE_SIZE";  ///< bytes, of each file
/// "200ms": the interval in which GPU work is written.
inline constexpr char kFlushInterval[] = "RANGESCOPE_FLUSH_INTERVAL";
inline constexpr char kCudaGraphs[] = "RANGESCOPE_CUDA_GRAPHS";  ///< "node" or "graph"
/// Functions noted in addition to launches: "a,b".
inline constexpr char kCudaCalls[] = "RANGESCOPE_CUDA_CALLS";
/// "off", "stacks": PyTorch's recorder of memory.
inline constexpr char kMemory[] = "RANGESCOPE_MEMORY";
/// "off": calls that allocate and free, and events, are not recorded.
inline constexpr char kCallDetails[] = "RANGESCOPE_CALL_DETAILS";
/// "callback": launches are noted by callbacks.
inline constexpr char kLaunchRecords[] = "RANGESCOPE_LAUNCH_RECORDS";
/// "off", or the number of levels: modules of PyTorch.
inline constexpr char kModules[] = "RANGESCOPE_MODULES";
/// Functions of Python: lines "name=pattern".
inline constexpr char kFunctions[] = "RANGESCOPE_FUNCTIONS";
/// Lines in addition to those of known frameworks; "off": none.
inline constexpr char kPhases[] = "RANGESCOPE_PHASES";
inline constexpr int kMostFunctions = 100;  ///< lines of each
/// "off": CUPTI is not given up for a profiler inside the program.
inline constexpr char kGiveWay[] = "RANGESCOPE_GIVE_WAY";
/// "on": CUPTI is shared with other tools that allow it.
inline constexpr char kCuptiShared[] = "RANGESCOPE_CUPTI_SHARED";
/// "on", "off": kernel times from the GPU's own event system.
inline constexpr char kHardwareTimes[] = "RANGESCOPE_HARDWARE_TIMES";
inline constexpr char kCupti[] = "RANGESCOPE_CUPTI";      ///< path of the CUPTI to load
inline constexpr char kLight[] = "RANGESCOPE_LIGHT";      ///< "1": nothing of the GPU is recorded
inline constexpr char kRanks[] = "RANGESCOPE_RANKS";      ///< "0-7,16": the only ranks that record
inline constexpr char kVerbose[] = "RANGESCOPE_VERBOSE";  ///< the library says what it does
inline constexpr char kCounters[] = "RANGESCOPE_COUNTERS";  ///< path of the plan of counters

/// The prefix of a file's name, followed by a process id, next to the captures of `attach`.
/// rangescope locks it (flock) while it records; the library removes it when recording has ended.
inline constexpr char kAttachLock[] = "attached-";
/// Limit of the settings that are passed at `attach`, in bytes.
inline constexpr unsigned kMostSettings = 16 * 1024;

/// Next to the captures: which counters to collect (wire/counter_plan.hpp), and the rounds that
/// later runs complete. The latter begins with kProgressHead and two numbers: ranges that lack
/// rounds, and passes taken in all runs.
inline constexpr char kPlanFile[] = "counters.plan";
inline constexpr char kProgressFile[] = "counters.progress";
inline constexpr char kProgressHead[] = "rangescope-progress 1 ";

}  // namespace rangescope::wire
