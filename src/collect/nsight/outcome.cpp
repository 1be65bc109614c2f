#include "collect/nsight/outcome.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::collect {
namespace {

using base::Code;

// Seen in: ncu 2020.3.1, 2022.3.0, 2024.1.1 (run without a GPU), 2025.3.1 (recorded on an H200), the documentation of
// 2025 and 2026 for the rest.
constexpr std::array kNcu{
    Message{
        "ncu.permission", "ERR_NVGPUCTRPERM", "the driver lets only administrators read the GPU's performance counters",
        "Ask the administrator for NVreg_RestrictProfilingToAdminUsers=0 (a module option of nvidia), run as root, or "
        "give the container CAP_SYS_ADMIN.",
        Code::kPermission, false, true},
    Message{"ncu.no_driver", "failed to connect to the CUDA driver",
            "there is no usable CUDA driver on this machine, or a stub libcuda.so stands first on the library path",
            "Run on a machine with an NVIDIA GPU and driver; take CUDA's stubs folder out of LD_LIBRARY_PATH.",
            Code::kToolMissing, false, true},
    Message{"ncu.no_driver", "Driver could not be loaded", "the CUDA driver (libcuda.so.1) could not be loaded",
            "Run on a machine with an NVIDIA GPU and driver.", Code::kToolMissing, false, true},
    Message{"ncu.unsupported_gpu", "Profiling is not supported on device", "this ncu cannot profile this GPU",
            "Use a version of ncu that knows the GPU (newer for new GPUs, older for retired ones).", Code::kToolMissing,
            false, true},
    Message{"ncu.counters_held", "a driver resource was unavailable",
            "another tool holds the GPU's performance counters (DCGM, another ncu, nsys with GPU metrics)",
            "Stop it (for DCGM: dcgmi profiling --pause), or wait.", Code::kToolMissing, true, false},
    Message{"ncu.unsupported_api", "Unsupported API during capture",
            "the range holds a CUDA call that range replay cannot replay", "Use replay mode app-range or kernel.",
            Code::kNothingCaptured, false, false, "--replay-mode", "app-range"},
    Message{"ncu.multi_context", "RecordStatusUnsupportedMultiContext",
            "the range uses more than one CUDA context, which range replay cannot replay",
            "Use replay mode app-range or kernel.", Code::kNothingCaptured, false, false, "--replay-mode", "app-range"},
    Message{"ncu.invalid_range", "Skipping invalid capture range", "ncu could not capture the range",
            "Use replay mode app-range or kernel.", Code::kNothingCaptured, false, false, "--replay-mode", "app-range"},
    Message{"ncu.exit_in_range", "disconnected before reaching the range end marker",
            "the program ended before the range did", "End the range before the program exits.",
            Code::kNothingCaptured},
    Message{"ncu.unknown_metric", "Failed to find metric", "ncu does not know a metric that was asked for",
            "Look for it with `rangescope metrics search WORD`.", Code::kConfig, false, true},
    Message{"ncu.unknown_metric", "Unable to access the following",
            "this GPU does not have a metric that was asked for", "Leave the metric out.", Code::kConfig, false, true},
    Message{"ncu.unknown_section", "did not match any section", "ncu has no such section",
            "`ncu --list-sections` names them.", Code::kConfig, false, true},
    Message{"ncu.unknown_set", "No metrics to collect found in sections",
            "the section set does not exist in this ncu, so nothing was collected", "`ncu --list-sets` names them.",
            Code::kConfig, false, true},
    Message{"ncu.usage", "unrecognised option", "this ncu does not know an option",
            "Leave the option out, or use another version.", Code::kConfig, false, true},
    Message{"ncu.usage", "cannot be specified more than once", "an option stands twice", "Leave one of them out.",
            Code::kConfig, false, true},
    Message{"ncu.usage", "Invalid option --", "two options do not go together in this ncu", "Leave the option out.",
            Code::kConfig, false, true},
    Message{"ncu.usage", "the argument for option", "this ncu does not take the value of an option",
            "`ncu --help` names its values.", Code::kConfig, false, true},
    Message{"ncu.usage", "the required argument for option", "an option lacks its value",
            "`ncu --help` names its values.", Code::kConfig, false, true},
    Message{"ncu.usage", "Invalid configuration for nvtx-", "ncu cannot read a range expression",
            "See the range expressions in the manual.", Code::kConfig, false, true},
    Message{"ncu.usage", "Invalid kernel identifier", "ncu cannot read the kernel id",
            "Write context:stream:[regex:]name:invocation.", Code::kConfig, false, true},
    Message{"ncu.mode_conflict", "is not supported with", "two options do not go together in this ncu",
            "Leave one of them out.", Code::kConfig},
    Message{"ncu.mode_conflict", "is not supported during range replay", "an option does not go with range replay",
            "Leave it out, or use replay mode kernel.", Code::kConfig},
    Message{"ncu.no_program", "does not exist or is not an executable", "the program could not be started",
            "Check the program's path.", Code::kNoInput, false, true},
    Message{"ncu.no_program", "Launching the target application failed", "the program could not be started",
            "Check the program's path and permissions.", Code::kNoInput, false, true},
    Message{"ncu.not_deterministic", "kernels could be matched across replay passes",
            "the program launched other kernels in each pass, so passes could not be joined",
            "Make the program deterministic (fixed seeds and shapes), set app_replay_match=name, or use replay mode "
            "kernel.",
            Code::kNothingCaptured, false, false, "--app-replay-match", "name"},
    Message{"ncu.import", "Failed to load report file", "ncu could not read the report",
            "The report is damaged, or of a newer version than this ncu.", Code::kBadData},
    Message{"ncu.no_process", "No attachable process found", "ncu lost the program before it could attach",
            "Try again; if it stays, the program replaces itself at once: profile the final program.",
            Code::kNothingCaptured, true},
    Message{"ncu.profile_failed", "Failed to profile", "ncu could not measure a kernel or range",
            "The lines around it in the log say why.", Code::kNothingCaptured},
    Message{"ncu.profile_failed", "Failed to prepare", "ncu could not prepare a kernel or range",
            "The lines around it in the log say why.", Code::kNothingCaptured},
    Message{"ncu.only_start_end", "match only start/end ranges",
            "the range expressions have no slash, so they name start/end ranges, and none of those held GPU work",
            "Write a slash behind the name of a push/pop range: decode/.", Code::kNothingCaptured},
    Message{
        "ncu.only_push_pop", "match only push/pop ranges",
        "the range expressions name push/pop ranges, and none of that name held GPU work on the launching thread",
        "Check the name and the domain, leave the slash out for start/end ranges, or set push_pop_scope=process for "
        "kernels of other threads.",
        Code::kNothingCaptured},
    Message{
        "ncu.program_failed", "The application returned an error code",
        "the program failed under ncu; alone it may not",
        "Read what it printed in the run directory; an ncu that is older than the driver or the program can break it.",
        Code::kNothingCaptured},
    Message{"ncu.nothing_matched", "were profiled.", "nothing that ran on the GPU matched the filters",
            "Check the range names and kernel filters; `rangescope profile -- program` shows the ranges that it has.",
            Code::kNothingCaptured},
    Message{"ncu.nothing_matched", "Failed to create report", "no pass left anything to report",
            "Check the range names and kernel filters.", Code::kNothingCaptured},
};

constexpr std::array kNsys{
    Message{"nsys.importer_missing", "importer binary and its dependencies were not found",
            "nsys recorded a .qdstrm but found no importer to turn it into a report",
            "Install nsys's host part (package nsight-systems), or its libraries libdw1 and libelf1.",
            Code::kToolMissing},
    Message{"nsys.library_missing", "error while loading shared libraries", "a program of nsys lacks a library",
            "Install the library that it names (libdw.so.1: package libdw1; libelf.so.1: libelf1).", Code::kToolMissing,
            false, true},
    Message{"nsys.newer_report", "newer than your current version", "the report was written by a newer nsys",
            "Use the nsys that wrote it.", Code::kBadData},
    Message{"nsys.newer_report", "Version number is invalid", "the report was written by a newer nsys",
            "Use the nsys that wrote it.", Code::kBadData},
    Message{"nsys.usage", "unrecognized option", "this nsys does not know an option",
            "`nsys profile --help` names them.", Code::kConfig, false, true},
    Message{"nsys.usage", "unrecognised option", "this nsys does not know an option",
            "`nsys profile --help` names them.", Code::kConfig, false, true},
    Message{"nsys.usage", "cannot be specified more than once", "an option stands twice", "Leave one of them out.",
            Code::kConfig, false, true},
    Message{"nsys.usage", "Illegal --", "this nsys does not take the value of an option",
            "`nsys profile --help` names them.", Code::kConfig, false, true},
    Message{"nsys.session_busy", "session is already", "another nsys session holds the machine",
            "`nsys sessions list` names it; end it or wait.", Code::kToolMissing, true},
    Message{
        "nsys.never_started", "No reports were generated",
        "the capture range never opened: no range of that name (or it is not a registered string, or in another "
        "domain)",
        "Check the name and domain; ranges that are not registered strings need NSYS_NVTX_PROFILER_REGISTER_ONLY=0 in "
        "the program's environment.",
        Code::kNothingCaptured},
};

// What only a log that somebody kept is asked for: hints and consequences. Of ncu 2022.3.0 and 2024.1.1 and nsys
// 2022.4.2 and 2023.4.4, which were run; nsys's "No ... events collected" of exports of 2023 to 2025.
constexpr std::array kHints{
    Message{"ncu.unsupported_api", "RecordStatusUnsupportedApi",
            "the range holds a CUDA call that range replay cannot replay", "Use replay mode app-range or kernel.",
            Code::kNothingCaptured, false, false, "--replay-mode", "app-range"},
    Message{"ncu.unsupported_gpu", "ERR_NVCMPGPU", "this GPU is a mining processor, which cannot be profiled",
            "Use another GPU.", Code::kToolMissing},
    Message{"ncu.children", "requires the --target-processes all option",
            "child processes are not profiled, and the program may start some that do the work",
            "Write --target-processes all.", Code::kNothingCaptured, false, false, "--target-processes", "all"},
    Message{"ncu.nothing_matched", "No ranges were profiled",
            "no range was found to replay: the expressions match none, or cudaProfilerStart was never called",
            "Check the range names: `rangescope doctor --include RANGE -- program` names the nearest.",
            Code::kNothingCaptured},
    Message{"nsys.importer_missing", "Unable to retrieve the importer version",
            "nsys recorded a .qdstrm but found no importer to turn it into a report",
            "Install nsys's host part (package nsight-systems), or its libraries libdw1 and libelf1.",
            Code::kToolMissing},
    Message{"nsys.no_report", "could not be found", "`nsys stats` has no report of that name",
            "`nsys stats --help-reports` lists them; all were renamed in 2023.1 (gpukernsum is cuda_gpu_kern_sum).",
            Code::kConfig},
    Message{"nsys.no_cuda", "No CUDA events collected",
            "nsys saw no CUDA call: the program made none while it recorded",
            "Record the whole program, with --trace=cuda; a child process needs --trace-fork-before-exec=true.",
            Code::kNothingCaptured, false, false, "--trace-fork-before-exec", "true"},
    Message{"nsys.no_cuda", "does not contain CUDA", "the recording holds no GPU work",
            "Record the whole program, with --trace=cuda; an nsys older than the driver may see none.",
            Code::kNothingCaptured},
    Message{"nsys.no_nvtx", "No NVTX events collected", "nsys saw no NVTX range",
            "Add ranges, or look for the reason: rangescope doctor -- program.", Code::kNothingCaptured},
    Message{"nsys.no_nvtx", "does not contain NV Tools Extension", "the recording holds no NVTX range",
            "Record with --trace=nvtx; for ranges in a program that has none see rangescope doctor -- program.",
            Code::kNothingCaptured},
};

// Texts of the CUDA runtime (cudaGetErrorString, CUDA 11 to 13) and of PyTorch 2.
constexpr std::array kCuda{
    Message{"cuda.no_driver", "Found no NVIDIA driver", "PyTorch finds no NVIDIA driver on this machine",
            "Run on a machine with an NVIDIA GPU and driver; start a container with --gpus all.", Code::kToolMissing},
    Message{"cuda.no_driver", "libcuda.so.1: cannot open shared object file", "the CUDA driver is not installed here",
            "Run on a machine with an NVIDIA GPU and driver; start a container with --gpus all.", Code::kToolMissing},
    Message{"cuda.old_driver", "CUDA driver version is insufficient for CUDA runtime version",
            "the driver is older than the CUDA that the program was built with, or there is none",
            "Update the driver, or use a build for the CUDA that `rangescope doctor` says the driver serves.",
            Code::kToolMissing},
    Message{"cuda.old_driver", "The NVIDIA driver on your system is too old",
            "the driver is older than the CUDA that PyTorch was built with",
            "Update the driver, or install a PyTorch for an older CUDA.", Code::kToolMissing},
    Message{"cuda.no_device", "no CUDA-capable device is detected", "CUDA sees no GPU",
            "Check CUDA_VISIBLE_DEVICES and the driver: rangescope doctor.", Code::kToolMissing},
    Message{"cuda.no_device", "No CUDA GPUs are available", "PyTorch sees no GPU",
            "Check CUDA_VISIBLE_DEVICES and the driver: rangescope doctor.", Code::kToolMissing},
    Message{"cuda.no_cuda_build", "Torch not compiled with CUDA enabled", "this PyTorch was built without CUDA",
            "Install a CUDA build of PyTorch.", Code::kToolMissing},
    Message{"cuda.no_nvtx_build", "NVTX functions not installed",
            "this PyTorch has no NVTX: torch.cuda.nvtx does nothing",
            "Use rangescope.range of our Python helper, or a CUDA build of PyTorch.", Code::kToolMissing},
    Message{"cuda.wrong_architecture", "no kernel image is available for execution",
            "the program holds no code for this GPU", "Build it for the GPU's architecture, or use a newer PyTorch.",
            Code::kToolMissing},
    Message{
        "cuda.cooperative_too_large", "too many blocks in cooperative launch",
        "a cooperative kernel needs all its blocks on the GPU at once, and they do not fit: another context, MPS or "
        "MIG "
        "takes a part, or the profiler's own code needs registers",
        "Launch fewer blocks (cudaOccupancyMaxActiveBlocksPerMultiprocessor), and profile with nothing else on the "
        "GPU.",
        Code::kNothingCaptured},
    Message{"cuda.cooperative_too_large", "cudaErrorCooperativeLaunchTooLarge",
            "a cooperative kernel needs all its blocks on the GPU at once, and they do not fit",
            "Launch fewer blocks (cudaOccupancyMaxActiveBlocksPerMultiprocessor), and profile with nothing else on the "
            "GPU.",
            Code::kNothingCaptured},
    Message{"cuda.out_of_memory", "CUDA out of memory",
            "the GPU's memory was full; kernel replay also needs room to save it",
            "Use smaller inputs, or a replay mode that saves nothing: --replay-mode application.",
            Code::kNothingCaptured, false, false, "--replay-mode", "application"},
    Message{"cuda.counters_locked", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
            "the driver lets only administrators read the GPU's performance counters",
            "Ask the administrator for NVreg_RestrictProfilingToAdminUsers=0, or run as root: rangescope doctor.",
            Code::kPermission},
    Message{"cuda.cupti_taken", "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
            "two profilers want CUPTI in one process: nsys or ncu, and PyTorch's own profiler", "Use one of them.",
            Code::kConfig},
    Message{"cuda.no_cupti", "CUDA profiler activities will be missing",
            "PyTorch's profiler could not start CUPTI, so its trace holds no GPU work",
            "Use one profiler at a time, and allow counters and tracing: rangescope doctor.", Code::kNothingCaptured},
};

/// The whole line around a position.
std::string line_at(std::string_view text, std::size_t at) {
  const auto begin = text.rfind('\n', at);
  const auto end = text.find('\n', at);
  const std::size_t from = begin == std::string_view::npos ? 0 : begin + 1;
  return base::printable(base::trim(text.substr(from, (end == std::string_view::npos ? text.size() : end) - from)));
}

/// What ncu says after every failure explains nothing where a reason was found.
bool is_consequence(std::string_view id) {
  return id == "ncu.nothing_matched" || id == "ncu.program_failed";
}

/// Adds what `rows` say of the text; with `only_lines`, in lines that hold these words.
void understand(std::span<const Message> rows, std::string_view text, std::string_view only_lines,
                std::vector<Complaint>& out, Code& code) {
  for (const Message& row : rows) {
    if (!out.empty() && is_consequence(row.id)) continue;
    for (auto at = text.find(row.words); at != std::string_view::npos; at = text.find(row.words, at + 1)) {
      std::string line = line_at(text, at);
      // The program may print the same words; ncu's own lines carry its mark (2020 and 2022 print option mistakes
      // bare).
      if (!only_lines.empty() && line.find(only_lines) == std::string::npos && row.id != "ncu.usage") continue;
      // The same trouble has the same cure: ncu tells some in several lines.
      if (std::any_of(out.begin(), out.end(), [&](const Complaint& s) { return s.id == row.id || s.cure == row.cure; }))
        break;
      if (out.empty()) code = row.code;
      out.push_back({std::string(row.id), std::move(line), std::string(row.explanation), std::string(row.cure),
                     row.transient, row.fatal, std::string(row.option), std::string(row.value)});
      break;
    }
  }
}

std::string ending(const Observed& seen) {
  if (seen.interrupted) return "it was interrupted";
  if (seen.timed_out) return "it ran past the time limit";
  if (seen.signal) return "it was ended by signal " + std::to_string(*seen.signal);
  if (seen.exit_code && *seen.exit_code != 0) return "exit code " + std::to_string(*seen.exit_code);
  return "exit code 0";
}

Outcome conclude(const Observed& seen, std::vector<Complaint> complaints, Code code, const std::string& tool,
                 std::string_view one, std::string_view many = {}) {
  Outcome out;
  out.complaints = std::move(complaints);
  out.code = code;
  if (seen.report && seen.results > 0) {
    out.result = Result::kOk;
    out.message = tool + ": " + base::counted(seen.results, one, many);
    if (seen.timed_out || seen.interrupted) out.message += "; " + ending(seen) + ", so the end is missing";
    if (!out.complaints.empty() && seen.exit_code != 0) out.message += "; " + out.complaints.front().explanation;
    return out;
  }
  if (seen.interrupted || seen.timed_out) {
    out.result = Result::kFailed;
    out.complaints.insert(
        out.complaints.begin(),
        {tool + (seen.timed_out ? ".timeout" : ".interrupted"), ending(seen),
         seen.timed_out ? "the time limit ended it before it had results" : "it was interrupted before it had results",
         seen.timed_out ? "Raise run.timeout, or measure less (fewer launches, fewer metrics)." : "Run it again.",
         false, true});
    out.fatal = true;
    out.code = Code::kNothingCaptured;
    out.message = tool + ": " + out.complaints.front().explanation;
    return out;
  }
  if (!out.complaints.empty()) {
    const Complaint& first = out.complaints.front();
    const bool empty = first.id == tool + ".nothing_matched" || first.id == "ncu.only_start_end" ||
                       first.id == "ncu.only_push_pop" || first.id == "nsys.never_started";
    out.result = empty ? Result::kEmpty : Result::kFailed;
    out.transient = first.transient;
    out.fatal = first.fatal;
    out.message = tool + ": " + first.explanation;
    return out;
  }
  const bool empty = seen.report || seen.exit_code == 0;
  out.result = empty ? Result::kEmpty : Result::kFailed;
  out.code = Code::kNothingCaptured;
  out.message = tool + ": " + (seen.report ? "the report holds nothing (" : "it left no report (") + ending(seen) + ")";
  return out;
}

}  // namespace

std::string_view result_name(Result result) {
  return result == Result::kOk ? "ok" : result == Result::kEmpty ? "empty" : "failed";
}

std::string Outcome::why() const {
  if (result == Result::kOk || complaints.empty()) return std::string(result_name(result));
  return complaints.front().id;
}

std::vector<Message> messages(std::string_view tool) {
  std::vector<Message> out;
  const auto add = [&](const auto& rows) { out.insert(out.end(), rows.begin(), rows.end()); };
  if (tool == "ncu") add(kNcu);
  if (tool == "nsys") add(kNsys);
  if (tool == "cuda") add(kCuda);
  for (const Message& row : kHints)
    if (row.id.starts_with(tool)) out.push_back(row);
  return out;
}

std::vector<Complaint> read_log(std::string_view text) {
  Code unused = Code::kNothingCaptured;
  std::vector<Complaint> out;
  understand(kCuda, text, "", out, unused);
  // Before the consequences among its own messages.
  std::vector<Complaint> hints;
  understand(kHints, text, "", hints, unused);
  understand(kNcu, text, "==", out, unused);
  understand(kNsys, text, "", out, unused);
  const bool reason =
      std::any_of(out.begin(), out.end(), [](const Complaint& each) { return !is_consequence(each.id); });
  for (Complaint& hint : hints) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Complaint& each) { return each.id == hint.id; });
    if (same != out.end() && hint.id == "ncu.nothing_matched")
      *same = std::move(hint);  // which says kernels or ranges
    else if (same == out.end() && hint.id == "ncu.unsupported_api" && reason)
      continue;
    else if (same == out.end() && (!reason || hint.id != "ncu.children"))
      out.push_back(std::move(hint));
  }
  std::stable_partition(out.begin(), out.end(), [](const Complaint& each) { return !is_consequence(each.id); });
  if (!out.empty() && !is_consequence(out.front().id))
    std::erase_if(out, [](const Complaint& each) { return is_consequence(each.id); });
  return out;
}

Outcome judge_ncu(const Observed& seen) {
  Code code = Code::kNothingCaptured;
  std::vector<Complaint> complaints;
  understand(kNcu, seen.text, "==", complaints, code);
  Outcome out = conclude(seen, std::move(complaints), code, "ncu", "result");
  for (auto at = seen.text.find("Unsupported API during capture ("); at != std::string::npos;
       at = seen.text.find("Unsupported API during capture (", at + 1)) {
    const auto begin = at + 32, end = seen.text.find(')', begin);
    if (end == std::string::npos) break;
    const std::string name = base::printable(seen.text.substr(begin, std::min<std::size_t>(end - begin, 200)));
    if (std::find(out.unsupported_calls.begin(), out.unsupported_calls.end(), name) == out.unsupported_calls.end())
      out.unsupported_calls.push_back(name);
  }
  if (!out.unsupported_calls.empty() && out.result != Result::kOk)
    out.message += ": " + base::join(out.unsupported_calls, ", ");
  return out;
}

Outcome judge_nsys(const Observed& seen) {
  Code code = Code::kNothingCaptured;
  std::vector<Complaint> complaints;
  understand(kNsys, seen.text, "", complaints, code);
  return conclude(seen, std::move(complaints), code, "nsys", "range or kernel", "ranges and kernels");
}

}  // namespace rangescope::collect
