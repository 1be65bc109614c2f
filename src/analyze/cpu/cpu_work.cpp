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

void add_counter(std::vector<model::CpuCounterSum>& into, model::CpuCounterSum sum) {
  const auto same = std::find_if(into.begin(), into.end(), [&](const auto& each) { return each.name == sum.name; });
  if (same == into.end()) return into.push_back(std::move(sum));
  same->records += sum.records;
  same->count += sum.count;
  same->deviation = std::hypot(same->deviation, sum.deviation);
}

}  // namespace

std::string_view cuda_kind(std::string_view function) {
  const auto has = [&](std::string_view part) { return function.find(part) != std::string_view::npos; };
  if (has("Launch")) return "launch";
  if (has("Synchronize") || has("EventQuery") || has("StreamQuery")) return "synchronize";
  if (has("Memcpy")) return "copy";
  if (has("Memset")) return "set";
  if (has("Malloc") || has("Free") || has("MemAlloc") || has("MemPool") || has("MemCreate") || has("MemMap") ||
      has("HostRegister"))
    return "allocate";
  if (has("Module") || has("Library") || has("GetFunction") || has("FuncLoad")) return "load";
  return "other";
}

model::CpuFunction function_of(const model::Session& session, std::uint32_t number) {
  const model::CpuFrame& frame = session.cpu.frames[number];
  model::CpuFunction function;
  function.name = session.strings.view(frame.name);
  function.module = session.strings.view(frame.module);
  if (function.name.empty())
    function.name = function.module.empty()            ? "(JIT)"
                    : function.module.starts_with('[') ? function.module
                                                       : fmt::format("[{}]", base::file_name(function.module));
  if (frame.kind == model::FrameKind::kCut) function.name = "(cut)";
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
  for (const model::CpuPart& part : other.parts) {
    const auto same = std::find_if(into.parts.begin(), into.parts.end(),
                                   [&](const model::CpuPart& p) { return p.kind == part.kind && p.name == part.name; });
    same == into.parts.end() ? into.parts.push_back(part) : sum(*same, part);
  }
  std::ranges::stable_sort(into.parts, std::greater<>(), &model::CpuPart::ns);
  const auto functions = [](std::vector<model::CpuFunction>& to, const std::vector<model::CpuFunction>& from,
                            double model::CpuFunction::*by) {
    for (const model::CpuFunction& function : from) {
      const auto same =
          std::find_if(to.begin(), to.end(), [&](const model::CpuFunction& f) { return f.frame == function.frame; });
      if (same == to.end()) {
        to.push_back(function);
      } else {
        same->self_ns += function.self_ns;
        same->total_ns += function.total_ns;
      }
    }
    std::stable_sort(to.begin(), to.end(), [by](const auto& a, const auto& b) { return a.*by > b.*by; });
    if (to.size() > kMostFunctions) to.resize(kMostFunctions);
  };
  functions(into.functions, other.functions, &model::CpuFunction::self_ns);
  functions(into.callers, other.callers, &model::CpuFunction::total_ns);
  for (const model::CpuHolder& holder : other.holders) {
    const auto same = std::find_if(into.holders.begin(), into.holders.end(), [&](const model::CpuHolder& each) {
      return each.kind == holder.kind && each.thread == holder.thread && each.range == holder.range;
    });
    same == into.holders.end() ? into.holders.push_back(holder) : void(same->ns += holder.ns);
  }
  longest_holders(into.holders);
  into.pool_samples += other.pool_samples;
  into.pool_ns += other.pool_ns;
  into.stacks.insert(into.stacks.end(), other.stacks.begin(), other.stacks.end());
  for (const model::CpuCounterSum& counter : other.counters) add_counter(into.counters, counter);
}

CpuWork own_cpu_work(const model::Report& report, const model::Region& region) {
  CpuWork own = *region.cpu;
  for (const model::Region& inside : report.regions) {
    if (inside.parent != region.id || !inside.cpu) continue;
    const auto less = [](model::CpuPart& part, const model::CpuPart& other) {
      if (part.kind == other.kind && part.name == other.name) part.ns = std::max(0.0, part.ns - other.ns);
    };
    for (model::CpuPart CpuWork::*part : {&CpuWork::python, &CpuWork::native, &CpuWork::cuda, &CpuWork::waiting})
      less(own.*part, (*inside.cpu).*part);
    for (model::CpuPart& part : own.parts)
      for (const model::CpuPart& other : inside.cpu->parts) less(part, other);
    for (model::CpuFunction& function : own.functions)
      for (const model::CpuFunction& other : inside.cpu->functions)
        if (function.frame == other.frame) function.self_ns = std::max(0.0, function.self_ns - other.self_ns);
    own.samples = std::max<std::int64_t>(0, own.samples - inside.cpu->samples);
  }
  std::ranges::stable_sort(own.parts, std::greater<>(), &model::CpuPart::ns);
  std::ranges::stable_sort(own.functions, std::greater<>(), &model::CpuFunction::self_ns);
  return own;
}

}  // namespace rangescope::analyze
