#include "read/native/modules.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "read/open_ranges.hpp"

namespace rangescope::read::native {
void ModuleCalls::define(std::uint32_t number, std::uint32_t around, std::string_view name, std::string_view type,
                         bool function, model::Session& session) {
  const auto outer = modules_.find(around);
  Module made;
  if (outer != modules_.end()) made = outer->second;
  if (number == 0 || made.chain.size() >= 64) return;
  made.chain.push_back(number);
  if (!function) made.path = name.empty() ? "" : made.path + (made.path.empty() ? "" : ".") + std::string(name);
  const bool alone = function || made.path.empty();
  const std::size_t bar = function ? type.find('|') : std::string_view::npos;  // "prefill|decode step"
  made.later = bar != std::string_view::npos ? session.strings.intern(type.substr(bar + 1)) : 0;
  type = type.substr(0, bar);
  made.name = session.strings.intern(alone ? std::string(type) : made.path + " (" + std::string(type) + ")");
  modules_.insert_or_assign(number, std::move(made));
}

void ModuleCalls::place(std::size_t from, model::Session& session) const {
  if (launches_.empty()) return;
  Steps threads;
  for (const Launched& each : launches_) threads[session.launches[each.launch].thread];
  auto known = launches_.begin();
  for (std::size_t i = from; i < session.launches.size(); ++i) {
    const model::Launch& launch = session.launches[i];
    Step step{launch.start_ns, launch.end_ns == model::kOpen ? launch.start_ns : launch.end_ns, 0, 0};
    if (known != launches_.end() && known->launch == i) {
      step.module = known->module;
      step.same = known->same;
      ++known;
    }
    if (const auto thread = threads.find(launch.thread); thread != threads.end()) thread->second.push_back(step);
  }
  place(std::move(threads), session);
}

void ModuleCalls::place(Steps threads, model::Session& session) const {
  for (auto& [number, program] : OpenRanges::of(session, threads)) {
    std::vector<Step>& steps = threads[number];
    std::ranges::stable_sort(steps, {}, &Step::start_ns);
    std::vector<std::uint32_t> modules;  // numbers of the chain of the last launch
    std::vector<std::uint32_t> made;     // how many calls each of them has made so far
    std::vector<std::uint32_t> calls;    // their ranges
    for (const Step& step : steps) {
      const bool between = program.move_to(step.start_ns, step.end_ns);
      const std::uint32_t inside = program.open().empty() ? model::kNone : program.open().back();
      const auto module = modules_.find(step.module);
      std::size_t same = 0;
      if (module == modules_.end()) {
        modules.clear();
        made.clear();
      } else {
        const std::vector<std::uint32_t>& chain = module->second.chain;
        const std::size_t most = std::min<std::size_t>({step.same, chain.size(), modules.size()});
        while (same < most && modules[same] == chain[same]) ++same;
        modules = chain;
        made.resize(same);
        made.resize(chain.size(), 1);
        if (same < chain.size()) {
          made.back() = 0;
          if (same > 0 && ++made[same - 1] > 1 && modules_.at(chain[same - 1]).later != 0) --same;  // its next step
        }
        if (between) same = 0;
      }
      calls.resize(same);
      for (const std::uint32_t call : calls)
        session.ranges[call].end_ns = std::max(session.ranges[call].end_ns, step.end_ns);
      for (std::size_t i = same; i < modules.size(); ++i) {
        const Module& of = modules_.at(modules[i]);
        const model::StringId name = of.later != 0 && made[i] > 1 ? of.later : of.name;
        if (i > 0 && modules_.at(modules[i - 1]).later != 0 && session.ranges[calls.back()].name == name) {
          calls.push_back(calls.back());  // the step is a function of the same name
          continue;
        }
        model::Range call;
        call.start_ns = step.start_ns;
        call.end_ns = step.end_ns;
        call.name = name;
        call.thread = number;
        call.domain = inside == model::kNone ? 0 : session.ranges[inside].domain;
        call.module = true;
        calls.push_back(static_cast<std::uint32_t>(session.ranges.size()));
        session.ranges.push_back(call);
      }
    }
  }
}

}  // namespace rangescope::read::native
