// The answer: what each region costs. Exporters print what stands here and compute nothing.
//
// A *region* is a node in the tree of range paths of one domain and one kind, either over all
// processes (the aggregate) or of one process or one thread. Parents are inclusive; exclusive
// values are next to them. Every number that a table can show, sort by, compare or gate on is
// listed once, in model/measure.hpp, with tag, unit, source and formula.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/held.hpp"
#include "model/code_place.hpp"
#include "model/cpu.hpp"
#include "model/finding.hpp"
#include "model/gpu.hpp"
#include "model/loss.hpp"
#include "model/memory_use.hpp"
#include "model/range.hpp"
#include "model/ranks.hpp"
#include "model/stall.hpp"
#include "model/verdict.hpp"
#include "model/what_if.hpp"

namespace rangescope::model {

/// Distribution of one value over the occurrences of a region; all 0 when there are none.
struct Spread {
  double min = 0, median = 0, p95 = 0, max = 0, mean = 0,
         stddev = 0;  ///< stddev: sample (n-1), 0 for n < 2
};

inline constexpr Spread kNoSpread{
    kNan, kNan, kNan, kNan, kNan, kNan};  ///< of values that are not known

/// CPU wall time of a region, nanoseconds.
/// Upper bounds of the bins of WallTime::histogram; one more bin holds what is longer. nanoseconds
inline constexpr std::array<std::int64_t, 21> kLengthBounds = {
    1'000,         10'000,         25'000,         50'000,      100'000,       250'000,
    500'000,       1'000'000,      2'500'000,      5'000'000,   10'000'000,    25'000'000,
    50'000'000,    100'000'000,    250'000'000,    500'000'000, 1'000'000'000, 2'500'000'000,
    5'000'000'000, 10'000'000'000, 100'000'000'000};

struct WallTime {
  double inclusive_ns = 0;  ///< sum over occurrences of end - start
  double exclusive_ns = 0;  ///< inclusive minus the inclusive time of the child regions (same tree)
  Spread per_occurrence_ns;
  double share =
      0;  ///< inclusive_ns / duration of the run, 0..1 per thread; more than 1 over several threads
  double profiler_ns = 0;     ///< what measuring added (analyze/time/steady.hpp, recording.hpp): in
                              ///< none of the values above
  double recording_ns = 0;    ///< of it, what recording the ranges added
  std::int64_t unlisted = 0;  ///< occurrences that are in every number here and in no timeline
  /// Median and 95th percentile, of Steady too, are within this share of the exact ones; 0: exact.
  double quantile_error = 0;
  std::vector<std::uint64_t>
      histogram;  ///< occurrences by length (kLengthBounds); empty where it was not asked for
  /// Of the run, while any occurrence was open in any thread: of what is open side by side once.
  /// Over ranks whose digests were merged that of the rank with most. 0: unknown.
  double open_ns = 0;
};

/// What of it adds up over regions and ranks: the one list.
inline constexpr std::array kWallTimes = {&WallTime::inclusive_ns,
                                          &WallTime::exclusive_ns,
                                          &WallTime::profiler_ns,
                                          &WallTime::recording_ns};

/// What remains of a region when the occurrences that warm it up are left out: the first of each
/// thread that took far longer than the rest without more work for the GPU
/// (analyze/time/steady.hpp).
struct Steady {
  std::int64_t occurrences = 0;  ///< that remain
  std::int64_t left_out = 0;     ///< that warmed it up
  double left_out_ns = 0;        ///< their wall time
  double longest_ns = 0;         ///< the longest of them
  double wall_total_ns = 0;      ///< wall time of those that remain
  Spread wall_ns;                ///< of those that remain
  std::optional<double>
      busy_share;  ///< GPU busy time / wall time, of those whose GPU work was recorded
};

/// A region of the aggregate as its processes (or, in one process, its threads) have it.
struct Across {
  bool of_threads = false;  ///< else of processes
  std::int64_t parts = 0;   ///< how many opened the range
  double min_ns = 0, mean_ns = 0,
         max_ns = 0;              ///< time for which each kept it open, in any of its threads
  double imbalance = 0;           ///< max / mean - 1
  std::uint32_t slowest = kNone;  ///< index in Report::processes, or the thread's tid
};

/// One metric of a region or kernel: per occurrence, the value is the median over rounds. Of a
/// sampled one (source "sampled") the value is the mean, `min` and `max` are the interval that
/// holds it (95 %), `rounds` the samples.
struct Metric {
  double value = 0;
  std::string unit;
  double min = 0, max = 0;
  std::int64_t rounds = 0;  ///< complete rounds (all passes) that the value rests on
  std::string source;   ///< "cupti range", "cupti auto range", "ncu kernel replay", "derived: ...",
                        ///< "sampled"
  std::string absent;   ///< not empty: no value, and why
  bool of_all = false;  ///< an amount is that of all occurrences; else of one
};

/// The metric of that name, where it has a value.
[[nodiscard]] inline const Metric* known_metric(const std::map<std::string, Metric>& metrics,
                                                const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() || !found->second.absent.empty() ? nullptr : &found->second;
}

/// One kernel (by demangled name) within a region or the whole run.
struct KernelRow {
  std::string name;  ///< demangled where known
  std::string short_name;
  std::string label;  ///< the short name, with what tells it from other kernels of the run of that
                      ///< short name
  std::int64_t calls = 0;
  double total_ns = 0;  ///< NaN, as the next two, where no time was recorded
  Spread duration_ns;
  double share = 0;         ///< total_ns / kernel_ns of the region (or run), 0..1
  KernelShape shape;        ///< of the most frequent launch configuration
  std::int64_t shapes = 1;  ///< distinct launch configurations
  bool nccl = false;
  std::map<std::string, Metric>
      metrics;                ///< sampled, per call; only in the kernels of the whole run
  base::Held<Stalls> stalls;  ///< where the program counter was sampled

  /// The order of all tables: most time first, by name where equal; those without a time last.
  [[nodiscard]] bool comes_before(const KernelRow& other) const {
    const bool mine = total_ns == total_ns, its = other.total_ns == other.total_ns;
    if (mine != its)
      return mine;
    return mine && total_ns != other.total_ns ? total_ns > other.total_ns : name < other.name;
  }
};

/// Kernels of one kind (conf/kernels): gemm, attention, ...
struct KernelFamily {
  std::string name;
  std::int64_t kernels = 0, calls = 0;  ///< distinct names; executions
  double total_ns = 0, share = 0;       ///< of all kernels of the run, 0..1
};

struct CopyRow {
  CopyKind kind = CopyKind::kUnknown;
  std::int64_t calls = 0;
  double bytes = 0;
  double total_ns = 0;  ///< bytes / total_ns is the mean rate
};

/// GPU work of a region. Sums over all devices unless said otherwise. nanoseconds.
struct GpuWork {
  std::int64_t kernels = 0;            ///< kernel executions launched inside, children included
  std::int64_t exclusive_kernels = 0;  ///< without those launched inside a child region
  std::int64_t inherited_kernels =
      0;  ///< of `kernels`, those launched by a thread that inherited this range
  std::int64_t graph_kernels = 0;  ///< of `kernels`, those run by CUDA graph launches
  std::int64_t graph_launches = 0;
  std::int64_t distinct_kernels = 0;
  double kernel_ns = 0;  ///< sum of kernel durations
  double exclusive_kernel_ns = 0;
  double busy_ns = 0;  ///< union of kernel, copy and set intervals, per device, then summed
  double exclusive_busy_ns = 0;
  double span_ns = 0;  ///< sum over occurrences of last end - first start on the GPU
  double idle_ns = 0;  ///< span_ns - busy_ns within the span
  std::int64_t copies = 0, memsets = 0;
  double copy_ns = 0;
  double copy_bytes = 0;
  double copy_busy_ns = 0;  ///< union of copy intervals, per device, then summed; NaN where unknown
  double overlap_ns = 0;    ///< time in which a copy and a kernel ran at once
  double sync_ns = 0;       ///< CPU time spent waiting for the GPU
  std::int64_t syncs = 0;
  double launch_ns =
      0;  ///< CPU time inside the calls that launched kernels and graphs; NaN where not recorded
  double share = 0;  ///< kernel_ns / kernel_ns of the whole run, 0..1; NaN where one is unknown
  std::int64_t nccl_kernels = 0;
  double nccl_ns = 0;
  bool partial = false;  ///< recorded for part of the run only: the timeline was paused while
                         ///< counters were collected
  std::int64_t recorded_occurrences =
      0;  ///< closed ones that no pause touched; the spreads below are of these
  std::optional<Spread> launch_latency_ns;  ///< kernel start - launch call start; absent where
                                            ///< calls were not recorded
  Spread kernel_ns_per_occurrence;
  Spread busy_ns_per_occurrence;
  std::vector<CopyRow> copies_by_kind;
  std::vector<KernelRow> top_kernels;  ///< by total time, as many as asked for
};

/// What of it adds up over regions, ranks and runs: the one list.
inline constexpr std::array kGpuCounts = {&GpuWork::kernels,
                                          &GpuWork::exclusive_kernels,
                                          &GpuWork::inherited_kernels,
                                          &GpuWork::graph_kernels,
                                          &GpuWork::graph_launches,
                                          &GpuWork::copies,
                                          &GpuWork::memsets,
                                          &GpuWork::syncs,
                                          &GpuWork::nccl_kernels,
                                          &GpuWork::recorded_occurrences};
inline constexpr std::array kGpuTimes = {&GpuWork::kernel_ns,
                                         &GpuWork::exclusive_kernel_ns,
                                         &GpuWork::busy_ns,
                                         &GpuWork::exclusive_busy_ns,
                                         &GpuWork::span_ns,
                                         &GpuWork::idle_ns,
                                         &GpuWork::copy_ns,
                                         &GpuWork::copy_bytes,
                                         &GpuWork::overlap_ns,
                                         &GpuWork::sync_ns,
                                         &GpuWork::launch_ns,
                                         &GpuWork::nccl_ns};

/// What bounds a region or kernel, and the numbers that say so.
struct Bound {
  std::string kind;    ///< "memory", "compute: tensor", "latency", "idle", "balanced", "unknown"
  std::string reason;  ///< the rule with its thresholds and the numbers it used
  std::optional<double> memory = {},
                        compute = {};  ///< shares of the peaks that the rule compared, 0..1
};

/// How much of what the GPU can do was used. Executed FLOPs are measured (padding included); useful
/// FLOPs are what the user says the work needs. For a batch-1 matrix-vector product the two differ
/// eightfold.
struct Utilization {
  double busy_ns = 0;  ///< GPU busy time of one occurrence that `executed` divides by; 0: unknown
  std::optional<double>
      executed;  ///< sum over precisions of FLOP / peak, divided by busy time; 0..1
  std::optional<double>
      useful;  ///< MFU: useful FLOP / (peak of the dominant precision * wall time); 0..1
  std::optional<double> useful_flop;   ///< per occurrence, as the user gave it
  std::optional<double> useful_bytes;  ///< per occurrence: weights and cache of a model, say
  std::optional<double> bandwidth;  ///< MBU: useful bytes / (peak of the memory * wall time); 0..1
  std::optional<double> useful_tokens;  ///< per occurrence, as the user gave it
  double useful_wall_ns =
      0;                ///< wall time of an occurrence that `useful` and `bandwidth` divide by
  std::string formula;  ///< with the numbers put in
};

/// A point in a roofline plot.
struct RooflinePoint {
  std::string level;            ///< "dram", "l2", "l1"
  std::string precision;        ///< "tensor bf16", "fp32", ...
  double flops = 0, bytes = 0;  ///< per occurrence
  double intensity = 0;         ///< FLOP / byte
  double flop_per_s = 0;        ///< achieved over kernel busy time
  double roof_flop_per_s = 0;   ///< attainable at this intensity
  double peak_flop_per_s = 0;   ///< of the precision; with the next one the whole roof. 0: unknown
  double peak_bytes_per_s = 0;  ///< of the memory level
};

struct KernelMetrics {
  std::string name;
  std::uint32_t ordinal = 0;  ///< position within an occurrence
  std::map<std::string, Metric> metrics;
  base::Held<Bound> bound;
};

/// Counters of all results of one kernel in the run, for the table of kernels.
struct KernelCounters {
  std::string name;  ///< as KernelRow::name
  std::map<std::string, Metric>
      metrics;  ///< means over results, weighted by their time; sums are of one result
  std::vector<RooflinePoint> roofline;
  base::Held<Bound> bound;
};

/// Sampled occurrences of a region over time, for plots: at most a few hundred points.
struct OccurrenceSample {
  double at_ns = 0, wall_ns = 0, busy_ns = 0;
};

/// Functions that a region lists.
inline constexpr std::size_t kMostFunctions = 50;

/// A function in the call chains of a region's threads. Nanoseconds of CPU time, estimated from
/// samples.
struct CpuFunction {
  std::string
      name;  ///< "modeling_llama.py:forward" is name and file; "libx.so+0x1a20" without a symbol
  std::string file;    ///< where it is declared; "" where unknown
  std::string module;  ///< path of the file it lies in; "" of Python and of JIT code
  std::uint32_t line = 0;
  bool python = false;
  double self_ns = 0, total_ns = 0;  ///< running itself; with what it called
  double event_loop_ns = 0;     ///< of `self_ns` of own functions: in callbacks of an event loop
  std::uint32_t frame = kNone;  ///< index into CpuProfile::frames, the first of them
  std::uint32_t hot_line =
      0;             ///< of `file`, where most of its own samples of the run are; 0: unknown
  CodePlace caller;  ///< the program's own function that mostly called it
  [[nodiscard]] CodePlace place() const { return {name, file, line}; }
  /// Its function is unknown: `name` is "libx.so+0x1a20", or "[vdso]".
  [[nodiscard]] bool names_its_module() const {
    const bool has_offset = name.find("+0x") != std::string::npos;
    return has_offset || name.starts_with('[');
  }
};

/// A row of the tree of a region's functions. The program's own are rows, and the library function
/// that one calls; what lies below that is its caller's. Functions with equal times are one row.
struct CpuTreeRow {
  std::uint32_t depth = 0;
  std::vector<CodePlace> chain;       ///< from the caller to the called
  double cpu_ns = 0, waiting_ns = 0;  ///< with all that it calls; waiting without idle threads'
};

/// Where threads wait: what for, and in which of the program's own functions, the innermost.
struct CpuWaitRow {
  WaitKind kind = WaitKind::kOther;
  CodePlace place;
  bool own = false;         ///< `place` is of the program's own code, not of a library
  bool idle = false;        ///< nothing to do: accept, the poll of an event loop, a queue, join
  bool event_loop = false;  ///< while an event loop could run nothing else
  bool to_the_end = false;  ///< a wait that lasted until the program ended
  std::int64_t count = 0, threads = 0;
  double total_ns = 0;    ///< added up over threads
  double blocked_ns = 0;  ///< in which at least one thread waited there
  CodePlace meanwhile;    ///< what another thread ran inside the same function: it has the lock
  /// Where another thread waited inside the same function for most of `total_ns`, and what for: it
  /// has the lock. `meanwhile` is unknown then.
  CodePlace holder_waits;
  WaitKind holder_waits_for = WaitKind::kOther;
  CodePlace holds_up;  ///< of the holder's own row: where the others wait for its lock
};

/// A part of where the wall time of a region's threads went. Nanoseconds.
struct CpuPart {
  std::string kind;  ///< "python", "native", "cuda", "waiting"
  std::string name;  ///< library, kind of CUDA call, what was waited for; "" of Python
  double ns = 0;
  double gpu_idle_ns =
      0;  ///< of `ns`, while the process had no work on a GPU; NaN where none was recorded
};

/// Samples of one call chain outside child regions.
struct CpuStackCount {
  std::uint32_t stack = kNone;  ///< index into CpuProfile::stacks
  std::int64_t samples = 0;
};

/// An event of the CPU in a region, over all occurrences.
struct CpuCounterSum {
  std::string name;
  std::int64_t records = 0;
  double count = 0,
         deviation =
             0;  ///< deviation: standard, of sampling alone; 0 where each event was recorded
};

/// Who had what a region's threads waited for. Nanoseconds of waiting.
struct CpuHolder {
  std::string kind;    ///< "GIL", "lock"
  std::string thread;  ///< name and number
  std::string range;   ///< that it was in mostly; "" outside ranges
  std::string doing;   ///< its function with most samples meanwhile; "" where none was taken
  double ns = 0;
};

/// What the threads of a region did in its wall time: the four parts add up to it.
struct CpuWork {
  std::int64_t samples = 0;
  double interval_ns = 0;
  CpuPart python, native, cuda, waiting;
  /// What the four add up to: the wall time; while a start/end range is open, and where an
  /// occurrence never ended, what was recorded where that is more.
  [[nodiscard]] double whole_ns() const { return cpu_ns() + waiting.ns; }
  [[nodiscard]] double cpu_ns() const { return python.ns + native.ns + cuda.ns; }
  std::vector<CpuPart> parts;          ///< of those, by library and kind, the largest first
  std::vector<CpuFunction> functions;  ///< at most fifty, by their own time
  std::vector<CpuFunction> callers;    ///< at most fifty, by time with what they called
  /// Functions of the program's own files, by `self_ns`: with the libraries that they called.
  std::vector<CpuFunction> own_functions;
  /// Depth first; empty in rows of several regions.
  std::vector<CpuTreeRow> tree;
  std::vector<CpuStackCount>
      stacks;  ///< of the aggregate, outside child regions, once over all domains
  std::vector<CpuCounterSum> counters;
  std::vector<CpuHolder> holders;  ///< of locks and the GIL, the longest first
  /// Of threads of a pool (OpenMP, BLAS) whose creator was in the region: CPU time, no part of the
  /// wall time.
  std::int64_t pool_samples = 0;
  double pool_ns = 0;
};

struct Region {
  std::uint32_t id = 0;          ///< index in Report::regions
  std::uint32_t parent = kNone;  ///< index of the parent region, kNone at the top
  std::uint32_t depth = 0;
  std::vector<std::string> path;  ///< names from the outermost range of its domain to this one
  std::string domain;             ///< "" is the default domain
  RangeKind kind = RangeKind::kPushPop;
  bool module = false;                   ///< as in Range: its wall time is from launch to launch
  std::optional<std::uint32_t> process;  ///< index in Report::processes; absent in the aggregate
  std::optional<std::uint32_t> thread;   ///< tid when the report is per thread
  /// Known from CPU samples alone: its calls are not counted, `occurrences` is at least how many.
  [[nodiscard]] bool sampled() const { return module && std::isnan(wall.per_occurrence_ns.median); }
  std::int64_t occurrences = 0;             ///< closed ones; only they enter the statistics
  std::int64_t unclosed = 0;                ///< seen beginning, never ending
  std::int64_t threads = 0, processes = 0;  ///< how many of each opened it
  WallTime wall;
  std::optional<Steady> steady;  ///< absent without closed occurrences
  base::Held<Across>
      across;  ///< of the aggregate, where several processes or threads opened the range
  base::Held<OverRanks> ranks;  ///< of the aggregate, where several ranks of a job were recorded
  base::Held<Communication>
      communication;        ///< joined calls of NCCL and MPI inside, of a job of several ranks
  base::Held<GpuWork> gpu;  ///< absent where no GPU work was recorded at all
  base::Held<CpuWork> cpu;  ///< absent where the CPU was not sampled; open occurrences are in it
  base::Held<RegionMemory> memory;  ///< absent where no allocator was recorded
  /// Absent where no call of CUDA for memory was recorded.
  base::Held<RegionCudaMemory> cuda_memory;
  std::map<std::string, Metric> metrics;
  std::vector<KernelMetrics> kernels;  ///< counters per kernel, when they were collected
  std::vector<RooflinePoint> roofline;
  base::Held<Bound> bound;
  base::Held<Utilization> utilization;
  std::vector<OccurrenceSample> samples;
  std::vector<std::uint32_t>
      results;  ///< measurements of the session that were taken while it was open
  std::vector<std::string> notes;
};

struct ReportProcess {
  std::uint32_t pid = 0, parent_pid = 0;
  std::string name;
  double start_ns = 0, end_ns = 0;  ///< relative to the begin of the run
  std::int64_t ranges = 0, kernels = 0;
  std::optional<std::uint32_t> rank;  ///< of a parallel job, as the process's environment says
  double range_own_ns = 0, range_pair_ns = 0;  ///< as in Process
};

/// What the program and the children that it waited for used, as the operating system says.
struct ProcessUsage {
  double user_ns = 0, system_ns = 0;
  std::optional<double> peak_rss_bytes;  ///< of the largest of these processes
  /// The CPUs that it could run on, and what others kept busy of them: neither these processes nor
  /// rangescope.
  struct Machine {
    int cpus = 0;
    double busy_with_others = 0;  ///< number of CPUs, the mean over the run
  };
  std::optional<Machine> machine;
  [[nodiscard]] double cpu_ns() const { return user_ns + system_ns; }
};

/// The run itself: what was run, when, by what, and how it ended. Fields are empty where the input
/// does not say.
struct RunInfo {
  std::string id;    ///< name of the run directory or of the input file
  std::string tool;  ///< "rangescope 0.1.0"
  std::vector<std::string> command;
  std::string cwd;
  std::int64_t start_unix_ns = 0;
  double duration_ns = 0;  ///< span of the recording
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::optional<ProcessUsage> usage;
  [[nodiscard]] std::optional<double> cpus_used() const {
    if (!usage || duration_ns <= 0)
      return std::nullopt;
    return usage->cpu_ns() / duration_ns;
  }
  std::optional<std::uint32_t> attached_pid;  ///< a window of this process, which ran already
  double attached_after_ns = 0;               ///< for so long, when the window began
  struct Window {
    std::uint32_t number = 0;
    double after_ns = 0, duration_ns = 0;  ///< since the program's start
  };
  std::vector<Window> windows;  ///< what of the program was recorded, where it was not all
  std::string host;
  std::vector<std::string> sources;  ///< "native: rangescope 0.1.0, native-trace 1"
  std::map<std::string, std::string>
      environment;  ///< allow-listed: cpu, os, gpu, driver, cuda, git commit ...
};

/// All calls of one operator of a framework (or of a CUDA function inside one), as PyTorch's
/// key_averages() sums them.
struct OperatorRow {
  std::string name;
  std::string shapes;  ///< of its inputs, where rows are by name and shapes
  std::int64_t calls = 0;
  double cpu_ns = 0;            ///< inclusive
  double exclusive_cpu_ns = 0;  ///< without operators and CUDA functions inside
  double gpu_ns =
      0;  ///< durations of kernels, copies and sets launched inside; NaN where none were recorded
  double exclusive_gpu_ns = 0;  ///< without those launched inside other operators
};

/// Where the whole of a sampled metric went: the four parts add up to `total`.
struct SampledSum {
  std::string metric, unit;
  bool share = false;    ///< values are nanoseconds at full load
  double total = 0;      ///< over all samples of the device
  double in_ranges = 0;  ///< while GPU work of ranges ran
  double outside = 0;    ///< while GPU work ran that lies outside every range
  double idle = 0;       ///< while nothing of ours ran
};

/// One sampler of one device, and how it was joined to the timeline.
struct SampledDevice {
  std::string source, uuid, name;
  double interval_ns = 0;
  std::int64_t samples = 0;
  double sampled_ns = 0;  ///< sum of the samples' lengths
  double gaps_ns = 0;     ///< between them
  double busy_ns = 0;     ///< of `sampled_ns`: work of ours ran
  double other_ns = 0;    ///< of `sampled_ns`: the device was active while nothing of ours ran
  std::string clock;      ///< how its clock was brought onto the session's
  std::uint32_t stream = kNone;  ///< index in Session::samples
  std::int64_t offset_ns = 0;    ///< that brings its samples onto the session's clock
  std::vector<SampledSum> sums;
};

/// A metric that a table shows where no columns were asked for.
struct MetricColumn {
  std::string name, title;
};

/// A row of the table over all processes: one region, or siblings whose names differ by a number
/// only, put together.
struct TableRow {
  std::uint32_t parent = kNone;  ///< index in Report::rows
  std::uint32_t depth = 0;
  std::vector<std::uint32_t>
      members;                ///< indexes in Report::regions: one, or all that were put together
  std::int64_t siblings = 1;  ///< names that were put together, under one parent
  base::Held<Region>
      merged;  ///< sums over the members and spreads of their occurrences, where several
  /// It has one child, the next row, which has the same numbers (analyze/chains.hpp): for people
  /// both are one row.
  bool joins_child = false;
};

/// The time of the run in which no range was open, in any thread.
struct Outside {
  double wall_ns = 0;
  double before_ns = 0;    ///< until the first range began
  double between_ns = 0;   ///< after it, until the last one ended
  double after_ns = 0;     ///< after that
  double profiler_ns = 0;  ///< counters were programmed, or ranges recorded: in none of the others
  double late_ns = 0;      ///< of wall_ns: GPUs worked on what was launched while a range was open
};

struct Report {
  RunInfo run;
  std::vector<ReportProcess> processes;
  std::vector<ReportProcess> other_processes;  ///< as Session's
  std::vector<Rank>
      ranks;  ///< of a parallel job, ascending; empty where nothing says which is which
  std::vector<Collective> collectives;  ///< by total waiting, most first
  std::vector<PointToPoint> messages;   ///< so too
  std::vector<RankActivity> activity;   ///< one a rank, over the run from its begin to its end
  std::vector<Device>
      devices;  ///< that the program used; their strings are in the lists below, by index
  std::vector<std::string> device_names, device_uuids;
  bool kernels_chosen =
      false;  ///< kernels that were not asked for are left out of every count and time of them
  std::vector<Region>
      regions;  ///< depth first, children after parents; the aggregate first, then scopes
  std::vector<TableRow> rows;        ///< the aggregate as a table shows it, depth first
  std::optional<Outside> outside;    ///< absent without a timeline of ranges
  std::vector<Verdict> verdict;      ///< at most five, worst first
  base::Held<WhatIf> what_if;        ///< absent where nothing was supposed
  base::Held<GpuWork> total;         ///< the whole run
  base::Held<GpuWork> unattributed;  ///< GPU work launched outside every range
  std::vector<KernelRow> kernels;    ///< over the whole run, by total time
  std::vector<KernelFamily>
      families;  ///< the same by kind, by total time; empty where no time is known
  std::vector<KernelCounters>
      kernel_counters;  ///< of those that counters were collected for, in the same order
  /// Counters of kernels, graphs and ranges of the profiler that were measured outside every NVTX
  /// range, in launch order.
  std::vector<KernelMetrics> unattributed_results;
  std::vector<OperatorRow> operators;  ///< by name; the longest on the GPU, else on the CPU, first
  std::vector<OperatorRow>
      operators_by_shape;  ///< by name and shapes; empty where no shapes were recorded
  base::Held<CpuWork>
      cpu_outside;  ///< of threads outside every range, and of those without ranges their samples
  std::vector<DeviceMemory> memory;  ///< by process and device, of recorded allocators
  /// By process, device and kind.
  std::vector<CudaMemory> cuda_memory;
  std::vector<SampledDevice> sampled;  ///< devices that were sampled while the program ran
  std::vector<MetricColumn>
      metric_columns;  ///< the most telling of the metrics that were asked for, best first
  std::vector<Loss> losses;
  std::vector<CpuWaitRow> waits;  ///< of all threads, those that delay work first
  std::vector<Finding> findings;  ///< the doctor's, when a capture was empty or partial
  std::vector<std::string> notes;
};

}  // namespace rangescope::model
