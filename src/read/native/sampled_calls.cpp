#include "read/native/sampled_calls.hpp"

#include <algorithm>
#include <map>
#include <numeric>
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

Meaning meaning_of(const model::CpuFrame& frame, const wire::Functions& functions,
                   model::Session& session) {
  Meaning out;
  std::string_view name = session.strings.view(frame.name);
  const std::string file(session.strings.view(frame.file));
  if (name == "Module._call_impl" || name == "Module._wrapped_call_impl") {
    out.calls_module = file.ends_with("torch/nn/modules/module.py");
  } else {
    out.function = functions.find(file.c_str(), std::string(name).c_str());
    if (!name.ends_with(".forward")) return out;
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

/// Of each stack.
std::vector<Chain> chains_of(const PythonRegions& wanted, const wire::Functions& functions,
                             model::Session& session, ModuleCalls& calls) {
  const model::CpuProfile& cpu = session.cpu;
  std::vector<Meaning> meanings(cpu.frames.size());
  for (std::size_t f = 0; f < cpu.frames.size(); ++f)
    if (cpu.frames[f].kind == model::FrameKind::kPython)
      meanings[f] = meaning_of(cpu.frames[f], functions, session);
  std::map<std::tuple<std::uint32_t, model::StringId, bool>, std::uint32_t> numbers;
  std::vector<Chain> chains(cpu.stacks.size());
  for (std::size_t s = 0; s < cpu.stacks.size(); ++s) {  // parents come first
    Chain& chain = chains[s];
    if (cpu.stacks[s].parent != kNone) chain = chains[cpu.stacks[s].parent];
    const model::CpuFrame& frame = cpu.frames[cpu.stacks[s].frame];
    if (frame.kind != model::FrameKind::kPython) continue;
    (frame.file == 0 && session.strings.view(frame.name) == model::kNotRead ? chain.unread
                                                                            : chain.python) = true;
    const auto enter = [&](model::StringId name, bool function) {
      chain.function = function ? name : 0;
      if (chain.levels == wanted.levels) return;
      const auto [at, fresh] = numbers.try_emplace({chain.number, name, function},
                                                   static_cast<std::uint32_t>(numbers.size() + 1));
      if (fresh)
        calls.define(at->second, chain.number, "", session.strings.view(name), function, session);
      chain.number = at->second;
      ++chain.levels;
    };
    const Meaning& meaning = meanings[cpu.stacks[s].frame];
    chain.calling |= meaning.calls_module;
    if (chain.calling && meaning.forward_of != 0) {
      chain.calling = false;
      enter(meaning.forward_of, false);
    }
    if (meaning.function == 0) continue;
    const std::string own(session.strings.view(frame.name));
    std::string_view shown = functions.name_of(meaning.function, own.c_str());
    std::size_t argument = 0;
    const char* attribute = nullptr;
    if (functions.by_argument(meaning.function, argument, attribute))
      shown = shown.substr(0, shown.find('|'));
    if (shown.find('|') != std::string_view::npos)
      continue;  // samples do not tell one step from the next
    const model::StringId name = session.strings.intern(shown);
    if (name != chain.function) enter(name, true);  // one that calls itself is one call
  }
  return chains;
}

/// The session's thread; kNone where not even its process is known.
std::uint32_t thread_of(model::CpuThread& thread, std::int64_t at_ns, model::Session& session) {
  if (thread.thread != kNone) return thread.thread;
  std::uint32_t process = kNone;
  for (std::uint32_t p = 0; p < session.processes.size(); ++p)
    if (session.processes[p].pid == thread.pid &&
        (process == kNone || session.processes[p].start_ns <= at_ns))
      process = p;
  if (process == kNone) return kNone;
  thread.thread = static_cast<std::uint32_t>(session.threads.size());
  session.threads.push_back({process, thread.tid, thread.name});
  return thread.thread;
}

/// Each covers the time halfway to the next, at most `half_ns`, and for none beyond what `borders`
/// has on a side.
void widen(std::vector<ModuleCalls::Step>& steps, std::int64_t half_ns,
           std::vector<std::int64_t>& borders) {
  std::sort(borders.begin(), borders.end());
  std::int64_t before = steps.front().start_ns - 2 * half_ns;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto& [start, end, module, same] = steps[i];
    const std::int64_t after = i + 1 < steps.size() ? steps[i + 1].start_ns : end + 2 * half_ns;
    const auto above = std::lower_bound(borders.begin(), borders.end(), end);
    const auto below = std::upper_bound(borders.begin(), borders.end(), start);
    start = std::max(start - half_ns, std::midpoint(before, start));
    if (below != borders.begin()) start = std::max(start, *std::prev(below));
    before = end;
    end = std::max(start, std::min(end + half_ns, std::midpoint(end, after)));
    if (above != borders.end()) end = std::min(end, *above);
  }
}

}  // namespace

void PythonRegions::take(std::string_view key, std::string_view value) {
  if (key == wire::cpu::kModulesKey) {
    wanted = value != "off";
    levels = std::clamp<std::uint64_t>(base::to_uint(value).value_or(64), 1, 64);
  }
  if (key == wire::cpu::kFunctionsKey) functions += std::string(value) + "\n";
  if (key == wire::cpu::kPhasesKey) phases += std::string(value) + (value == "off" ? "" : "\n");
}

void add_sampled_calls(PythonRegions wanted, model::Session& session) {
  if (!wanted.wanted || !session.launches.empty()) return;
  model::CpuProfile& cpu = session.cpu;
  wire::Functions functions;
  functions.choose(wanted.phases.data(), wanted.functions.data());
  ModuleCalls calls;
  const std::vector<Chain> chains = chains_of(wanted, functions, session, calls);
  std::vector<std::vector<ModuleCalls::Step>> steps(cpu.threads.size());
  std::vector<char> inside(cpu.threads.size());
  const auto add = [&](std::uint32_t thread, std::uint32_t stack, std::int64_t start_ns,
                       std::int64_t end_ns) {
    if (stack == kNone || !chains[stack].python || chains[stack].unread) return;  // nobody knows
    steps[thread].push_back({start_ns, end_ns, chains[stack].number, 64});
    inside[thread] |= static_cast<char>(chains[stack].number != 0);
  };
  for (const model::CpuSample& each : cpu.samples)
    add(each.thread, each.stack, each.at_ns, each.at_ns);
  for (const model::CpuWait& each : cpu.waits)
    add(each.thread, each.stack, each.start_ns, each.end_ns);
  ModuleCalls::Steps by_thread;
  for (std::uint32_t t = 0; t < steps.size(); ++t) {
    if (inside[t] == 0) continue;
    std::stable_sort(steps[t].begin(), steps[t].end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    const std::uint32_t thread = thread_of(cpu.threads[t], steps[t].front().start_ns, session);
    if (thread != kNone) by_thread[thread] = std::move(steps[t]);
  }
  std::map<std::uint32_t, std::vector<std::int64_t>> borders;
  for (const auto& [thread, of] : by_thread) borders[thread] = {session.begin_ns};
  for (const model::Range& range : session.ranges)
    if (const auto of = borders.find(range.thread);
        of != borders.end() && range.kind == model::RangeKind::kPushPop)
      of->second.insert(of->second.end(), {range.start_ns, range.end_ns});
  for (auto& [thread, of] : by_thread) widen(of, cpu.interval_ns / 2, borders[thread]);
  const std::size_t before = session.ranges.size();
  calls.place(std::move(by_thread), false, session);
  if (session.ranges.size() > before)
    session.losses.push_back(
        {"sampled_regions", session.ranges.size() - before,
         "Python functions and modules are regions built from CPU samples, one per " +
             base::format_ns(static_cast<double>(cpu.interval_ns)) +
             " of CPU time: their times are estimates, and their calls are not counted."});
}

}  // namespace rangescope::read::native
