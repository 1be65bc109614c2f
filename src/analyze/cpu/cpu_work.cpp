#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analyze/cpu/cpu.hpp"
#include "analyze/cpu/other_threads.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {

using model::CpuWork;
using model::kMostFunctions;

namespace {

/// Adds each of `from` to the one of `to` that is `same`, by `sum`; new ones go behind the others.
template <class T>
void add_all(std::vector<T>& to, const std::vector<T>& from, auto same, auto sum) {
  for (const T& added : from) {
    const auto row = std::ranges::find_if(to, [&](const T& kept) { return same(kept, added); });
    if (row == to.end())
      to.push_back(added);
    else
      sum(*row, added);
  }
}

void sum_parts(model::CpuPart& to, const model::CpuPart& from) {
  to.ns += from.ns;
  to.gpu_idle_ns += from.gpu_idle_ns;
}

/// `time`: what the functions are ordered by.
void add_functions(std::vector<model::CpuFunction>& to,
                   const std::vector<model::CpuFunction>& from,
                   double model::CpuFunction::*time) {
  const auto same = [](const auto& a, const auto& b) { return a.frame == b.frame; };
  add_all(to, from, same, [](model::CpuFunction& sum, const model::CpuFunction& added) {
    sum.self_ns += added.self_ns;
    sum.total_ns += added.total_ns;
    sum.event_loop_ns += added.event_loop_ns;
  });
  std::stable_sort(
      to.begin(), to.end(), [time](const auto& a, const auto& b) { return a.*time > b.*time; });
  if (to.size() > kMostFunctions)
    to.resize(kMostFunctions);
}

void add_holders(std::vector<model::CpuHolder>& to, const std::vector<model::CpuHolder>& from) {
  const auto same = [](const auto& a, const auto& b) {
    return a.kind == b.kind && a.thread == b.thread && a.range == b.range;
  };
  add_all(to, from, same, [](auto& sum, const auto& added) { sum.ns += added.ns; });
  longest_holders(to);
}

void add_event_counts(std::vector<model::CpuCounterSum>& to,
                      const std::vector<model::CpuCounterSum>& from) {
  const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
  add_all(to, from, same, [](model::CpuCounterSum& sum, const model::CpuCounterSum& added) {
    sum.records += added.records;
    sum.count += added.count;
    sum.deviation = std::hypot(sum.deviation, added.deviation);
  });
}

/// Of a frame without a name.
std::string name_of_module(const std::string& module) {
  if (module.empty())
    return "(JIT)";
  if (module.starts_with('['))
    return module;
  return fmt::format("[{}]", base::file_name(module));
}

}  // namespace

std::string_view cuda_kind(std::string_view function) {
  const auto has = [&](std::string_view part) {
    return function.find(part) != std::string_view::npos;
  };
  if (has("Launch"))
    return "launch";
  if (has("Synchronize") || has("EventQuery") || has("StreamQuery"))
    return "synchronize";
  if (has("Memcpy"))
    return "copy";
  if (has("Memset"))
    return "set";
  constexpr std::string_view kAllocations[] = {"Malloc",
                                               "Free",
                                               "MemAlloc",
                                               "MemPool",
                                               "MemCreate",
                                               "MemMap",
                                               "HostRegister",
                                               "HostUnregister",
                                               "MemRelease"};
  if (std::ranges::any_of(kAllocations, has))
    return "allocate";
  if (has("Module") || has("Library") || has("GetFunction") || has("FuncLoad"))
    return "load";
  return "other";
}

model::CpuFunction function_of(const model::Session& session, std::uint32_t number) {
  const model::CpuFrame& frame = session.cpu.frames[number];
  model::CpuFunction function;
  function.name = session.strings.view(frame.name);
  function.module = session.strings.view(frame.module);
  if (function.name.empty())
    function.name = name_of_module(function.module);
  if (frame.kind == model::FrameKind::kCut)
    function.name = "(cut)";
  function.file = session.strings.view(frame.file);
  function.line = frame.line;
  function.python = frame.kind == model::FrameKind::kPython;
  function.frame = number;
  return function;
}

void add_cpu_work(CpuWork& into, const CpuWork& other) {
  into.samples += other.samples;
  sum_parts(into.python, other.python);
  sum_parts(into.native, other.native);
  sum_parts(into.cuda, other.cuda);
  sum_parts(into.waiting, other.waiting);
  const auto same_part = [](const auto& a, const auto& b) {
    return a.kind == b.kind && a.name == b.name;
  };
  add_all(into.parts, other.parts, same_part, sum_parts);
  std::ranges::stable_sort(into.parts, std::greater<>(), &model::CpuPart::ns);
  add_functions(into.functions, other.functions, &model::CpuFunction::self_ns);
  add_functions(into.callers, other.callers, &model::CpuFunction::total_ns);
  add_functions(into.own_functions, other.own_functions, &model::CpuFunction::self_ns);
  into.tree.clear();
  add_holders(into.holders, other.holders);
  into.pool_samples += other.pool_samples;
  into.pool_ns += other.pool_ns;
  into.stacks.insert(into.stacks.end(), other.stacks.begin(), other.stacks.end());
  add_event_counts(into.counters, other.counters);
}

namespace {

/// Where both are of the same part.
void subtract_part(model::CpuPart& part, const model::CpuPart& other) {
  if (part.kind == other.kind && part.name == other.name)
    part.ns = std::max(0.0, part.ns - other.ns);
}

void subtract_cpu_work(CpuWork& work, const CpuWork& other) {
  subtract_part(work.python, other.python);
  subtract_part(work.native, other.native);
  subtract_part(work.cuda, other.cuda);
  subtract_part(work.waiting, other.waiting);
  for (model::CpuPart& part : work.parts)
    for (const model::CpuPart& other_part : other.parts)
      subtract_part(part, other_part);
  for (model::CpuFunction& function : work.functions)
    for (const model::CpuFunction& other_function : other.functions)
      if (function.frame == other_function.frame)
        function.self_ns = std::max(0.0, function.self_ns - other_function.self_ns);
  work.samples = std::max<std::int64_t>(0, work.samples - other.samples);
}

}  // namespace

CpuWork own_cpu_work(const model::Report& report, const model::Region& region) {
  CpuWork own = *region.cpu;
  for (const model::Region& inside : report.regions)
    if (inside.parent == region.id && inside.cpu)
      subtract_cpu_work(own, *inside.cpu);
  std::ranges::stable_sort(own.parts, std::greater<>(), &model::CpuPart::ns);
  std::ranges::stable_sort(own.functions, std::greater<>(), &model::CpuFunction::self_ns);
  return own;
}

}  // namespace rangescope::analyze
