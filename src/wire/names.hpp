// The environment variables and files by which the command line and the library in the profiled
// program find each other.
#pragma once

namespace rangescope::wire {

/// Whoever loads us: NVTX 3 at its first call, CUDA in cuInit.
inline constexpr char kNvtxInjection[] = "NVTX_INJECTION64_PATH";
inline constexpr char kCudaInjection[] = "CUDA_INJECTION64_PATH";
/// The other library of that variable, which our own hands every call on to.
inline constexpr char kChainNvtx[] = "RANGESCOPE_CHAIN_NVTX";
inline constexpr char kChainCuda[] = "RANGESCOPE_CHAIN_CUDA";

inline constexpr char kDir[] = "RANGESCOPE_DIR";  ///< folder of the captures
inline constexpr char kMaxCaptureSize[] = "RANGESCOPE_MAX_CAPTURE_SIZE";  ///< bytes, of each file
inline constexpr char kFlushInterval[] =
    "RANGESCOPE_FLUSH_INTERVAL";  ///< "200ms": GPU work is written so often
inline constexpr char kCudaGraphs[] = "RANGESCOPE_CUDA_GRAPHS";  ///< "node" or "graph"
inline constexpr char kCudaCalls[] =
    "RANGESCOPE_CUDA_CALLS";  ///< functions noted beside launches: "a,b"
/// "off", "stacks": PyTorch's recorder of memory
inline constexpr char kMemory[] = "RANGESCOPE_MEMORY";
/// "off": calls that allocate and free, and events, are not recorded
inline constexpr char kCallDetails[] = "RANGESCOPE_CALL_DETAILS";
inline constexpr char kLaunchRecords[] =
    "RANGESCOPE_LAUNCH_RECORDS";  ///< "callback": launches are noted by callbacks
inline constexpr char kModules[] =
    "RANGESCOPE_MODULES";  ///< "off", or how many levels: modules of PyTorch
inline constexpr char kFunctions[] =
    "RANGESCOPE_FUNCTIONS";                             ///< of Python, by lines "name=pattern"
inline constexpr char kPhases[] = "RANGESCOPE_PHASES";  ///< lines beside those known; "off": none
inline constexpr int kMostFunctions = 100;              ///< lines of each
inline constexpr char kGiveWay[] =
    "RANGESCOPE_GIVE_WAY";  ///< "off": a profiler of the program finds CUPTI taken
inline constexpr char kCuptiShared[] =
    "RANGESCOPE_CUPTI_SHARED";  ///< "on": beside other tools that allow it
inline constexpr char kHardwareTimes[] =
    "RANGESCOPE_HARDWARE_TIMES";                      ///< "on", "off": where kernel times come from
inline constexpr char kCupti[] = "RANGESCOPE_CUPTI";  ///< path of the CUPTI to load
inline constexpr char kLight[] = "RANGESCOPE_LIGHT";  ///< "1": nothing of the GPU is recorded
inline constexpr char kRanks[] = "RANGESCOPE_RANKS";  ///< "0-7,16": the only ranks that record
inline constexpr char kVerbose[] = "RANGESCOPE_VERBOSE";    ///< the library says what it does
inline constexpr char kCounters[] = "RANGESCOPE_COUNTERS";  ///< path of the plan of counters

/// With the id of the process behind it, beside the captures of `attach`: locked (flock) by
/// rangescope while it records; the library takes it away when it has ended. So much it can be told
/// at once, in bytes.
inline constexpr char kAttachLock[] = "attached-";
inline constexpr unsigned kMostSettings = 16 * 1024;

/// Beside the captures: which counters to collect (wire/counter_plan.hpp), and rounds that later
/// runs complete, which begins with kProgressHead and two numbers: ranges that lack rounds, and
/// passes taken in all runs together.
inline constexpr char kPlanFile[] = "counters.plan";
inline constexpr char kProgressFile[] = "counters.progress";
inline constexpr char kProgressHead[] = "rangescope-progress 1 ";

}  // namespace rangescope::wire
