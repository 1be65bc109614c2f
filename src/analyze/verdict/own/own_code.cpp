// A program without ranges: which of its own functions cost the CPU time, and which wait while work
// is delayed.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/program.hpp"

namespace rangescope::analyze {
namespace {

using base::format_ns;
using model::CpuWaitRow;
using model::CpuWork;
using model::WaitKind;

constexpr std::int64_t kEnoughSamples = 10;  ///< of a function: fewer name nothing
constexpr double kWorthALine = 0.1;          ///< of the run
constexpr double kSecondCause = 0.05;        ///< of the run: named in the same line
/// Of its caller's time: a library function with less is not named.
constexpr double kHottestCallee = 0.3;
/// Of a function's CPU time, in callbacks of an event loop: it blocks the loop.
constexpr double kMostlyInEventLoop = 0.5;

/// A thread that waits while it holds a lock makes others wait that could work: a thread that just
/// sleeps may have nothing to do.
constexpr double kHoldsOthersUp = 1.5;

/// How surely such a wait is the cause and not the consequence of what another thread, process or
/// machine does.
double weight_of(const CpuWaitRow& wait) {
  if (wait.holds_up.known())
    return kHoldsOthersUp;
  switch (wait.kind) {
    case WaitKind::kSleep: return 1;
    case WaitKind::kLock:
    case WaitKind::kChild: return 0.5;
    default: return 0.35;
  }
}

bool keeps_from_running(const model::CpuPart& part) {
  return part.kind == "waiting" && (part.name == "preempted" || part.name == "GIL");
}

/// Time in which threads wanted to run: the CPU time, and waits for a core or for the interpreter.
double wanted_ns(const CpuWork& cpu) {
  double wanted = cpu.cpu_ns();
  for (const model::CpuPart& part : cpu.parts)
    if (keeps_from_running(part))
      wanted += part.ns;
  return wanted;
}

/// "; 41 % waiting for the GIL": what keeps threads from running that want to.
std::string waits_to_run_text(const CpuWork& cpu, const model::RunInfo& run) {
  std::string text;
  for (const model::CpuPart& part : cpu.parts) {
    const double share = part.ns / cpu.whole_ns();
    if (keeps_from_running(part) && share >= kWorthALine)
      text += fmt::format("; {} {}", share_text(share), part_text(part, 0, run));
  }
  return text;
}

bool blocks_event_loop(const model::CpuFunction& function) {
  return function.event_loop_ns > 0 &&
         function.event_loop_ns >= kMostlyInEventLoop * function.self_ns;
}

/// ", 31 % of it in memcmp": the library function that it spends most in; "" without a large one.
std::string hottest_callee_text(const CpuWork& cpu, const model::CpuFunction& function) {
  const auto hottest = std::ranges::max_element(cpu.functions, {}, &model::CpuFunction::self_ns);
  if (hottest == cpu.functions.end() || hottest->frame == function.frame)
    return {};
  const bool is_called_by_it = hottest->caller == function.place();
  const bool has_name = !hottest->names_its_module();
  if (!is_called_by_it || !has_name)
    return {};
  if (hottest->self_ns < kHottestCallee * function.self_ns)
    return {};
  return fmt::format(
      ", {} of it in {}", share_text(hottest->self_ns / function.self_ns), hottest->name);
}

std::string cpu_text(const CpuWork& cpu, const model::CpuFunction& function) {
  const double all_cpu_ns = cpu.cpu_ns();
  std::string text = fmt::format("{} of the CPU time ({} of {})",
                                 share_text(function.self_ns / all_cpu_ns),
                                 format_ns(function.self_ns),
                                 format_ns(all_cpu_ns));
  text += hottest_callee_text(cpu, function);
  if (blocks_event_loop(function))
    text += "; blocks the event loop for " + format_ns(function.event_loop_ns) + " in all";
  return text;
}

constexpr std::pair<WaitKind, std::string_view> kAwaitedByKind[] = {
    {WaitKind::kLock, " for a lock"},
    {WaitKind::kChild, " for a child process"},
    {WaitKind::kIo, " for I/O"}};

/// "sleeps", "waits for I/O", or with a time "sleeps 3 s", "waits 3 s for I/O".
std::string waiting_text(WaitKind wait, const std::string& time = {}) {
  std::string text = wait == WaitKind::kSleep ? "sleeps" : "waits";
  if (!time.empty())
    text += " " + time;
  for (const auto& [kind, awaited] : kAwaitedByKind)
    if (kind == wait)
      text += awaited;
  return text;
}

std::string wait_text(const CpuWaitRow& wait) {
  std::string text = waiting_text(wait.kind, format_ns(wait.total_ns));
  if (wait.count > 1)
    text += fmt::format(" ({} times)", base::format_count(wait.count));
  if (wait.event_loop)
    text += " in the event loop's thread";
  if (wait.meanwhile.known())
    text += fmt::format(", held by a thread that runs {}", place_text(wait.meanwhile));
  if (wait.holder_waits.known())
    text += fmt::format(", held by a thread that {} in {}",
                        waiting_text(wait.holder_waits_for),
                        place_text(wait.holder_waits));
  if (wait.holds_up.known())
    text += fmt::format(" while it holds a lock that {} waits for", place_text(wait.holds_up));
  return text;
}

bool delays_own_code(const CpuWaitRow& wait) {
  return wait.own && !wait.idle;
}

/// The wait that delays most; null where none of the program's own functions does.
const CpuWaitRow* worst_wait(const model::Report& report) {
  const CpuWaitRow* worst = nullptr;
  const auto cost = [](const CpuWaitRow& wait) { return wait.blocked_ns * weight_of(wait); };
  for (const CpuWaitRow& wait : report.waits) {
    if (!delays_own_code(wait))
      continue;
    if (worst == nullptr || cost(wait) > cost(*worst))
      worst = &wait;
  }
  return worst;
}

/// Functions that each waited for a lock until the program was ended, in at least two threads; else
/// empty. A program that ends by itself had no deadlock.
std::vector<const CpuWaitRow*> deadlocked(const model::Report& report) {
  std::vector<const CpuWaitRow*> waits;
  if (report.run.exit_code == 0)
    return waits;
  std::int64_t threads = 0;
  for (const CpuWaitRow& wait : report.waits) {
    const bool waits_forever = wait.to_the_end && wait.kind == WaitKind::kLock;
    if (!delays_own_code(wait) || !waits_forever)
      continue;
    waits.push_back(&wait);
    threads += wait.threads;
  }
  if (threads < 2)
    waits.clear();
  return waits;
}

model::Verdict deadlock_verdict(const Case& facts, const std::vector<const CpuWaitRow*>& waits) {
  std::vector<std::string> places;
  double longest_ns = 0;
  for (const CpuWaitRow* wait : waits) {
    places.push_back(place_text(wait->place));
    longest_ns = std::max(longest_ns, wait->blocked_ns);
  }
  std::string text = fmt::format(
      "wait for locks to the end of the recording ({}): a deadlock, if each has what another "
      "one waits for",
      format_ns(longest_ns));
  model::Verdict verdict = facts.about_run("deadlock", std::move(text), longest_ns);
  verdict.path = base::join(places, " and ");
  verdict.evidence = {{"waiting_ns", longest_ns}, {"functions", static_cast<double>(waits.size())}};
  verdict.next = facts.show("--cpu program");
  return verdict;
}

/// What the first line can name: a function, what it does, and how much of the run that is.
struct Cause {
  std::string_view kind;
  std::string place, text;
  double share = 0;   ///< of the run
  double weight = 1;  ///< how surely it is no consequence of another one
  bool blocks_event_loop = false;
  bool holds_a_lock = false;
};

std::optional<Cause> cpu_cause(const model::Report& report, const CpuWork& cpu) {
  if (cpu.own_functions.empty())
    return std::nullopt;
  const model::CpuFunction& function = cpu.own_functions.front();
  if (function.self_ns < static_cast<double>(kEnoughSamples) * cpu.interval_ns)
    return std::nullopt;
  const double wanted = function.self_ns / cpu.cpu_ns() * wanted_ns(cpu);
  return Cause{.kind = "own_function",
               .place = place_text(function.place()),
               .text = cpu_text(cpu, function),
               .share = std::min(1.0, wanted / report.run.duration_ns),
               .blocks_event_loop = blocks_event_loop(function)};
}

Cause cause_of_wait(const model::Report& report, const CpuWaitRow& wait) {
  return Cause{.kind = "own_wait",
               .place = place_text(wait.place),
               .text = wait_text(wait),
               .share = wait.blocked_ns / report.run.duration_ns,
               .weight = weight_of(wait),
               .blocks_event_loop = wait.event_loop,
               .holds_a_lock = wait.holds_up.known()};
}

std::optional<Cause> wait_cause(const model::Report& report) {
  const CpuWaitRow* wait = worst_wait(report);
  return wait == nullptr ? std::nullopt : std::optional(cause_of_wait(report, *wait));
}

/// The wait for a lock under which a function runs; null where there is none.
const CpuWaitRow* wait_for_holder(const model::Report& report, const std::string& function) {
  const auto is_held_by_it = [&](const CpuWaitRow& wait) {
    return delays_own_code(wait) && wait.meanwhile.known() &&
           place_text(wait.meanwhile) == function;
  };
  const auto wait = std::ranges::find_if(report.waits, is_held_by_it);
  return wait == report.waits.end() ? nullptr : &*wait;
}

/// The surest cause first; at most two. The second of a function is the wait for its lock, if there
/// is one, and not a longer wait for something else.
std::vector<Cause> causes_of(const model::Report& report, const CpuWork& cpu) {
  std::vector<Cause> causes;
  for (const std::optional<Cause>& cause : {cpu_cause(report, cpu), wait_cause(report)})
    if (cause && cause->share >= kSecondCause)
      causes.push_back(*cause);
  std::ranges::stable_sort(
      causes, std::greater<>(), [](const Cause& cause) { return cause.share * cause.weight; });
  if (causes.empty() || causes.front().kind != "own_function")
    return causes;
  if (const CpuWaitRow* wait = wait_for_holder(report, causes.front().place)) {
    const Cause held_up = cause_of_wait(report, *wait);
    if (held_up.share >= kSecondCause)
      causes = {causes.front(), held_up};
  }
  return causes;
}

}  // namespace

void find_own_code(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  const bool gpu_work = report.total && (report.total->kernels > 0 || report.total->copies > 0);
  if (!model::is_program(report) || gpu_work || !(report.run.duration_ns > 0))
    return;
  const auto waits = deadlocked(report);
  if (!waits.empty()) {
    out.push_back(deadlock_verdict(facts, waits));
    return;
  }
  const model::Region& program = report.regions.front();
  if (!program.cpu)
    return;
  const std::vector<Cause> causes = causes_of(report, *program.cpu);
  if (causes.empty() || causes.front().share < kWorthALine)
    return;
  const Cause& first = causes.front();
  std::string text = first.text;
  if (causes.size() > 1)
    text += "; " + causes.back().place + ": " + causes.back().text;
  text += waits_to_run_text(*program.cpu, report.run);
  model::Verdict verdict =
      facts.about_run(first.kind, std::move(text), first.share * report.run.duration_ns);
  verdict.path = first.place;
  for (const Cause& cause : causes)
    verdict.evidence[std::string(cause.kind) + "_share"] = cause.share;
  if (first.blocks_event_loop)
    verdict.evidence["blocks_event_loop"] = 1;
  if (first.holds_a_lock)
    verdict.evidence["holds_a_lock"] = 1;
  verdict.next = facts.show("--cpu program");
  out.push_back(std::move(verdict));
}

}  // namespace rangescope::analyze
