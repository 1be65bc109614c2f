// Checks of what happens inside the ranges that were meant: GPU work, and what replay can make of
// it.
#include "base/text.hpp"
#include "base/units.hpp"
#include "doctor/program/checks.hpp"

namespace rangescope::doctor {
namespace {

using model::Finding;
using model::Grade;

std::string of(const RangeFacts& range) {
  return base::printable(range.term.written) + ": ";
}

bool gpu_known(const ProgramFacts& facts) {
  return facts.cuda && facts.gpu_unavailable.empty();
}

}  // namespace

Findings check_cuda(const ProgramLook& look) {
  if (look.not_started) return {};
  const ProgramFacts& facts = look.facts;
  if (!facts.cuda) {
    // A program without a GPU is a program all the same: only ncu has nothing to do there.
    const bool decides = look.failed && look.failed->tool == "ncu";
    if (facts.processes == 0 && !decides)
      return {};  // nothing was seen at all: program.no_nvtx reports it
    return {finding_of("program.no_cuda", decides ? Grade::kFail : Grade::kWarn,
                       facts.processes == 0 ? "no process of it loaded CUDA"
                                            : "CUDA was not initialised in any of " +
                                                  base::counted(facts.processes, "process"))};
  }
  if (!facts.gpu_unavailable.empty())
    return {finding_of("program.gpu_not_recorded", Grade::kWarn,
                       base::printable(facts.gpu_unavailable))};
  return {well(
      base::counted(facts.kernels, "kernel") +
      (facts.graph_launches > 0 ? ", " + base::counted(facts.graph_launches, "graph launch") : "") +
      (facts.gpu_lost.empty() ? "" : "; incomplete: " + base::printable(facts.gpu_lost)))};
}

Findings check_work(const ProgramLook& look) {
  if (!gpu_known(look.facts)) return {};
  std::vector<Finding> out;
  std::string seen;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.seen.empty()) continue;
    const std::uint64_t own = range.kernels + range.graph_launches;
    // Other threads that have ranges of their own are nobody's business, unless this range has no
    // other work.
    if (own == 0 ? range.other_thread_kernels > 0 : range.bare_kernels > 0) {
      std::string found =
          of(range) +
          base::counted(own == 0 ? range.other_thread_kernels : range.bare_kernels, "kernel") +
          " by " + base::counted(range.other_threads, "other thread") + " while it was open, " +
          std::to_string(own) + " by its own";
      out.push_back(finding_of("program.work_on_other_threads",
                               own == 0 ? Grade::kFail : Grade::kWarn, found));
    }
    if (range.child_kernels > 0)
      out.push_back(finding_of(
          "program.work_in_child_process", own == 0 ? Grade::kFail : Grade::kWarn,
          of(range) + base::counted(range.child_kernels, "kernel") +
              " by child processes while it was open, " + std::to_string(own) + " by its own"));
    if (own == 0 && range.other_thread_kernels == 0 && range.child_kernels == 0 &&
        range.blind == range.occurrences) {
      out.push_back(skipped(
          of(range) + "the program was ended before the GPU work of this range was written out"));
    } else if (own == 0 && !range.left_out.empty()) {
      std::vector<std::string> names;
      std::uint64_t all = 0;
      for (const auto& [name, count] : range.left_out) {
        all += count;
        if (names.size() < 5) names.push_back(base::printable(name));
      }
      out.push_back(finding_of("program.no_such_kernel", Grade::kFail,
                               of(range) + base::counted(all, "kernel") +
                                   " inside, none of them chosen: " + base::join(names, ", ") +
                                   (range.left_out.size() > names.size() ? ", ..." : "")));
    } else if (own == 0 && range.other_thread_kernels == 0 && range.child_kernels == 0) {
      std::string found =
          of(range) + "no kernel in " + base::counted(range.occurrences, "instance");
      if (range.copies + range.memsets > 0)
        found += "; " + base::counted(range.copies, "copy") + " and " +
                 base::counted(range.memsets, "memset") + " are inside";
      const std::uint64_t elsewhere = look.facts.kernels;
      found += elsewhere > 0
                   ? "; the program launches " + base::counted(elsewhere, "kernel") + " elsewhere"
                   : "; the program launches none at all";
      if (look.facts.orphan_kernels > 0)
        found += "; of " + base::counted(look.facts.orphan_kernels, "kernel") +
                 " the launching call is not known";
      Finding finding = finding_of("program.no_work_inside", Grade::kFail, std::move(found));
      std::string near;
      std::size_t named = 0;
      for (const SeenRange& other : look.facts.ranges)
        if (other.kernels > 0 && named++ < 3)
          near += (near.empty() ? "" : ", ") + base::printable(other.shown()) + " (" +
                  base::counted(other.kernels, "kernel") + ")";
      if (!near.empty())
        finding.hint = "Put the range around the launches, or name one that has some: " + near;
      out.push_back(std::move(finding));
    }
    if (own > 0)
      seen +=
          (seen.empty() ? "" : ", ") + of(range) + base::counted(range.kernels, "kernel") +
          (range.graph_launches > 0 ? " and " + base::counted(range.graph_launches, "graph launch")
                                    : "") +
          " in " + base::counted(range.occurrences, "instance");
  }
  if (out.empty() && !seen.empty()) out.push_back(well(seen));
  return out;
}

Findings check_processes(const ProgramLook& look) {
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant)
    if (range.child_processes > 0)
      out.push_back(finding_of("program.range_in_child_process", Grade::kWarn,
                               of(range) + "opened in " +
                                   base::counted(range.processes, "process") + ", " +
                                   std::to_string(range.child_processes) +
                                   " of them started by another process of the program"));
  return out;
}

Findings check_replay(const ProgramLook& look) {
  if (!gpu_known(look.facts)) return {};
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.seen.empty()) continue;
    if (range.first_cuda_call_inside)
      out.push_back(finding_of(
          "program.context_inside", Grade::kWarn,
          of(range) + "the first CUDA call of the process is inside" +
              (range.median_ns > 0
                   ? "; its first instance takes " +
                         base::format_ns(static_cast<double>(range.first_ns)) + ", the median " +
                         base::format_ns(static_cast<double>(range.median_ns))
                   : "")));
    std::map<std::string, std::string> by_cause;
    for (const auto& [api, count] : range.calls) {
      const std::string reason = collect::range_replay_refuses(api);
      if (reason.empty()) continue;
      const std::string cause = reason == "CUDA graphs"                 ? "program.graphs_inside"
                                : reason == "stream-ordered allocation" ? "program.async_allocation"
                                                                        : "program.calls_inside";
      std::string& text = by_cause[cause];
      text += (text.empty() ? "" : ", ") + api + " (" + base::counted(count, "time") +
              (cause == "program.calls_inside" && reason != api ? "; " + reason : "") + ")";
    }
    if (range.graph_launches > 0 && !by_cause.contains("program.graphs_inside"))
      by_cause["program.graphs_inside"] = base::counted(range.graph_launches, "graph launch");
    for (const auto& [cause, text] : by_cause)
      out.push_back(finding_of(cause, Grade::kWarn, of(range) + text));
    if (range.contexts > 1)
      out.push_back(finding_of(
          "program.several_contexts", Grade::kWarn,
          of(range) + base::counted(range.contexts, "CUDA context") + " in one process"));
  }
  return out;
}

Findings check_alike(const ProgramLook& look) {
  if (!gpu_known(look.facts)) return {};
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.kernels + range.graph_launches == 0 || range.sequences.size() < 2 ||
        range.only_first_differs)
      continue;
    std::uint64_t all = 0;
    for (const std::uint64_t count : range.sequences) all += count;
    out.push_back(finding_of("program.occurrences_differ", Grade::kWarn,
                             of(range) + std::to_string(range.sequences.size()) +
                                 " different sequences of kernels in " +
                                 base::counted(all, "instance") + "; the most frequent one in " +
                                 std::to_string(range.sequences.front())));
  }
  return out;
}

Findings check_late(const ProgramLook& look) {
  if (!gpu_known(look.facts)) return {};
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.late_occurrences == 0) continue;
    Finding finding =
        finding_of("program.work_ends_later", Grade::kOk,
                   of(range) + "kernels of " + std::to_string(range.late_occurrences) + " of " +
                       base::counted(range.occurrences, "instance") + " still run when it ends");
    finding.hint.clear();
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace rangescope::doctor
