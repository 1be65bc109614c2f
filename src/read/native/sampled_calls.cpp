#include "read/native/sampled_calls.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "read/native/modules.hpp"
#include "wire/cpu.hpp"
#include "wire/functions.hpp"

namespace rangescope::read::native {
namespace {

using model::kNone;

/// What a frame of Python means.
struct Meaning {
  bool calls_module = false;
  model::StringId forward_of = 0;  ///< the class
  std::size_t function = 0;        ///< wire::Functions::find()
};

Meaning meaning_of(const model::CpuFrame& frame,
                   const wire::Functions& functions,
                   model::Session& session) {
  Meaning out;
  std::string_view name = session.strings.view(frame.name);
  const std::string file(session.strings.view(frame.file));
  if (name == "Module._call_impl" || name == "Module._wrapped_call_impl") {
    out.calls_module = file.ends_with("torch/nn/modules/module.py");
  } else {
    out.function = functions.find(file.c_str(), std::string(name).c_str());
    if (!name.ends_with(".forward"))
      return out;
    name.remove_suffix(std::string_view(".forward").size());
    out.forward_of = session.strings.intern(name.substr(name.rfind('.') + 1));
  }
  return out;
}

/// Functions and modules around a stack.
struct Chain {
  std::uint32_t number = 0;  ///< in ModuleCalls
  std::uint32_t levels = 0;
  model::StringId function = 0;  ///< that its last level is
  bool calling = false;          ///< a module, whose forward comes
  bool python = false;           ///< frames of Python were read
  bool unread = false;           ///< some were not
};

/// Finds the chain of each stack, and defines its functions and modules in ModuleCalls.
class ChainBuilder {
 public:
  ChainBuilder(std::uint32_t max_levels,
               const wire::Functions& functions,
               model::Session& session,
               ModuleCalls& calls)
      : max_levels_(max_levels), functions_(functions), session_(session), calls_(calls) {}

  std::vector<Chain> build() {
    const model::CpuProfile& cpu = session_.cpu;
    std::vector<Meaning> meanings(cpu.frames.size());
    for (std::size_t f = 0; f < cpu.frames.size(); ++f)
      if (cpu.frames[f].kind == model::FrameKind::kPython)
        meanings[f] = meaning_of(cpu.frames[f], functions_, session_);
    std::vector<Chain> chains(cpu.stacks.size());
    for (std::size_t s = 0; s < cpu.stacks.size(); ++s) {  // parents come first
      const model::CpuStack& stack = cpu.stacks[s];
      if (stack.parent != kNone)
        chains[s] = chains[stack.parent];
      const model::CpuFrame& frame = cpu.frames[stack.frame];
      if (frame.kind == model::FrameKind::kPython)
        extend(chains[s], frame, meanings[stack.frame]);
    }
    return chains;
  }

 private:
  void extend(Chain& chain, const model::CpuFrame& frame, const Meaning& meaning) {
    const bool is_unread = frame.file == 0 && session_.strings.view(frame.name) == model::kNotRead;
    if (is_unread)
      chain.unread = true;
    else
      chain.python = true;
    chain.calling |= meaning.calls_module;
    if (chain.calling && meaning.forward_of != 0) {
      chain.calling = false;
      enter(chain, meaning.forward_of, false);
    }
    if (meaning.function == 0)
      return;
    const auto function = function_name(frame, meaning);
    const bool is_recursion = function == chain.function;  // one that calls itself is one call
    if (function && !is_recursion)
      enter(chain, *function, true);
  }

  /// Nothing where its steps have names of their own ("prefill|decode step"): samples do not
  /// distinguish one step from the next.
  [[nodiscard]] std::optional<model::StringId> function_name(const model::CpuFrame& frame,
                                                             const Meaning& meaning) {
    const std::string python_name(session_.strings.view(frame.name));
    std::string_view name = functions_.name_of(meaning.function, python_name.c_str());
    std::size_t argument = 0;
    const char* attribute = nullptr;
    if (functions_.by_argument(meaning.function, argument, attribute))
      name = name.substr(0, name.find('|'));
    const bool has_steps = name.find('|') != std::string_view::npos;
    if (has_steps)
      return std::nullopt;
    return session_.strings.intern(name);
  }

  void enter(Chain& chain, model::StringId name, bool is_function) {
    chain.function = is_function ? name : 0;
    if (chain.levels == max_levels_)
      return;
    const auto next_number = static_cast<std::uint32_t>(numbers_.size() + 1);
    const auto [entry, is_new] =
        numbers_.try_emplace({chain.number, name, is_function}, next_number);
    const std::uint32_t number = entry->second;
    if (is_new)
      calls_.define(number, chain.number, "", session_.strings.view(name), is_function, session_);
    chain.number = number;
    ++chain.levels;
  }

  const std::uint32_t max_levels_;
  const wire::Functions& functions_;
  model::Session& session_;
  ModuleCalls& calls_;
  /// Of a chain: the chain around it, its name, and whether that is a function's.
  std::map<std::tuple<std::uint32_t, model::StringId, bool>, std::uint32_t> numbers_;
};

/// The session's thread; kNone where not even its process is known.
std::uint32_t thread_of(model::CpuThread& thread, std::int64_t at_ns, model::Session& session) {
  if (thread.thread != kNone)
    return thread.thread;
  std::uint32_t process = kNone;
  for (std::uint32_t p = 0; p < session.processes.size(); ++p)
    if (session.processes[p].pid == thread.pid &&
        (process == kNone || session.processes[p].start_ns <= at_ns))
      process = p;
  if (process == kNone)
    return kNone;
  thread.thread = static_cast<std::uint32_t>(session.threads.size());
  session.threads.push_back({process, thread.tid, thread.name});
  return thread.thread;
}

/// Extends each step to halfway to the next one, by `half_ns` at most, and never beyond one of
/// `borders`.
void widen(std::vector<ModuleCalls::Step>& steps,
           std::int64_t half_ns,
           std::vector<std::int64_t>& borders) {
  std::sort(borders.begin(), borders.end());
  std::int64_t previous_end = steps.front().start_ns - 2 * half_ns;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto& [start, end, module, same] = steps[i];
    const std::int64_t next_start =
        i + 1 < steps.size() ? steps[i + 1].start_ns : end + 2 * half_ns;
    const auto border_after = std::lower_bound(borders.begin(), borders.end(), end);
    const auto first_above = std::upper_bound(borders.begin(), borders.end(), start);
    start = std::max(start - half_ns, std::midpoint(previous_end, start));
    if (first_above != borders.begin())
      start = std::max(start, *std::prev(first_above));
    previous_end = end;
    end = std::max(start, std::min(end + half_ns, std::midpoint(end, next_start)));
    if (border_after != borders.end())
      end = std::min(end, *border_after);
  }
}

/// The samples and waits of each thread that was in a function or module, by the session's threads.
ModuleCalls::Steps steps_of(const std::vector<Chain>& chains, model::Session& session) {
  constexpr std::uint32_t kAllLevels = 64;
  model::CpuProfile& cpu = session.cpu;
  std::vector<std::vector<ModuleCalls::Step>> steps(cpu.threads.size());
  std::vector<bool> has_chain(cpu.threads.size());
  const auto add =
      [&](std::uint32_t thread, std::uint32_t stack, std::int64_t start_ns, std::int64_t end_ns) {
        const bool is_known = stack != kNone && chains[stack].python && !chains[stack].unread;
        if (!is_known)
          return;
        steps[thread].push_back({start_ns, end_ns, chains[stack].number, kAllLevels});
        if (chains[stack].number != 0)
          has_chain[thread] = true;
      };
  for (const model::CpuSample& sample : cpu.samples)
    add(sample.thread, sample.stack, sample.at_ns, sample.at_ns);
  for (const model::CpuWait& wait : cpu.waits)
    add(wait.thread, wait.stack, wait.start_ns, wait.end_ns);
  ModuleCalls::Steps by_thread;
  for (std::uint32_t t = 0; t < steps.size(); ++t) {
    if (!has_chain[t])
      continue;
    std::ranges::stable_sort(steps[t], {}, &ModuleCalls::Step::start_ns);
    const std::uint32_t thread = thread_of(cpu.threads[t], steps[t].front().start_ns, session);
    if (thread != kNone)
      by_thread[thread] = std::move(steps[t]);
  }
  return by_thread;
}

void widen_within_ranges(ModuleCalls::Steps& by_thread, const model::Session& session) {
  std::map<std::uint32_t, std::vector<std::int64_t>> borders;
  for (const auto& [thread, steps] : by_thread)
    borders[thread] = {session.begin_ns};
  for (const model::Range& range : session.ranges) {
    const auto thread_borders = borders.find(range.thread);
    if (thread_borders == borders.end() || range.kind != model::RangeKind::kPushPop)
      continue;
    thread_borders->second.push_back(range.start_ns);
    thread_borders->second.push_back(range.end_ns);
  }
  for (auto& [thread, steps] : by_thread)
    widen(steps, session.cpu.interval_ns / 2, borders[thread]);
}

}  // namespace

void PythonRegions::take(std::string_view key, std::string_view value) {
  if (key == wire::cpu::kModulesKey) {
    wanted = value != "off";
    levels = std::clamp<std::uint64_t>(base::to_uint(value).value_or(64), 1, 64);
  }
  if (key == wire::cpu::kFunctionsKey)
    functions += std::string(value) + "\n";
  if (key == wire::cpu::kPhasesKey)
    phases += std::string(value) + (value == "off" ? "" : "\n");
}

void add_sampled_calls(PythonRegions wanted, model::Session& session) {
  if (!wanted.wanted || !session.launches.empty())
    return;
  wire::Functions functions;
  functions.choose(wanted.phases.data(), wanted.functions.data());
  ModuleCalls calls;
  const std::vector<Chain> chains =
      ChainBuilder(static_cast<std::uint32_t>(wanted.levels), functions, session, calls).build();
  ModuleCalls::Steps steps = steps_of(chains, session);
  widen_within_ranges(steps, session);
  const std::size_t ranges_before = session.ranges.size();
  calls.place(std::move(steps), false, session);
  const std::size_t added = session.ranges.size() - ranges_before;
  if (added == 0)
    return;
  std::string detail = "Python functions and modules are regions built from CPU samples, one per ";
  detail += base::format_ns(static_cast<double>(session.cpu.interval_ns));
  detail += " of CPU time: their times are estimates, and their calls are not counted.";
  session.losses.push_back({"sampled_regions", added, std::move(detail)});
}

}  // namespace rangescope::read::native
