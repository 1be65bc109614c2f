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
  for (const T& one : from) {
    const auto known = std::ranges::find_if(to, [&](const T& each) { return same(each, one); });
    known == to.end() ? to.push_back(one) : sum(*known, one);
  }
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
  if (has("Malloc") || has("Free") || has("MemAlloc") || has("MemPool") || has("MemCreate") ||
      has("MemMap") || has("HostRegister") || has("HostUnregister") || has("MemRelease"))
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
    function.name = function.module.empty() ? "(JIT)"
                    : function.module.starts_with('[')
                        ? function.module
                        : fmt::format("[{}]", base::file_name(function.module));
  if (frame.kind == model::FrameKind::kCut)
    function.name = "(cut)";
  function.file = session.strings.view(frame.file);
  function.line = frame.line;
  function.python = frame.kind == model::FrameKind::kPython;
  function.frame = number;
  return function;
}

void add_cpu_work(CpuWork& into, const CpuWork& other) {
  const auto sum = [](model::CpuPart& to, const model::CpuPart& from) {
    to.ns += from.ns;
    to.gpu_idle_ns += from.gpu_idle_ns;
  };
  into.samples += other.samples;
  sum(into.python, other.python);
  sum(into.native, other.native);
  sum(into.cuda, other.cuda);
  sum(into.waiting, other.waiting);
  const auto same_part = [](const auto& a, const auto& b) {
    return a.kind == b.kind && a.name == b.name;
  };
  add_all(into.parts, other.parts, same_part, sum);
  std::ranges::stable_sort(into.parts, std::greater<>(), &model::CpuPart::ns);
  const auto functions = [](std::vector<model::CpuFunction>& to,
                            const std::vector<model::CpuFunction>& from,
                            double model::CpuFunction::*by) {
    const auto same = [](const auto& a, const auto& b) { return a.frame == b.frame; };
    add_all(to, from, same, [](model::CpuFunction& kept, const model::CpuFunction& more) {
      kept.self_ns += more.self_ns;
      kept.total_ns += more.total_ns;
      kept.event_loop_ns += more.event_loop_ns;
    });
    std::stable_sort(
        to.begin(), to.end(), [by](const auto& a, const auto& b) { return a.*by > b.*by; });
    if (to.size() > kMostFunctions)
      to.resize(kMostFunctions);
  };
  functions(into.functions, other.functions, &model::CpuFunction::self_ns);
  functions(into.callers, other.callers, &model::CpuFunction::total_ns);
  functions(into.own_functions, other.own_functions, &model::CpuFunction::self_ns);
  into.tree.clear();
  const auto same_holder = [](const auto& a, const auto& b) {
    return a.kind == b.kind && a.thread == b.thread && a.range == b.range;
  };
  add_all(into.holders, other.holders, same_holder, [](auto& to, const auto& from) {
    to.ns += from.ns;
  });
  longest_holders(into.holders);
  into.pool_samples += other.pool_samples;
  into.pool_ns += other.pool_ns;
  into.stacks.insert(into.stacks.end(), other.stacks.begin(), other.stacks.end());
  const auto same_event = [](const auto& a, const auto& b) { return a.name == b.name; };
  add_all(into.counters,
          other.counters,
          same_event,
          [](model::CpuCounterSum& to, const model::CpuCounterSum& from) {
            to.records += from.records;
            to.count += from.count;
            to.deviation = std::hypot(to.deviation, from.deviation);
          });
}

CpuWork own_cpu_work(const model::Report& report, const model::Region& region) {
  CpuWork own = *region.cpu;
  for (const model::Region& inside : report.regions) {
    if (inside.parent != region.id || !inside.cpu)
      continue;
    const auto less = [](model::CpuPart& part, const model::CpuPart& other) {
      if (part.kind == other.kind && part.name == other.name)
        part.ns = std::max(0.0, part.ns - other.ns);
    };
    for (model::CpuPart CpuWork::*part :
         {&CpuWork::python, &CpuWork::native, &CpuWork::cuda, &CpuWork::waiting})
      less(own.*part, (*inside.cpu).*part);
    for (model::CpuPart& part : own.parts)
      for (const model::CpuPart& other : inside.cpu->parts)
        less(part, other);
    for (model::CpuFunction& function : own.functions)
      for (const model::CpuFunction& other : inside.cpu->functions)
        if (function.frame == other.frame)
          function.self_ns = std::max(0.0, function.self_ns - other.self_ns);
    own.samples = std::max<std::int64_t>(0, own.samples - inside.cpu->samples);
  }
  std::ranges::stable_sort(own.parts, std::greater<>(), &model::CpuPart::ns);
  std::ranges::stable_sort(own.functions, std::greater<>(), &model::CpuFunction::self_ns);
  return own;
}

}  // namespace rangescope::analyze
