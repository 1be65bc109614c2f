// Range replay's limits are those of the Kernel Profiling Guide ("Range Replay", "Supported APIs") and of runs of ncu
// 2025.3.1 on an H200.
#include "doctor/program/causes.hpp"

#include <array>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "collect/outcome.hpp"

namespace rangescope::doctor {
namespace {

/// One cause for each id of the tool's messages, with all the words by which it is known.
struct ToolCauses {
  std::deque<std::string> texts;
  std::vector<Cause> causes;

  explicit ToolCauses(std::string_view tool) {
    const auto keep = [&](std::string text) -> std::string_view { return texts.emplace_back(std::move(text)); };
    std::map<std::string_view, std::string> words;
    const auto messages = collect::messages(tool);
    for (const collect::Message& one : messages)
      words[one.id] += (words[one.id].empty() ? "`" : ", `") + std::string(one.words) + "`";
    for (const collect::Message& one : messages) {
      const auto found = words.find(one.id);
      if (found == words.end()) continue;
      std::string_view cure = one.cure;
      while (cure.ends_with('.')) cure.remove_suffix(1);
      causes.push_back({one.id, one.explanation, keep("Known by its words: " + found->second + "."), cure,
                        tool == "ncu" ? "ncu 2020.3 to 2024.1: run without a GPU; 2025.3.1: recorded; later ones: "
                                        "documentation"
                                      : "nsys 2022.4 and 2025.3.1: run; later ones: documentation",
                        one.code});
      words.erase(found);
    }
    for (const auto& [what, title, why, cure] :
         {std::array{"timeout", "the time limit ended it before it had results",
                     "Replay takes many times as long as the "
                     "program alone.",
                     "Raise run.timeout, or measure less (fewer launches, fewer metrics)"},
          std::array{"interrupted", "it was interrupted before it had results", "A signal ended it.", "Run it again"},
          std::array{"empty", "nothing was captured, and the tool does not say why",
                     "Its exit code was 0, or its report "
                     "holds nothing.",
                     "Look at the program: rangescope doctor -- program"},
          std::array{"failed", "it failed, and does not say why in words that are known", "It left no report.",
                     "Read its output in the run directory"}})
      causes.push_back(
          {keep(std::string(tool) + "." + what), title, why, cure, "every version", base::Code::kNothingCaptured});
  }
};

}  // namespace

std::span<const Cause> tool_causes(std::string_view tool) {
  static const ToolCauses ncu("ncu"), nsys("nsys");
  return tool == "ncu" ? ncu.causes : nsys.causes;
}

std::span<const Cause> program_causes() {
  using base::Code;
  static constexpr std::array kCauses{
      Cause{"program.not_started", "The program could not be started",
            "Nothing ran, so nothing can be said about its ranges.",
            "Check the program's path, its folder and its permissions", "every tool", Code::kNoInput},
      Cause{
          "program.failed", "The program failed",
          "It ended with an error of its own, under rangescope's library alone. What comes after that point was never "
          "reached; ncu also discards or marks what it measured of a program that fails.",
          "Make the program run to its end first, without any profiler", "ncu 2025.3.1: run", Code::kNothingCaptured},
      Cause{"program.not_reached", "The look ended before the range was reached",
            "The program was ended by the time limit of the look while the range had not been seen yet. It may still "
            "come later.",
            "Look for longer, with --for 5m, or give the program less to do before the range", "rangescope",
            Code::kNothingCaptured},
      Cause{"program.other_injection", "Another tool's library is set for the program",
            "NVTX and CUDA load one injection library each. Where the environment names another one already, "
            "rangescope, nsys or ncu cannot put theirs there.",
            "Unset NVTX_INJECTION64_PATH and CUDA_INJECTION64_PATH, or add --chain-injection",
            "NVTX 3 headers; nsys 2025.3 and ncu 2025.3 set the same variables", Code::kUsage},
      Cause{"program.no_nvtx", "The program does not use NVTX",
            "No process of it was seen to make an NVTX 3 call, so there are no ranges for any tool to see: NVTX was "
            "compiled out (NVTX_DISABLE); the code with ranges is in a process that got another environment (setuid, a "
            "container), may not read or write files here, or still runs in the background; or it uses NVTX 2 or is "
            "linked statically without dlopen.",
            "Build without NVTX_DISABLE and against NVTX 3 (nvtx3/nvToolsExt.h; Python: the nvtx package or "
            "torch.cuda.nvtx), and check that the part with ranges runs",
            "NVTX 3.1 headers; ncu 2025.3.1 says `No kernels were profiled` and exits with 0", Code::kNothingCaptured},
      Cause{"program.no_files", "The program may open no file",
            "The injected library is loaded from a file and writes into another. Where no descriptor, no space or no "
            "memory is left for them, nothing is recorded, whatever the program does.",
            "Let the program open and write files: RLIMIT_NOFILE (ulimit -n), RLIMIT_FSIZE (ulimit -f), free space",
            "rangescope", Code::kNothingCaptured},
      Cause{"program.no_ranges", "NVTX is there, but no range was opened",
            "The program loaded NVTX (it named a thread or domain, set a mark, or a library did), and never opened a "
            "range.",
            "Check that the part of the program with ranges ran: arguments, step counts, a profiling switch of its own",
            "ncu 2025.3.1 and nsys 2025.3.1: run", Code::kNothingCaptured},
      Cause{
          "program.unknown_range", "No range has that name",
          "Names are exact and case-sensitive. ncu answers a name that does not exist with `No kernels were profiled` "
          "and exit code 0.",
          "Use a name that was seen", "ncu 2022.3 to 2025.3: run", Code::kNothingCaptured},
      Cause{"program.wrong_domain", "The range is in another domain",
            "An expression without a domain means the default domain only; one with a domain means that domain only.",
            "Name the domain: `DOMAIN@range` for ncu and rangescope, `range@DOMAIN` for nsys",
            "ncu 2022.3 to 2025.3: run; nsys 2025.3.1: run", Code::kNothingCaptured},
      Cause{"program.wrong_kind", "Push/pop and start/end are confused",
            "To ncu `decode/` is a push/pop range and `decode` a start/end range. The wrong form matches nothing, with "
            "exit code 0.",
            "Write a slash behind the name of a push/pop range and none behind that of a start/end range",
            "ncu 2022.3 to 2025.3: run", Code::kNothingCaptured},
      Cause{"program.wrong_nesting", "The names exist, but not nested like that",
            "`A/B` means B directly below A, `A/*/B` B anywhere below A, `[A` A at the bottom and `A]` A at the top of "
            "the stack.",
            "Use a path that was seen", "ncu 2022.3 and 2024.1: run", Code::kNothingCaptured},
      Cause{"program.range_never_ends", "The range is opened and never closed",
            "A range that is still open when the program ends has no duration, and ncu's range replay drops it "
            "(`disconnected before reaching the range end marker`).",
            "Close the range on every way out, before the program exits", "ncu 2025.3.1: documentation and words",
            Code::kNothingCaptured},
      Cause{"program.popped_elsewhere", "A push/pop range is closed on another thread, or twice",
            "Push and pop belong to one thread. A pop on another thread closes nothing there, or the wrong range, and "
            "the pushed range stays open. Range replay needs both on one thread.",
            "Pop on the thread that pushed, or use start/end ranges, which may end on any thread",
            "NVTX documentation; rangescope counts such pops", Code::kNothingCaptured},
      Cause{
          "program.no_cuda", "The program does not use CUDA",
          "CUDA was never initialised in any process of it, so there is no GPU work in any range. rangescope and nsys "
          "still give wall times; ncu has nothing to measure.",
          "Check that the GPU backend is chosen (device, CUDA_VISIBLE_DEVICES, a CPU-only build of the framework)",
          "ncu 2022.3 to 2025.3: run", Code::kNothingCaptured},
      Cause{"program.gpu_not_recorded", "The program uses CUDA, but its GPU work could not be recorded",
            "CUPTI was missing, too old, or held by another tool, so this look cannot say what is launched inside a "
            "range.",
            "Do what the reason says, then look again", "CUPTI 12.0 to 13.0: run", Code::kToolMissing},
      Cause{"program.work_on_other_threads", "Kernels are launched by other threads while the range is open",
            "Push/pop ranges belong to the thread that pushed them, so to ncu and nsys these kernels are outside. "
            "PyTorch's backward pass is the usual case.",
            "With ncu 2025.1 or newer add --nvtx-push-pop-scope process; with rangescope --push-pop-scope process; or "
            "open the range on the launching thread",
            "ncu 2025.3.1: run; PyTorch 2.11 autograd: run", Code::kNothingCaptured},
      Cause{"program.work_in_child_process", "Kernels are launched by a child process while the range is open",
            "Ranges belong to their process; the child's kernels are in no range of the parent.",
            "Open the range in the process that launches", "ncu 2025.3.1: run", Code::kNothingCaptured},
      Cause{"program.range_in_child_process", "The range is opened by a child process",
            "ncu must follow children, and nsys traces a child that was forked without exec only on demand.",
            "Use --target-processes all with ncu and --trace-fork-before-exec=true with nsys",
            "ncu 2020.3 and later default to `all`; nsys 2022.4 and 2025.3: options as documented",
            Code::kNothingCaptured},
      Cause{
          "program.no_work_inside", "No kernel is launched inside the range",
          "The range was seen, and neither its thread nor any other launched a kernel while it was open. Kernels that "
          "were launched before and still run do not count: what counts is where the launch is.",
          "Put the range around the launches, or name a range that has some", "ncu 2022.3 to 2025.3: run",
          Code::kNothingCaptured},
      Cause{"program.no_such_kernel", "No kernel inside the range is one of those chosen",
            "The range launches kernels, and `--kernel` or `--exclude-kernel` leaves all of them out. A name is "
            "compared letter by letter; `regex:` is searched for.",
            "Write one of the names that were seen, or regex: and a part of it", "rangescope; ncu 2025.3.1: recorded",
            Code::kNothingCaptured},
      Cause{"program.context_inside", "CUDA starts inside the range",
            "The first CUDA call of the process is made inside the range, so its first occurrence holds context "
            "creation and module loading, which no later one has.",
            "Do one warm-up step before the range, outside of it", "rangescope", Code::kNothingCaptured},
      Cause{"program.graphs_inside", "CUDA graphs are launched inside the range",
            "Range replay refuses them (`Unsupported API during capture`, exit code 9), and counters per kernel do not "
            "work over a graph launch. Counters per range, app-range replay and `--graph-profiling` do.",
            "Use rangescope's counters per range, app-range replay, or kernel replay with --graph-profiling node",
            "ncu 2025.3.1 and CUPTI 13.0 on an H200: run", Code::kNothingCaptured},
      Cause{"program.async_allocation", "Memory is allocated stream-ordered inside the range",
            "cudaMallocAsync and memory pools cannot be replayed: range replay ends with `Unsupported API during "
            "capture` and exit code 9. cudaMalloc can.",
            "Allocate before the range, turn the pool allocator off (PyTorch: leave "
            "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync away), or use app-range or kernel replay",
            "ncu 2025.3.1: run", Code::kNothingCaptured},
      Cause{"program.calls_inside", "The range holds CUDA calls that range replay cannot replay",
            "Range replay records the calls of the range and plays them again; a call that it does not know ends it "
            "with `Unsupported API during capture` and exit code 9.",
            "Move the calls out of the range, or use rangescope's counters, app-range or kernel replay",
            "Kernel Profiling Guide, Supported APIs; ncu 2025.3.1: run for cuKernelSetAttribute",
            Code::kNothingCaptured},
      Cause{"program.several_contexts", "The range uses several CUDA contexts",
            "Range replay covers one context (`RecordStatusUnsupportedMultiContext`).",
            "Use kernel replay, or one range for each context", "ncu 2025.3.1: words", Code::kNothingCaptured},
      Cause{"program.occurrences_differ", "Occurrences of the range launch different kernels",
            "Counters that take several passes get one pass an occurrence; where occurrences differ, the passes "
            "describe different work. App-range replay joins the same occurrence of several launches of the program "
            "instead, and needs the program to do the same each time.",
            "Name a range whose occurrences are alike (one phase, one shape), or skip the first ones",
            "rangescope's counters on an H200: run", Code::kNothingCaptured},
      Cause{"program.unregistered", "The range's name is not a registered string",
            "nsys starts a recording that is gated by a range only at registered strings, unless told otherwise. "
            "PyTorch's and most other ranges are not registered. Nothing is recorded, with exit code 0.",
            "Set NSYS_NVTX_PROFILER_REGISTER_ONLY=0 for the program (nsys profile --env-var), or register the string",
            "nsys 2022.4 and 2025.3.1: run", Code::kNothingCaptured},
      Cause{"program.work_ends_later", "Kernels still run when the range ends",
            "Launches are asynchronous. Such kernels belong to the range all the same, for every tool: a missing "
            "synchronize is no cause of an empty range. It moves work out of the range's wall time, which then says "
            "nothing about the GPU.",
            "Compare GPU times, not wall times; synchronize inside the range only if its wall time is to hold the work",
            "ncu 2025.3.1, range and app-range replay: run", Code::kNothingCaptured},
  };
  return kCauses;
}

}  // namespace rangescope::doctor
