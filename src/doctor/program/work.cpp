// Checks of what happens inside the ranges that were meant: GPU work, and what replay can make of
// it.
#include <fmt/format.h>

#include <map>
#include <optional>

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

/// "12 kernels, 3 graph launches; incomplete: ...": what was recorded of the whole program.
std::string recorded_work(const ProgramFacts& facts) {
  std::string text = base::counted(facts.kernels, "kernel");
  if (facts.graph_launches > 0)
    text += ", " + base::counted(facts.graph_launches, "graph launch");
  if (!facts.gpu_lost.empty())
    text += "; incomplete: " + base::printable(facts.gpu_lost);
  return text;
}

/// "decode: 12 kernels and 3 graph launches in 4 instances"
std::string work_inside_text(const RangeFacts& range) {
  std::string text = of(range) + base::counted(range.kernels, "kernel");
  if (range.graph_launches > 0)
    text += " and " + base::counted(range.graph_launches, "graph launch");
  return text + " in " + base::counted(range.occurrences, "instance");
}

std::uint64_t own_work(const RangeFacts& range) {
  return range.kernels + range.graph_launches;
}

Grade grade_without(std::uint64_t work) {
  return work == 0 ? Grade::kFail : Grade::kWarn;
}

/// Work that other threads launched meanwhile. Threads that have ranges of their own matter only to
/// a range that has no other work.
std::optional<Finding> work_of_other_threads(const RangeFacts& range) {
  const std::uint64_t own_kernels = own_work(range);
  const std::uint64_t elsewhere =
      own_kernels == 0 ? range.other_thread_kernels : range.bare_kernels;
  if (elsewhere == 0)
    return std::nullopt;
  return finding_of("program.work_on_other_threads",
                    grade_without(own_kernels),
                    fmt::format("{}{} by {} while it was open, {} by its own",
                                of(range),
                                base::counted(elsewhere, "kernel"),
                                base::counted(range.other_threads, "other thread"),
                                own_kernels));
}

std::optional<Finding> work_of_child_processes(const RangeFacts& range) {
  if (range.child_kernels == 0)
    return std::nullopt;
  const std::uint64_t own_kernels = own_work(range);
  return finding_of("program.work_in_child_process",
                    grade_without(own_kernels),
                    fmt::format("{}{} by child processes while it was open, {} by its own",
                                of(range),
                                base::counted(range.child_kernels, "kernel"),
                                own_kernels));
}

Finding no_chosen_kernel(const RangeFacts& range) {
  constexpr std::size_t kMostNames = 5;
  std::vector<std::string> names;
  std::uint64_t kernels = 0;
  for (const auto& [name, count] : range.left_out) {
    kernels += count;
    if (names.size() < kMostNames)
      names.push_back(base::printable(name));
  }
  const bool has_more = range.left_out.size() > names.size();
  if (has_more)
    names.emplace_back("...");
  return finding_of("program.no_such_kernel",
                    Grade::kFail,
                    fmt::format("{}{} inside, none of them chosen: {}",
                                of(range),
                                base::counted(kernels, "kernel"),
                                base::join(names, ", ")));
}

/// The most frequent ranges that have kernels: "prefill (12 kernels), sample (4 kernels)".
std::string ranges_with_work(const ProgramFacts& facts) {
  constexpr std::size_t kMostRanges = 3;
  std::vector<std::string> texts;
  for (const SeenRange& range : facts.ranges)
    if (range.kernels > 0 && texts.size() < kMostRanges)
      texts.push_back(fmt::format(
          "{} ({})", base::printable(range.shown()), base::counted(range.kernels, "kernel")));
  return base::join(texts, ", ");
}

Finding no_work_inside(const RangeFacts& range, const ProgramFacts& facts) {
  std::string found = of(range) + "no kernel in " + base::counted(range.occurrences, "instance");
  if (range.copies + range.memsets > 0)
    found += fmt::format("; {} and {} are inside",
                         base::counted(range.copies, "copy"),
                         base::counted(range.memsets, "memset"));
  if (facts.kernels > 0)
    found += "; the program launches " + base::counted(facts.kernels, "kernel") + " elsewhere";
  else
    found += "; the program launches none at all";
  if (facts.orphan_kernels > 0)
    found += "; of " + base::counted(facts.orphan_kernels, "kernel") +
             " the launching call is not known";
  Finding finding = finding_of("program.no_work_inside", Grade::kFail, std::move(found));
  const std::string candidates = ranges_with_work(facts);
  if (!candidates.empty())
    finding.hint = "Put the range around the launches, or name one that has some: " + candidates;
  return finding;
}

/// Why a range launches nothing by itself.
std::optional<Finding> why_without_work(const RangeFacts& range, const ProgramFacts& facts) {
  if (own_work(range) > 0)
    return std::nullopt;
  const bool others_work = range.other_thread_kernels > 0 || range.child_kernels > 0;
  if (!others_work && range.blind == range.occurrences)
    return skipped(of(range) +
                   "the program was ended before the GPU work of this range was written out");
  if (!range.left_out.empty())
    return no_chosen_kernel(range);
  if (!others_work)
    return no_work_inside(range, facts);
  return std::nullopt;
}

/// The kind of cause for which range replay refuses a call.
std::string cause_of_refusal(std::string_view reason) {
  if (reason == "CUDA graphs")
    return "program.graphs_inside";
  if (reason == "stream-ordered allocation")
    return "program.async_allocation";
  return "program.calls_inside";
}

/// The calls inside that range replay refuses, by cause: "cuMemAlloc (3 times), cuMemFree (2
/// times)".
std::map<std::string, std::string> refused_calls(const RangeFacts& range) {
  std::map<std::string, std::string> calls_by_cause;
  for (const auto& [api, count] : range.calls) {
    const std::string reason = collect::range_replay_refuses(api);
    if (reason.empty())
      continue;
    const std::string cause = cause_of_refusal(reason);
    std::string details = base::counted(count, "time");
    if (cause == "program.calls_inside" && reason != api)
      details += "; " + reason;
    std::string& calls = calls_by_cause[cause];
    if (!calls.empty())
      calls += ", ";
    calls += fmt::format("{} ({})", api, details);
  }
  if (range.graph_launches > 0)
    calls_by_cause.try_emplace("program.graphs_inside",
                               base::counted(range.graph_launches, "graph launch"));
  return calls_by_cause;
}

Finding context_inside(const RangeFacts& range) {
  std::string found = of(range) + "the first CUDA call of the process is inside";
  if (range.median_ns > 0)
    found += fmt::format("; its first instance takes {}, the median {}",
                         base::format_ns(static_cast<double>(range.first_ns)),
                         base::format_ns(static_cast<double>(range.median_ns)));
  return finding_of("program.context_inside", Grade::kWarn, std::move(found));
}

}  // namespace

Findings check_cuda(const ProgramLook& look) {
  if (look.not_started)
    return {};
  const ProgramFacts& facts = look.facts;
  if (facts.cuda && facts.gpu_unavailable.empty())
    return {well(recorded_work(facts))};
  if (facts.cuda)
    return {finding_of(
        "program.gpu_not_recorded", Grade::kWarn, base::printable(facts.gpu_unavailable))};
  // A program without a GPU is a program all the same: only ncu has nothing to do there.
  const bool decides = look.failed && look.failed->tool == "ncu";
  if (facts.processes == 0 && !decides)
    return {};  // nothing was seen at all: program.no_nvtx reports it
  std::string found = "no process of it loaded CUDA";
  if (facts.processes > 0)
    found = "CUDA was not initialised in any of " + base::counted(facts.processes, "process");
  return {finding_of("program.no_cuda", decides ? Grade::kFail : Grade::kWarn, std::move(found))};
}

Findings check_work(const ProgramLook& look) {
  if (!gpu_known(look.facts))
    return {};
  std::vector<Finding> out;
  std::vector<std::string> ranges_at_work;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.seen.empty())
      continue;
    for (std::optional<Finding> finding : {work_of_other_threads(range),
                                           work_of_child_processes(range),
                                           why_without_work(range, look.facts)})
      if (finding)
        out.push_back(std::move(*finding));
    if (own_work(range) > 0)
      ranges_at_work.push_back(work_inside_text(range));
  }
  if (out.empty() && !ranges_at_work.empty())
    out.push_back(well(base::join(ranges_at_work, ", ")));
  return out;
}

Findings check_processes(const ProgramLook& look) {
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant)
    if (range.child_processes > 0)
      out.push_back(finding_of(
          "program.range_in_child_process",
          Grade::kWarn,
          fmt::format("{}opened in {}, {} of them started by another process of the program",
                      of(range),
                      base::counted(range.processes, "process"),
                      range.child_processes)));
  return out;
}

Findings check_replay(const ProgramLook& look) {
  if (!gpu_known(look.facts))
    return {};
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.seen.empty())
      continue;
    if (range.first_cuda_call_inside)
      out.push_back(context_inside(range));
    for (const auto& [cause, calls] : refused_calls(range))
      out.push_back(finding_of(cause, Grade::kWarn, of(range) + calls));
    if (range.contexts > 1)
      out.push_back(finding_of(
          "program.several_contexts",
          Grade::kWarn,
          of(range) + base::counted(range.contexts, "CUDA context") + " in one process"));
  }
  return out;
}

Findings check_alike(const ProgramLook& look) {
  if (!gpu_known(look.facts))
    return {};
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant) {
    if (own_work(range) == 0 || range.sequences.size() < 2 || range.only_first_differs)
      continue;
    std::uint64_t instances = 0;
    for (const std::uint64_t count : range.sequences)
      instances += count;
    out.push_back(finding_of(
        "program.occurrences_differ",
        Grade::kWarn,
        fmt::format("{}{} different sequences of kernels in {}; the most frequent one in {}",
                    of(range),
                    range.sequences.size(),
                    base::counted(instances, "instance"),
                    range.sequences.front())));
  }
  return out;
}

Findings check_late(const ProgramLook& look) {
  if (!gpu_known(look.facts))
    return {};
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.late_occurrences == 0)
      continue;
    Finding finding = finding_of("program.work_ends_later",
                                 Grade::kOk,
                                 fmt::format("{}kernels of {} of {} still run when it ends",
                                             of(range),
                                             range.late_occurrences,
                                             base::counted(range.occurrences, "instance")));
    finding.hint.clear();
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace rangescope::doctor
