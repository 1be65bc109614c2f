#include "read/native/modules.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/domain.hpp"
#include "model/kernel_name.hpp"
#include "read/open_ranges.hpp"

namespace rangescope::read::native {
namespace {

using wire::gpu::MadeBy;

constexpr std::uint32_t kMostLevels = 64;
// Numbers of chains in the backward pass, behind those that are written.
constexpr std::uint32_t kBackwardRoot = 1u << 31, kBelow = kBackwardRoot + 1,
                        kUnknown = model::kNone;

bool is_evaluated(const MadeBy& of) {
  return of.what == MadeBy::kFunction || of.evaluates != 0;
}

/// A launch in a range of a library is in the call that the whole range is in.
void widen(std::vector<ModuleCalls::Step>& steps, OpenRanges library,
           const model::Session& session) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ModuleCalls::Step& step = steps[i];
    library.move_to(step.start_ns, step.end_ns);
    if (library.open().empty()) continue;
    const model::Range& range = session.ranges[library.open().front()];
    const bool alone = i + 1 == steps.size() || steps[i + 1].start_ns > range.end_ns;
    step.start_ns = std::max(range.start_ns, i > 0 ? steps[i - 1].end_ns : range.start_ns);
    if (alone && range.end_ns != model::kOpen) step.end_ns = range.end_ns;
  }
}

/// How many calls of a thread's chain of modules were around each range of the program when it
/// began. They were where they go on from the launch before the range, or to the one after it: the
/// first launch inside may be the first of a call that began outside.
class CallsAround {
 public:
  /// The thread's next launch is in `same` calls of the one before it, while `open` is open.
  void launch(const std::vector<std::uint32_t>& open, std::size_t same) {
    for (const std::uint32_t range : open_) {
      Around& around = ranges_.at(range);
      const bool goes_on = std::ranges::find(open, range) != open.end();
      if (goes_on)
        around.inside = std::min(around.inside, same);
      else
        around.outside = std::max(around.outside, same);
    }
    for (const std::uint32_t range : open) ranges_.try_emplace(range, Around{same});
    open_ = open;
  }
  [[nodiscard]] std::size_t of(std::uint32_t range) const {
    const auto found = ranges_.find(range);
    if (found == ranges_.end()) return 0;
    return std::min(found->second.outside, found->second.inside);
  }

 private:
  struct Around {
    std::size_t outside = 0;        ///< calls that go on from before the range, or after it
    std::size_t inside = SIZE_MAX;  ///< calls that no launch inside was the first of
  };
  std::unordered_map<std::uint32_t, Around> ranges_;
  std::vector<std::uint32_t> open_;
};

model::StringId either(model::Strings& strings, model::StringId a, model::StringId b) {
  return strings.intern(std::string(strings.view(a)) + " or " + std::string(strings.view(b)));
}

}  // namespace

void ModuleCalls::define(std::uint32_t number, std::uint32_t around, std::string_view name,
                         std::string_view type, bool function, model::Session& session) {
  const auto outer = modules_.find(around);
  Module made;
  if (outer != modules_.end()) made = outer->second;
  if (number == 0 || made.chain.size() >= kMostLevels) return;
  made.chain.push_back(number);
  if (!function)
    made.path = name.empty() ? "" : made.path + (made.path.empty() ? "" : ".") + std::string(name);
  made.function = function;
  const bool alone = function || made.path.empty();
  const std::size_t bar =
      function ? type.find('|') : std::string_view::npos;  // "prefill|decode step"
  made.later = bar != std::string_view::npos ? session.strings.intern(type.substr(bar + 1)) : 0;
  type = type.substr(0, bar);
  made.name = session.strings.intern(alone ? std::string(type)
                                           : made.path + " (" + std::string(type) + ")");
  modules_.insert_or_assign(number, std::move(made));
}

void ModuleCalls::launched(std::uint32_t launch, std::uint32_t module, std::uint32_t same,
                           std::int64_t start_ns, MadeBy of) {
  launches_.push_back({launch, module, same, start_ns, of});
  if (of.what != MadeBy::kOperator || of.sequence == MadeBy::kNoNumber) return;
  std::vector<Operator>& known = operators_[of.thread];
  if (known.empty() || known.back().sequence != of.sequence)
    known.push_back({of.sequence, module, start_ns});
}

/// The first launch behind the beginning of the function's operator. A few operators launch
/// nothing, many more mean that launches were not recorded.
const ModuleCalls::Operator* ModuleCalls::maker_of(const Launched& function) const {
  constexpr std::uint32_t kMostSilent = 64;
  const auto known = operators_.find(function.of.thread);
  if (known == operators_.end() || function.of.sequence == MadeBy::kNoNumber) return nullptr;
  const auto at =
      std::ranges::lower_bound(known->second, function.of.sequence, {}, &Operator::sequence);
  const bool its = at != known->second.end() && at->start_ns < function.start_ns &&
                   at->sequence - function.of.sequence <= kMostSilent;
  return its ? &*at : nullptr;
}

/// The chain `chain` with the modules of the chain `inner` in it.
std::uint32_t ModuleCalls::below(std::uint32_t chain, std::uint32_t inner, bool functions) {
  const auto found = modules_.find(inner);
  if (found == modules_.end()) return chain;
  const std::vector<std::uint32_t> numbers = found->second.chain;
  for (const std::uint32_t number : numbers) {
    if (modules_.at(number).function && !functions) continue;
    const auto [at, fresh] =
        below_.try_emplace({chain, number}, kBelow + static_cast<std::uint32_t>(below_.size()));
    if (fresh) {
      Module made = modules_.at(number);
      const Module& outer = modules_.at(chain);
      made.chain = outer.chain;
      made.backward = outer.backward;
      if (made.chain.size() < kMostLevels) made.chain.push_back(at->second);
      modules_.emplace(at->second, std::move(made));
    }
    chain = at->second;
  }
  return chain;
}

/// Gives the step its chain in the backward pass. On a thread of the engine, Python is what a
/// function calls: compiled code, or a part of the forward pass that is made again. On others it
/// calls the engine. A collective of DistributedDataParallel sums the gradients of many modules,
/// and is of none.
void ModuleCalls::place_function(const Launched& launched, bool engine, bool collective,
                                 Evaluated& last, Step& step, model::Session& session) {
  const auto& [launch, module, same, start_ns, of] = launched;
  const bool again = of.what == MadeBy::kOperator;
  if (again && !engine) return;
  const std::uint32_t around = engine || module == 0 ? kBackwardRoot : module;
  if (around == kBackwardRoot && !modules_.contains(kBackwardRoot))
    modules_[kBackwardRoot] = {
        {kBackwardRoot}, {}, session.strings.intern(model::kBackward), 0, true, true};
  if (collective) {
    step.module = around;
    step.same = last.around == around ? kMostLevels : 0;
    return;
  }
  const bool numbered = !again && of.sequence != MadeBy::kNoNumber;
  // Numbers fall within a pass: what was made later does not wait for what was made before it.
  const bool goes_on = last.around == around && (!numbered || of.sequence <= last.sequence);
  if (!goes_on) last = {0, kUnknown, around};
  if (numbered) {
    const Operator* maker = maker_of(launched);
    last = {of.sequence, maker != nullptr ? maker->module : kUnknown, around};
  }
  if (!again) {
    ++session.backward.all;
    if (last.maker != kUnknown)
      ++(numbered ? session.backward.by_number : session.backward.by_place);
  }
  step.module = below(around, last.maker, false);
  step.same = goes_on ? kMostLevels : 0;
  if (engine && module != 0) {
    const std::size_t outer = modules_.at(step.module).chain.size();
    step.module = below(step.module, module, true);
    if (goes_on) step.same = static_cast<std::uint32_t>(outer) + same;
  } else if (around != kBackwardRoot && (!goes_on || same < modules_.at(around).chain.size())) {
    step.same = same;
  }
}

void ModuleCalls::place(std::size_t from, model::Session& session) {
  if (launches_.empty()) return;
  Steps threads;
  std::unordered_set<std::uint32_t> others;  // threads that are none of the engine
  bool any_evaluated = false;
  for (const Launched& each : launches_) {
    const std::uint32_t thread = session.launches[each.launch].thread;
    if (each.module != 0 || each.of.what == MadeBy::kFunction) threads[thread];
    if (is_evaluated(each.of))
      any_evaluated = true;
    else if (each.module != 0)
      others.insert(thread);
  }
  // emit_nvtx has a range around each operator: the modules inside say whose operator it is.
  const bool has_operators = model::has_evaluated_functions(session);
  const bool by_launches = any_evaluated && !has_operators;
  std::unordered_set<std::uint32_t> collectives;  // launches
  if (by_launches)
    for (const model::Kernel& kernel : session.kernels)
      if (kernel.launch >= from &&
          model::is_nccl(session.strings.view(session.kernel_names[kernel.name].short_name)))
        collectives.insert(kernel.launch);
  std::unordered_map<std::uint32_t, Evaluated> evaluated;  // by thread
  auto known = launches_.begin();
  for (std::size_t i = from; i < session.launches.size(); ++i) {
    const model::Launch& launch = session.launches[i];
    Step step{launch.start_ns, launch.end_ns == model::kOpen ? launch.start_ns : launch.end_ns, 0,
              0};
    if (known != launches_.end() && known->launch == i) {
      step.module = known->module;
      step.same = known->same;
      if (by_launches && is_evaluated(known->of))
        place_function(*known, !others.contains(launch.thread), collectives.contains(known->launch),
                       evaluated[launch.thread], step, session);
      ++known;
    }
    // Of calls that launch nothing (cuEventRecord, cuMemAlloc) the modules are not asked for: none
    // is no end of those that are open.
    if (step.module == 0 && launch.kind == model::LaunchKind::kOther) continue;
    if (const auto thread = threads.find(launch.thread); thread != threads.end())
      thread->second.push_back(step);
  }
  place(std::move(threads), !has_operators, session);
}

/// The chain that a thread's launches are in, one launch after the other.
struct ModuleCalls::Chain {
  std::vector<std::uint32_t> modules;  ///< numbers, of the last launch
  std::vector<std::uint32_t> made;     ///< how many calls each of them has made so far
  std::size_t same = 0;                ///< calls that the launch before was in too

  void launch(const Step& step, const std::unordered_map<std::uint32_t, Module>& known) {
    same = 0;
    const auto module = known.find(step.module);
    if (module == known.end()) {
      modules.clear();
      made.clear();
      return;
    }
    const std::vector<std::uint32_t>& chain = module->second.chain;
    const std::size_t most = std::min<std::size_t>({step.same, chain.size(), modules.size()});
    while (same < most && modules[same] == chain[same]) ++same;
    modules = chain;
    made.resize(same);
    made.resize(chain.size(), 1);
    if (same == chain.size()) return;
    made.back() = 0;
    if (same > 0 && ++made[same - 1] > 1 && known.at(chain[same - 1]).later != 0)
      --same;  // its next step
  }
};

void ModuleCalls::place(Steps threads, bool inner_only, model::Session& session) const {
  const std::uint32_t backward_domain =
      modules_.contains(kBackwardRoot) ? model::module_domain(session, true) : model::kNone;
  std::vector<bool> library;  // domains
  for (const model::Domain& domain : session.domains)
    library.push_back(model::is_library_domain(session.strings.view(domain.name)));
  auto inside_calls =
      OpenRanges::of(session, threads, [&](std::uint32_t domain) { return library[domain]; });
  for (auto& [number, program] :
       OpenRanges::of(session, threads, [&](std::uint32_t d) { return !library[d]; })) {
    std::vector<Step>& steps = threads[number];
    std::ranges::stable_sort(steps, {}, &Step::start_ns);
    widen(steps, inside_calls.at(number), session);
    CallsAround around;
    if (inner_only) {
      Chain chain;
      OpenRanges open = program;
      for (const Step& step : steps) {
        open.move_to(step.start_ns, step.end_ns);
        chain.launch(step, modules_);
        around.launch(open.open(), chain.same);
      }
    }
    Chain chain;
    std::vector<std::uint32_t> calls;  // their ranges, without those around the innermost range
    // Of a window, what the first launch finds may have begun before: nobody knows which step of a
    // function it is in.
    bool begun = session.is_window();
    for (const Step& step : steps) {
      const bool between = program.move_to(step.start_ns, step.end_ns);
      const std::uint32_t inside = program.open().empty() ? model::kNone : program.open().back();
      chain.launch(step, modules_);
      const std::vector<std::uint32_t>& modules = chain.modules;
      const bool backward = !modules.empty() && modules_.at(modules.front()).backward;
      const std::size_t outside = backward ? 0 : around.of(inside);
      const std::size_t same = between ? outside : std::max(outside, chain.same);
      calls.resize(std::min(calls.size(), same - outside));
      if (between) calls.clear();
      for (const std::uint32_t call : calls)
        session.ranges[call].end_ns = std::max(session.ranges[call].end_ns, step.end_ns);
      for (std::size_t i = same; i < modules.size(); ++i) {
        const Module& of = modules_.at(modules[i]);
        const model::StringId name = of.later == 0       ? of.name
                                     : chain.made[i] > 1 ? of.later
                                     : begun ? either(session.strings, of.name, of.later)
                                             : of.name;
        if (!calls.empty() && modules_.at(modules[i - 1]).later != 0 &&
            session.ranges[calls.back()].name == name) {
          calls.push_back(calls.back());  // the step is a function of the same name
          continue;
        }
        model::Range call;
        call.start_ns = step.start_ns;
        call.end_ns = step.end_ns;
        call.name = name;
        call.thread = number;
        call.domain = of.backward              ? backward_domain
                      : inside == model::kNone ? 0
                                               : session.ranges[inside].domain;
        call.module = true;
        calls.push_back(static_cast<std::uint32_t>(session.ranges.size()));
        session.ranges.push_back(call);
      }
      begun = begun && modules.empty();
    }
  }
}

}  // namespace rangescope::read::native
