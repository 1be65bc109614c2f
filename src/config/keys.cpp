// The table of keys, and nothing else.
#include <array>

#include "config/schema.hpp"

namespace rangescope::config {
namespace {

constexpr double kHuge = 1e18;

#define NCU "pipeline.ncu.ncu_cli."
#define NSYS "pipeline.nsys."

// clang-format off
constexpr std::array kKeys{
    // what runs
    Key{"workload.command", Type::kList, "the program and its arguments; usually given after --"},
    Key{"workload.cwd", Type::kText, "directory in which the program starts", "--cwd"},
    Key{"workload.env", Type::kMap, "environment variables added for the program, every stage"},
    Key{"workload.warmup", Type::kInt, "unprofiled runs of the program before the first profiled one (fills disk and JIT caches)", "--warmup", {}, 0, 100},
    Key{"device", Type::kText, "GPU whose peaks are used (a file of conf/device), or auto", "--device"},

    // the run directory
    Key{"run.root", Type::kText, "folder that holds run directories", "--runs"},
    Key{"run.dir", Type::kText, "this run's directory; null makes a new one under run.root", "--run-dir"},
    Key{"run.keep", Type::kInt, "run directories kept under run.root; older ones are removed after a successful run; null keeps all", "--keep", {}, 1, 1e6},
    Key{"run.retries", Type::kInt, "further attempts of a stage after a transient failure", "--retries", {}, 0, 20},
    Key{"run.timeout", Type::kDuration, "longest time a stage may run; then its whole process group is ended", "--timeout"},

    Key{"run.repeat", Type::kInt, "runs of the native stage, each a run directory below the whole, for compare and gate", "--repeat", {}, 1, 1000},
    Key{"run.strict", Type::kBool, "exit code 83 where data was lost", "--strict"},
    Key{"run.record_args", Type::kBool, "write the program's arguments as they are: without it, what looks like a secret among them is redacted", "--record-args"},
    Key{"run.job", Type::kText, "name of the parallel job that this process is a rank of; null takes its launcher's", "--job"},
    Key{"run.ranks", Type::kList, "ranks that are profiled; the others run as without rangescope", "--ranks"},
    Key{"run.share", Type::kBool, "let group and others read the run directory, as the umask allows (0755 and 0644 instead of 0700 and 0600)", "--share"},

    // what counts, in every stage and in the report
    Key{"ranges.include", Type::kExpressions, "only these ranges and what is in them: decode, decode*, LLM@*, 'decode > layer_0', or ncu's grammar", "--include"},
    Key{"ranges.exclude", Type::kExpressions, "not these ranges; wins over include", "--exclude"},
    Key{"kernels.include", Type::kList, "only kernels of this name, or regex:PATTERN", "--kernel"},
    Key{"kernels.exclude", Type::kList, "not these kernels; wins over include", "--exclude-kernel"},

    // its report
    Key{"report.format", Type::kText, "format of the report that is shown", "--format"},
    Key{"report.to", Type::kText, "where it is written; - is standard output", "--to"},
    Key{"report.color", Type::kChoice, "colour of the table", "--color", "auto|always|never"},
    Key{"report.width", Type::kInt, "columns of the table; 0: no limit", "--width", {}, 0, 1e9},
    Key{"report.depth", Type::kInt, "deepest level of ranges that is shown; 0: all", "--depth", {}, 0, 1e9},
    Key{"report.sort", Type::kText, "value by which regions are sorted within their parent", "--sort"},
    Key{"report.top", Type::kInt, "only the so many largest regions; 0: all", "--top", {}, 0, 1e9},
    Key{"report.per_rank", Type::kBool, "also a table of each rank of a parallel job", "--per-rank"},
    Key{"report.columns", Type::kList, "values that the table shows", "--columns"},
    Key{"report.top_kernels", Type::kInt, "kernels listed below the table; 0: none", "--top-kernels", {}, 0, 1e9},
    Key{"report.explain", Type::kBool, "say what each column means and why a region is bound as it is", "--explain"},
    Key{"report.bucket_by", Type::kChoice, "occurrences with different NVTX payloads are regions of their own", "--bucket-by", "payload"},
    Key{"report.flops", Type::kList, "useful FLOPs of an occurrence: range=FLOP", "--flops"},
    Key{"report.aggregate", Type::kBool, "regions over all processes", "--aggregate"},
    Key{"report.per_process", Type::kBool, "regions of each process", "--per-process"},
    Key{"report.per_thread", Type::kBool, "regions of each thread", "--per-thread"},
    Key{"report.push_pop_scope", Type::kChoice, "which ranges a kernel belongs to whose thread has none open", "--push-pop-scope", "thread|process|auto"},
    Key{"report.domains", Type::kChoice, "each domain its own tree, or one stack over all", "--domains", "separate|nested"},
    Key{"report.threads", Type::kInt, "workers that read and analyze; 0: as many as help", "--threads", {}, 0, 1024},
    Key{"report.all", Type::kBool, "every region and value in the table", "--all"},
    Key{"report.raw_cells", Type::kBool, "CSV cells as they are, also those that a spreadsheet takes for formulas", "--raw-cells"},
    Key{"report.fold_names", Type::kChoice, "which range names are one: auto cuts what PyTorch's emit_nvtx appends, numbers makes 'iter 17' 'iter #'", "--fold-names", "auto|numbers|off"},

    // stages
    Key{"pipeline.native.enable", Type::kBool, "record NVTX and GPU work with rangescope's own injected library", "--native"},
#define NATIVE "pipeline.native."
    Key{NATIVE "metrics", Type::kList, "metrics and groups that are counted per range; with ncu on, it measures those that are left", "--metrics"},
    Key{NATIVE "per", Type::kChoice, "counters of each range, each kernel in it, or both", "--per", "range|kernel|both"},
    Key{NATIVE "rounds", Type::kInt, "complete sets for each range", "--rounds", {}, 1, 1000},
    Key{NATIVE "chip", Type::kText, "chip to plan the passes for; null: that of the first GPU", "--chip"},
    Key{NATIVE "passes", Type::kChoice, "where passes come from: occurrences of one run, or the program again", "--passes", "occurrence|relaunch|auto"},
    Key{NATIVE "flush_caches", Type::kBool, "empty the caches before each measured occurrence or kernel", "--flush-caches"},
    Key{NATIVE "arm_wait", Type::kInt, "milliseconds that a range which lacks a set waits for the hardware", "--arm-wait", {}, 0, 60000},
    Key{NATIVE "skip_first", Type::kInt, "occurrences left alone at the start; -1: until their duration has settled", "--skip-first", {}, -1, 1e6},
    Key{NATIVE "trace_first", Type::kInt, "occurrences that the timeline sees before counters begin", "--trace-first", {}, 0, 1e6},
    Key{NATIVE "max_capture_size", Type::kSize, "largest capture of one process", "--max-capture-size"},
    Key{NATIVE "cuda_graphs", Type::kChoice, "CUDA graphs: each kernel, or each launch as a whole", "--cuda-graphs", "node|graph"},
    Key{NATIVE "flush_interval", Type::kDuration, "how often GPU activity is written out", "--flush-interval"},
    Key{NATIVE "mpi", Type::kBool, "MPI calls as ranges, where the launcher is Open MPI's", "--mpi"},
    Key{NATIVE "chain_injection", Type::kBool, "load the injection library that the environment names as well", "--chain-injection"},
    Key{NATIVE "sample", Type::kText, "sample the GPU's counters and energy while the program runs: auto, off, or every so often (100us)", "--sample"},
    Key{NATIVE "sample_metrics", Type::kList, "counters to sample instead of the shipped ones", "--sample-metrics"},
#undef NATIVE
    Key{"pipeline.nsys.enable", Type::kBool, "record with Nsight Systems", "--nsys"},
    Key{"pipeline.ncu.enable", Type::kBool, "measure with Nsight Compute", "--ncu"},
    Key{"pipeline.probe", Type::kBool, "allow a short native look at the program where the ranges' kind is not certain", "--probe"},

    Key{NSYS "path", Type::kText, "the nsys executable; null looks for it"},
    Key{NSYS "trace", Type::kList, "APIs that nsys traces (--trace)", "--nsys-trace"},
    Key{NSYS "sample", Type::kChoice, "CPU sampling (--sample)", "--nsys-sample", "none|cpu|process-tree|system-wide"},
    Key{NSYS "cpuctxsw", Type::kChoice, "CPU context switches (--cpuctxsw)", {}, "none|process-tree|system-wide"},
    Key{NSYS "capture_range", Type::kChoice, "what starts and ends the recording (--capture-range)", "--capture-range", "none|nvtx|cudaProfilerApi|hotkey"},
    Key{NSYS "nvtx_capture", Type::kText, "range that gates the recording, in ncu's order: range or domain@range", "--nvtx-capture"},
    Key{NSYS "capture_range_end", Type::kText, "none, stop, stop-shutdown, repeat[:N], repeat-shutdown:N (--capture-range-end)", "--capture-range-end"},
    Key{NSYS "gating_nvtx", Type::kBool, "record only while nvtx_capture is open (sets capture_range to nvtx)", "--nsys-gating"},
    Key{NSYS "nvtx_domain_include", Type::kList, "only these NVTX domains; 'default' is the default one", "--nvtx-domain-include"},
    Key{NSYS "nvtx_domain_exclude", Type::kList, "all NVTX domains but these", "--nvtx-domain-exclude"},
    Key{NSYS "cuda_graph_trace", Type::kText, "graph, node, and where nsys knows it graph:host-only or graph:host-and-device", "--cuda-graph-trace"},
    Key{NSYS "cuda_memory_usage", Type::kBool, "record GPU memory use (--cuda-memory-usage)"},
    Key{NSYS "kill", Type::kText, "signal to the program when the recording ends: none, sigterm, sigkill or a number (--kill)"},
    Key{NSYS "duration", Type::kDuration, "longest recording (--duration)"},
    Key{NSYS "delay", Type::kDuration, "recording begins this much later (--delay)"},
    Key{NSYS "wait", Type::kChoice, "wait for the program or for all its re-parented children (--wait)", {}, "primary|all"},
    Key{NSYS "stop_on_exit", Type::kBool, "end the recording with the program (--stop-on-exit)"},
    Key{NSYS "trace_fork_before_exec", Type::kBool, "trace children between fork and exec (--trace-fork-before-exec)"},
    Key{NSYS "gpu_metrics_device", Type::kText, "GPUs whose metrics are sampled (--gpu-metrics-device, --gpu-metrics-devices)"},
    Key{NSYS "gpu_metrics_set", Type::kText, "metric set of the sampling (--gpu-metrics-set)"},
    Key{NSYS "gpu_metrics_frequency", Type::kInt, "samples a second (--gpu-metrics-frequency)", {}, {}, 10, 200000},
    Key{NSYS "env", Type::kMap, "environment variables of the program under nsys only"},
    Key{NSYS "extra_args", Type::kList, "further arguments of nsys profile, as they are; checked against its help", "--nsys-args"},

    Key{"pipeline.ncu.path", Type::kText, "the ncu executable; null looks for it"},
    Key{"pipeline.ncu.gating_nvtx", Type::kBool, "measure only inside ranges.include; false measures kernels wherever they are", "--ncu-gating"},
    Key{"pipeline.ncu.top_n", Type::kInt, "kernels chosen from the nsys or native stage by GPU time; null or 0 chooses none", "--ncu-top-kernels", {}, 0, 10000},
    Key{"pipeline.ncu.env", Type::kMap, "environment variables of the program under ncu only"},

    Key{NCU "replay_mode", Type::kChoice, "how passes are collected (--replay-mode); auto tries native, range, app-range, kernel", "--replay-mode", "auto|kernel|application|range|app-range"},
    Key{NCU "nvtx.include", Type::kExpressions, "alias of ranges.include (--include): it narrows every stage", "--nvtx-include"},
    Key{NCU "nvtx.exclude", Type::kExpressions, "alias of ranges.exclude (--exclude)", "--nvtx-exclude"},
    Key{NCU "set", Type::kText, "section set (--set); checked against --list-sets", "--set"},
    Key{NCU "sections", Type::kList, "sections (--section each); checked against --list-sections", "--section"},
    Key{NCU "metrics", Type::kList, "metrics beside the sections, of ncu alone (--metrics)", "--ncu-metrics"},
    Key{NCU "disable_extra_suffixes", Type::kBool, "only the suffixes that were asked for (--disable-extra-suffixes)"},
    Key{NCU "kernel_name", Type::kText, "alias of kernels.include (--kernel), as ncu's --kernel-name has it: one exact name or regex:...", "--kernel-name"},
    Key{NCU "kernel_name_base", Type::kChoice, "which name kernel_name is matched with (--kernel-name-base)", "--kernel-name-base", "function|demangled|mangled"},
    Key{NCU "kernel_id", Type::kText, "context:stream:[operator:]name:invocation (--kernel-id)", "--kernel-id"},
    Key{NCU "launch_skip", Type::kInt, "matching launches skipped first (--launch-skip)", "--launch-skip", {}, 0, kHuge},
    Key{NCU "launch_skip_before_match", Type::kInt, "launches of any kind skipped first (--launch-skip-before-match)", "--launch-skip-before-match", {}, 0, kHuge},
    Key{NCU "launch_count", Type::kInt, "results in all, not per kernel (--launch-count)", "--launch-count", {}, 1, kHuge},
    Key{NCU "filter_mode", Type::kChoice, "what launch_skip and launch_count count (--filter-mode)", "--filter-mode", "global|per-gpu|per-launch-config"},
    Key{NCU "devices", Type::kList, "CUDA devices to measure on (--devices)", "--devices"},
    Key{NCU "kill", Type::kBool, "end the program after launch_count results (--kill)"},
    Key{NCU "target_processes", Type::kChoice, "which processes (--target-processes)", "--target-processes", "all|application-only"},
    Key{NCU "target_processes_filter", Type::kList, "processes by name (--target-processes-filter)", "--target-processes-filter"},
    Key{NCU "app_replay_match", Type::kChoice, "how kernels are matched over relaunches (--app-replay-match)", "--app-replay-match", "name|grid|all"},
    Key{NCU "app_replay_mode", Type::kChoice, "what happens to kernels that do not match (--app-replay-mode)", "--app-replay-mode", "strict|balanced|relaxed"},
    Key{NCU "app_replay_buffer", Type::kChoice, "where passes wait for each other (--app-replay-buffer)", {}, "file|memory"},
    Key{NCU "range_filter", Type::kText, "instances of ranges: [yes|no]:[start/stop]:[nvtx] (--range-filter)", "--range-filter"},
    Key{NCU "range_replay_options", Type::kList, "details of range replay (--range-replay-options)", {}, "enable-greedy-sync|disable-host-restore|disable-host-save|disable-dependent-kernel-detection"},
    Key{NCU "clock_control", Type::kChoice, "GPU clocks while measuring (--clock-control); always passed", "--clock-control", "base|none|boost|force-boost"},
    Key{NCU "cache_control", Type::kChoice, "flush GPU caches before each replay, or not (--cache-control); always passed", "--cache-control", "all|none"},
    Key{NCU "pipeline_boost_state", Type::kChoice, "tensor core boost state (--pipeline-boost-state)", {}, "stable|dynamic"},
    Key{NCU "graph_profiling", Type::kChoice, "CUDA graphs node by node or as a whole (--graph-profiling)", "--graph-profiling", "node|graph"},
    Key{NCU "push_pop_scope", Type::kChoice, "whose push/pop ranges count: the launching thread's or the process's (--nvtx-push-pop-scope)", "--nvtx-push-pop-scope", "thread|process"},
    Key{NCU "profile_from_start", Type::kBool, "false waits for cudaProfilerStart (--profile-from-start)", "--profile-from-start"},
    Key{NCU "check_exit_code", Type::kBool, "the program's exit code counts (--check-exit-code)"},
    Key{NCU "call_stack", Type::kBool, "CPU call stacks (--call-stack)"},
    Key{NCU "apply_rules", Type::kBool, "apply analysis rules (--apply-rules)"},
    Key{NCU "rules", Type::kList, "only these rules (--rule each)"},
    Key{NCU "section_folders", Type::kList, "folders searched for section files (--section-folder each)"},
    Key{NCU "import_source", Type::kBool, "put CUDA sources into the report (--import-source)", "--import-source"},
    Key{NCU "source_folders", Type::kList, "where sources are looked for (--source-folders)"},
    Key{NCU "pm_sampling_interval", Type::kInt, "(--pm-sampling-interval)", {}, {}, 0, kHuge},
    Key{NCU "pm_sampling_buffer_size", Type::kInt, "(--pm-sampling-buffer-size)", {}, {}, 0, kHuge},
    Key{NCU "pm_sampling_max_passes", Type::kInt, "(--pm-sampling-max-passes)", {}, {}, 0, kHuge},
    Key{NCU "warp_sampling_interval", Type::kText, "auto, or 0 to 31 (--warp-sampling-interval, before 2023 --sampling-interval)"},
    Key{NCU "warp_sampling_max_passes", Type::kInt, "(--warp-sampling-max-passes)", {}, {}, 1, kHuge},
    Key{NCU "warp_sampling_buffer_size", Type::kInt, "(--warp-sampling-buffer-size)", {}, {}, 1, kHuge},
    Key{NCU "rename_kernels", Type::kBool, "simplify demangled names (--rename-kernels); always passed where it exists"},
    Key{NCU "force_overwrite", Type::kBool, "overwrite an existing report (--force-overwrite)"},
    Key{NCU "export.csv", Type::kBool, "write raw.csv, details.csv and sections_report.txt beside the report"},
    Key{NCU "extra_args", Type::kList, "further arguments of ncu, as they are; checked against its help", "--ncu-args"},

    Key{"vars", Type::kAny, "values of your own, for ${vars.name}"},
};
// clang-format on

#undef NCU
#undef NSYS

}  // namespace

std::span<const Key> keys() {
  return kKeys;
}

}  // namespace rangescope::config
