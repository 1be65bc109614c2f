// Every kind of loss: what `rangescope help losses` prints, and docs/manual/losses.md holds. A kind that is not listed
// here does not compile.
//
// Information leaves every number as it is. A warning or an error makes `--strict` fail; with an error, numbers of the
// report are known to be too small.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rangescope::model {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };
[[nodiscard]] constexpr std::string_view severity_name(Severity severity) {
  constexpr std::string_view kNames[] = {"info", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

/// Where it was lost; the chapters of the page.
enum class LossArea : std::uint8_t { kProgram, kCapture, kGpu, kCounters, kFile, kNsys, kNcu, kAnalysis, kStage };

struct LossEntry {
  std::string_view id;  ///< stable, lower_snake_case
  Severity severity;
  LossArea area;
  std::string_view meaning;
  std::string_view cure;  ///< imperative; empty where nothing can be done
};

namespace losses {
using enum Severity;
using enum LossArea;
inline constexpr auto kTable = std::to_array<LossEntry>({
    {"pop_without_push", kWarning, kProgram, "A pop on a thread that has no range open in that domain.",
     "Balance push and pop; scoped ranges (nvtx3::scoped_range, with torch.cuda.nvtx.range) cannot be unbalanced."},
    {"unbalanced_ranges", kWarning, kProgram, "Ranges that are pushed and never popped nest ever deeper.",
     "Pop the named range where its work ends."},
    {"too_deep", kWarning, kProgram, "A push nested deeper than 1,048,576 ranges.", "Pop what is pushed."},
    {"cut_name", kInfo, kProgram, "A range name longer than 256 KiB was cut there.", "Use shorter names."},
    {"too_many_domains", kWarning, kProgram, "NVTX domains beyond 4,096 stand in the default domain.",
     "Create each domain once."},
    {"abandoned_call", kWarning, kProgram,
     "A signal handler left an NVTX call for good (siglongjmp); a push that it interrupted is not recorded.",
     "Do not jump out of signal handlers."},
    {"inherited_pop", kInfo, kProgram, "A forked child popped a range that its parent had pushed.", ""},
    {"inherited_end", kInfo, kProgram, "A forked child ended a range that its parent had started.", ""},
    {"unknown_end", kWarning, kProgram, "The end of a start/end range that never started.",
     "End the id that the start gave."},
    {"unclosed_range", kInfo, kProgram,
     "A range had not ended when recording stopped; it is there, with what ran inside, but not in the statistics.",
     "End the range, or record until it ends."},
    {"crossing_range", kWarning, kProgram, "Push/pop ranges of one thread overlap without nesting.",
     "Use start/end ranges for what does not nest."},

    {"size_limit", kError, kCapture, "Events beyond the capture size that was allowed.", "Raise --max-capture-size."},
    {"disk_full", kError, kCapture, "Events that the full file system did not take.", "Free space, or use --output."},
    {"file_size_limit", kError, kCapture, "Events beyond the program's own limit on file size.",
     "Raise it: ulimit -f unlimited."},
    {"no_memory", kError, kCapture, "Events for which no memory could be mapped.",
     "Raise ulimit -v, or vm.max_map_count."},
    {"capture_unreachable", kError, kCapture, "Events of a process that could not open its capture file.",
     "Raise ulimit -n; let the program's user write into the run directory."},
    {"no_capture_file", kError, kCapture, "A process loaded the library and could make no file.",
     "Raise ulimit -n; let the program's user write into the run directory."},
    {"capture_io", kError, kCapture, "Events lost to errors of the capture file.", "Use another disk: --output."},
    {"reentrant_event", kWarning, kCapture, "A signal handler called NVTX while a hook of its thread was running.", ""},
    {"dropped_events", kError, kCapture, "Events dropped for a reason that this version does not know.",
     "Use one version of rangescope for the library and the command line."},
    {"truncated_header", kWarning, kCapture, "A capture ends within its header.", "Copy the file whole."},
    {"torn_tail", kWarning, kCapture, "A file ends within what was being written; the rest was read.",
     "Copy the file whole; let the program end by itself."},
    {"damaged_pages", kError, kCapture, "4 KiB pages of a capture make no sense and were skipped.",
     "Copy the file again."},
    {"missing_chunks", kError, kCapture, "A stretch of a thread's events is missing.", "Copy the file again."},
    {"damaged_records", kError, kCapture, "Records contradict themselves and were skipped.", "Copy the file again."},
    {"unknown_records", kWarning, kCapture, "Records of kinds that this version does not know.",
     "Read the capture with the version that wrote it."},
    {"guessed_end", kWarning, kCapture,
     "Ranges that ended while events were dropped seem to end when recording resumed.",
     "Cure what dropped the events."},
    {"unreadable_captures", kError, kCapture, "Capture files that could not be opened, or are none.",
     "Check the permissions of the run directory."},

    {"gpu_unavailable", kError, kGpu, "No GPU activity was recorded at all; the detail says why.",
     "Ask rangescope doctor."},
    {"gpu_partial", kWarning, kGpu, "One kind of GPU activity could not be recorded.", "Ask rangescope doctor."},
    {"dropped_gpu_records", kWarning, kGpu, "Records for which CUPTI had no buffer.",
     "Write out oftener: --flush-interval."},
    {"unfinished_gpu_work", kWarning, kGpu, "GPU work that had not ended when the process did.",
     "Synchronize before the program ends."},
    {"gpu_capture_size", kWarning, kGpu, "GPU records beyond the capture size that was allowed.",
     "Raise --max-capture-size."},
    {"gpu_write_failed", kWarning, kGpu, "GPU records that the file system did not take.",
     "Free space, or use --output."},
    {"cupti_failed", kWarning, kGpu, "CUPTI gave up during the run.", "Ask rangescope doctor."},
    {"gpu_loss", kWarning, kGpu, "GPU records lost for a reason that this version does not know.",
     "Use one version of rangescope for the library and the command line."},
    {"gpu_stream_not_closed", kWarning, kGpu,
     "The process ended without closing its GPU stream; its last GPU work may be missing.",
     "Let the program end by itself, or write out oftener: --flush-interval."},
    {"bad_gpu_records", kWarning, kGpu, "GPU records contradict themselves, or what was defined before.",
     "Copy the file again."},
    {"unreadable_gpu_stream", kError, kGpu, "A GPU stream could not be read.", "Copy the file again."},
    {"gpu_work_without_call", kWarning, kGpu,
     "Kernels or copies whose launching call was not recorded stand outside every range.", ""},
    {"gpu_timeline_paused", kInfo, kGpu,
     "Kernels and copies were not recorded while counters were collected; GPU numbers are of the rest of the run.",
     "Record the timeline in a run without --metrics."},
    {"sample_clock", kWarning, kGpu,
     "The clock of samples could not be brought onto the timeline to better than the sum says.", ""},
    {"sample_gaps", kWarning, kGpu, "Samples are missing between others; sums are of those that are there.",
     "Sample less often: --sample 1ms."},
    {"other_gpu_activity", kWarning, kGpu, "The device was active while nothing of the program ran.",
     "Profile on a GPU that nobody else uses."},
    {"samples_overflow", kWarning, kGpu, "The device took samples faster than they were read.",
     "Sample less often: --sample 1ms."},
    {"sampling_ended", kWarning, kGpu, "Sampling ended before the program did.", ""},
    {"samples_merged", kInfo, kGpu, "Samples were put together so that the file stays bounded.", ""},
    {"not_sampled", kInfo, kGpu, "A device was not sampled.", "The detail says why and what to do."},
    {"torn_samples", kWarning, kGpu, "A file of samples ends within a block.", ""},
    {"damaged_samples", kWarning, kGpu, "Blocks of a file of samples are damaged and were skipped.", ""},
    {"unreadable_samples", kError, kGpu, "A file of samples could not be read.", ""},

    {"counters_graph", kWarning, kCounters, "CUPTI cannot measure the kernels of a CUDA graph one by one.",
     "Measure the range: --per range."},
    {"counters_incomplete", kWarning, kCounters, "A range did not come often enough for one complete set of counters.",
     "Use --passes relaunch, or fewer metrics."},
    {"counters_gave_up", kInfo, kCounters, "A range stopped coming; no more occurrences were waited for.", ""},
    {"counters_waited", kInfo, kCounters, "The program waited until the hardware was programmed.", "Set --arm-wait 0."},
    {"counters_discarded", kInfo, kCounters,
     "Measured occurrences launched other kernels than the rest of their round.",
     "Measure ranges that launch the same kernels each time."},
    {"counters_varied", kInfo, kCounters, "Measured occurrences launched the same kernels in other configurations.",
     "Tell them apart: --bucket-by payload."},
    {"counters_damaged", kWarning, kCounters,
     "Sets of values are cut, or of ranges or metrics that the capture does not name.", "Copy the file again."},
    {"counters_failed", kWarning, kCounters, "No counters were collected; the detail says why.",
     "Ask rangescope doctor."},
    {"relaunch_unreadable", kWarning, kCounters, "What a later run measured could not be read.", "Run again."},

    {"damaged_block", kError, kFile, "A part of the file contradicts itself; what follows was not read.",
     "Copy the file again."},
    {"damaged_table", kError, kFile, "A table of the file is damaged; its later rows are missing.",
     "Copy the file again."},
    {"damaged_result", kError, kFile, "Results could not be decoded and were left out.", "Copy the file again."},
    {"unknown_entries", kWarning, kFile, "Bytes at the end of a block were not understood.", ""},
    {"unknown_fields", kInfo, kFile, "Fields of another version of the tool were skipped.", ""},
    {"bad_rows", kWarning, kFile, "Rows that cannot be read were left out.", "Write the file again."},
    {"short_rows", kError, kFile, "Rows are shorter than the header; their last columns are missing.",
     "Write the file again."},
    {"bad_numbers", kWarning, kFile, "Values look like numbers but are none in this number format.",
     "Say how numbers are written: --number-format."},
    {"foreign_lines", kInfo, kFile, "Lines that the tool did not write were skipped.", ""},
    {"unreadable_capture", kError, kFile, "One capture of the run could not be read; the others were.",
     "Read it alone for the reason."},
    {"clocks_not_aligned", kWarning, kFile,
     "An input's UTC time is unknown: moments cannot be compared between inputs.", ""},
    {"bad_events", kWarning, kFile, "Events of a trace without a time, process or thread, or that are no JSON.",
     "Write the trace again with export_chrome_trace."},
    {"unread_events", kInfo, kFile, "Events of a trace of a kind that is not read.", ""},
    {"placed_by_operator", kInfo, kFile, "GPU work whose CUDA call the trace lacks belongs to the operator it names.",
     ""},

    {"nsys_diagnostic", kWarning, kNsys, "Nsight Systems reports lost or incomplete data.", "Follow what it says."},
    {"kernel_without_call", kInfo, kNsys, "Kernels or graph launches without their API call belong to no range.",
     "Record calls: nsys --trace=cuda."},
    {"duplicate_correlation", kWarning, kNsys, "A correlation id occurs twice in a process; the first call was taken.",
     ""},
    {"ambiguous_correlation", kWarning, kNsys, "Calls of several processes have the correlation id of GPU work.",
     "Give cuda_kern_exec_trace too, which tells processes apart."},
    {"missing_string", kWarning, kNsys, "Names that the table of strings does not hold.", "Export the report again."},
    {"unnamed_domain", kInfo, kNsys, "An NVTX domain whose creation was not recorded has no name.",
     "Record from the start of the program."},
    {"unknown_nvtx_event", kInfo, kNsys, "NVTX events of an unknown type were skipped.", ""},
    {"unknown_process", kWarning, kNsys, "GPU work without a process cannot be attributed to ranges.", ""},
    {"domain_guessed", kInfo, kNsys, "What stands before a colon in a name was taken for the domain.",
     "Give nvtx_sum of the same file too."},
    {"unknown_gpu_work", kInfo, kNsys, "GPU work that is neither kernel nor copy nor set was left out.", ""},
    {"rounded_bytes", kInfo, kNsys, "Bytes were printed rounded.", "Print all digits: --format csv:mem=B."},
    {"rounded_times", kWarning, kNsys, "Times were printed rounded; short kernels may stand in the wrong range.",
     "Print the table without --timeunit."},
    {"graph_work_missing", kWarning, kNsys, "nsys recorded graphs as a whole: the table lacks their kernels.",
     "Give the SQLite export."},
    {"no_gpu_work", kInfo, kNsys, "No table of GPU work was given.", "Add cuda_gpu_trace."},
    {"no_copies", kInfo, kNsys, "The tables that were given have no copies.", "Add cuda_gpu_trace."},
    {"no_calls", kInfo, kNsys, "The tables that were given have no waits and no launches of graphs.",
     "Add cuda_api_trace."},
    {"ranges_without_work", kWarning, kNsys, "Ranges without GPU work are missing from the table.",
     "Add nvtx_pushpop_trace."},
    {"no_start_end_ranges", kInfo, kNsys, "The table has no start/end ranges.", "Add nvtx_gpu_proj_trace."},
    {"ignored_table", kInfo, kNsys, "A table that is not read.", ""},
    {"export_beside", kInfo, kNsys, "The SQLite export beside a report was read, since no nsys could open the report.",
     "Install an nsys of the report's version, and delete the export."},
    {"no_timeline", kInfo, kNsys, "Tables of sums say nothing of nesting, exclusive times and overlap.",
     "Give the SQLite export, or trace tables."},

    {"unit_mismatch", kWarning, kNcu, "Values in a unit that their metric cannot have were left out.",
     "Use a version of ncu that knows the GPU."},
    {"bad_ranges", kWarning, kNcu, "NVTX entries could not be taken apart.", "Give the report itself (.ncu-rep)."},
    {"ambiguous_labels", kWarning, kNcu, "Labels that stand for several metrics; their values were left out.",
     "Print names: --print-metric-name name."},
    {"several_threads", kWarning, kNcu,
     "CSV does not say which thread launched; these results count outside every range.",
     "Give the report itself (.ncu-rep)."},
    {"unjoined_results", kWarning, kNcu, "Results for kernels that the timeline does not have at that place.",
     "Profile the same program with the same input."},
    {"measurement_without_region", kWarning, kNcu, "Results in ranges that no other input has.",
     "Profile the same program with the same input."},

    {"backward_range", kWarning, kAnalysis, "A range ends before it starts; it was left out.", ""},
    {"foreign_range", kWarning, kAnalysis, "A range of a thread or a domain that the recording does not have.", ""},
    {"kernel_without_launch", kWarning, kAnalysis, "A kernel without its launching call is unattributed.", ""},
    {"gpu_work_without_launch", kWarning, kAnalysis, "Other GPU work without its launching call is unattributed.", ""},
    {"backward_gpu_work", kWarning, kAnalysis, "GPU work that ends before it starts is counted, with no time.", ""},
    {"foreign_launch", kWarning, kAnalysis, "A launch call of a thread or process that the recording does not have.",
     ""},
    {"folded_names", kInfo, kAnalysis, "More names than a report shows stand together as one region.",
     "Put what differs into the payload, or use --fold-names numbers."},

    {"ranks_missing", kError, kAnalysis,
     "Ranks of the job left no run: they never started, or their folder is elsewhere.",
     "Start every rank under rangescope with one --runs folder."},
    {"ranks_ended", kWarning, kAnalysis, "Ranks of the job died; what they recorded until then is in the numbers.", ""},
    {"ranks_running", kWarning, kAnalysis, "Ranks of the job have not ended.", "Report again when they have."},
    {"ranks_unreadable", kError, kAnalysis, "Runs of ranks that could not be read.", "Report on each for the reason."},
    {"collectives_unjoined", kWarning, kAnalysis, "Ranks do not agree on the calls of a communicator.", ""},

    {"timed_out", kWarning, kStage, "A stage was ended by its time limit.", "Raise --timeout."},
    {"stage_empty", kWarning, kStage, "A stage captured nothing.", "Ask rangescope doctor."},
    {"stage_failed", kWarning, kStage, "A stage failed.", "Ask rangescope doctor."},
    {"unknown_loss", kWarning, kStage, "A kind that this version does not know, from a file of another one.", ""},
});
}  // namespace losses

}  // namespace rangescope::model
