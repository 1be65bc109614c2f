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
// Numbers of chains in the backward pass, after those in the file.
constexpr std::uint32_t kBackwardRoot = 1u << 31;
constexpr std::uint32_t kBelow = kBackwardRoot + 1;
constexpr std::uint32_t kUnknown = model::kNone;

bool is_evaluated(const MadeBy& origin) {
  return origin.kind == MadeBy::kFunction || origin.evaluates != 0;
}

/// Extends launches to the library's range around them: the whole range is in the same call.
void widen(std::vector<ModuleCalls::Step>& steps,
           OpenRanges library,
           const model::Session& session) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ModuleCalls::Step& step = steps[i];
    library.move_to(step.start_ns, step.end_ns);
    if (library.open().empty())
      continue;
    const model::Range& range = session.ranges[library.open().front()];
    const bool is_last_inside = i + 1 == steps.size() || steps[i + 1].start_ns > range.end_ns;
    step.start_ns = std::max(range.start_ns, i > 0 ? steps[i - 1].end_ns : range.start_ns);
    if (is_last_inside && range.end_ns != model::kOpen)
      step.end_ns = range.end_ns;
  }
}

/// The number of calls of a thread's chain of modules that were around each range of the program
/// when the range began: those that continue from the launch before the range, or to the launch
/// after it. The first launch inside may be the first of a call that began outside.
class CallsAround {
 public:
  /// The thread's next launch shares `same` calls with the previous one; `open` are the open
  /// ranges.
  void launch(const std::vector<std::uint32_t>& open, std::size_t same) {
    for (const std::uint32_t range : open_) {
      Around& around = ranges_.at(range);
      const bool goes_on = std::ranges::find(open, range) != open.end();
      if (goes_on)
        around.inside = std::min(around.inside, same);
      else
        around.outside = std::max(around.outside, same);
    }
    for (const std::uint32_t range : open)
      ranges_.try_emplace(range, Around{same});
    open_ = open;
  }
  [[nodiscard]] std::size_t of(std::uint32_t range) const {
    const auto found = ranges_.find(range);
    if (found == ranges_.end())
      return 0;
    return std::min(found->second.outside, found->second.inside);
  }

 private:
  struct Around {
    std::size_t outside = 0;        ///< calls that continue from before the range, or after it
    std::size_t inside = SIZE_MAX;  ///< calls of which no launch inside was the first
  };
  std::unordered_map<std::uint32_t, Around> ranges_;
  std::vector<std::uint32_t> open_;
};

model::StringId either(model::Strings& strings, model::StringId a, model::StringId b) {
  return strings.intern(std::string(strings.view(a)) + " or " + std::string(strings.view(b)));
}

}  // namespace

void ModuleCalls::define(std::uint32_t number,
                         std::uint32_t around,
                         std::string_view name,
                         std::string_view type,
                         bool function,
                         model::Session& session) {
  const auto outer = modules_.find(around);
  Module module;
  if (outer != modules_.end())
    module = outer->second;
  if (number == 0 || module.chain.size() >= kMostLevels)
    return;
  module.chain.push_back(number);
  if (!function) {
    if (name.empty())
      module.path.clear();
    else if (!module.path.empty())
      module.path += ".";
    module.path += name;
  }
  module.function = function;
  const std::size_t bar = function ? type.find('|') : std::string_view::npos;
  const bool has_steps = bar != std::string_view::npos;  // "prefill|decode step"
  module.later = has_steps ? session.strings.intern(type.substr(bar + 1)) : 0;
  std::string shown_name(type.substr(0, bar));
  if (!function && !module.path.empty())
    shown_name = module.path + " (" + shown_name + ")";
  module.name = session.strings.intern(shown_name);
  modules_.insert_or_assign(number, std::move(module));
}

void ModuleCalls::launched(std::uint32_t launch,
                           std::uint32_t module,
                           std::uint32_t same,
                           std::int64_t start_ns,
                           MadeBy origin) {
  launches_.push_back({launch, module, same, start_ns, origin});
  if (origin.kind != MadeBy::kOperator || origin.sequence == MadeBy::kNoNumber)
    return;
  std::vector<Operator>& operators = operators_[origin.thread];
  if (operators.empty() || operators.back().sequence != origin.sequence)
    operators.push_back({origin.sequence, module, start_ns});
}

/// The first launch after the function's operator has begun. A few operators launch nothing; a
/// larger distance means that launches were not recorded.
const ModuleCalls::Operator* ModuleCalls::maker_of(const Launched& function) const {
  constexpr std::uint32_t kMostSilent = 64;
  const std::uint32_t sequence = function.origin.sequence;
  const auto operators = operators_.find(function.origin.thread);
  if (operators == operators_.end() || sequence == MadeBy::kNoNumber)
    return nullptr;
  const auto next = std::ranges::lower_bound(operators->second, sequence, {}, &Operator::sequence);
  if (next == operators->second.end() || next->start_ns >= function.start_ns)
    return nullptr;
  if (next->sequence - sequence > kMostSilent)
    return nullptr;
  return &*next;
}

/// The chain `chain` extended by the modules of the chain `inner`.
std::uint32_t ModuleCalls::below(std::uint32_t chain, std::uint32_t inner, bool functions) {
  const auto found = modules_.find(inner);
  if (found == modules_.end())
    return chain;
  const std::vector<std::uint32_t> numbers = found->second.chain;
  for (const std::uint32_t number : numbers) {
    if (modules_.at(number).function && !functions)
      continue;
    const auto [entry, is_new] =
        below_.try_emplace({chain, number}, kBelow + static_cast<std::uint32_t>(below_.size()));
    if (is_new) {
      Module module = modules_.at(number);
      const Module& outer = modules_.at(chain);
      module.chain = outer.chain;
      module.backward = outer.backward;
      if (module.chain.size() < kMostLevels)
        module.chain.push_back(entry->second);
      modules_.emplace(entry->second, std::move(module));
    }
    chain = entry->second;
  }
  return chain;
}

/// Sets the step's chain in the backward pass. On a thread of the engine, Python is called by a
/// function: compiled code, or a part of the forward pass that is recomputed. On other threads,
/// Python calls the engine. A collective of DistributedDataParallel sums the gradients of many
/// modules, and belongs to none of them.
void ModuleCalls::place_function(const Launched& launched,
                                 bool engine,
                                 bool collective,
                                 Evaluated& last,
                                 Step& step,
                                 model::Session& session) {
  const auto& [launch, module, same, start_ns, origin] = launched;
  const bool is_recomputed = origin.kind == MadeBy::kOperator;
  if (is_recomputed && !engine)
    return;
  const std::uint32_t around = engine || module == 0 ? kBackwardRoot : module;
  if (around == kBackwardRoot && !modules_.contains(kBackwardRoot))
    modules_[kBackwardRoot] = {
        {kBackwardRoot}, {}, session.strings.intern(model::kBackward), 0, true, true};
  if (collective) {
    step.module = around;
    step.same = last.around == around ? kMostLevels : 0;
    return;
  }
  const bool numbered = !is_recomputed && origin.sequence != MadeBy::kNoNumber;
  // Numbers decrease within a pass: functions of later operators run first.
  const bool goes_on = last.around == around && (!numbered || origin.sequence <= last.sequence);
  if (!goes_on)
    last = {0, kUnknown, around};
  if (numbered) {
    const Operator* maker = maker_of(launched);
    last = {origin.sequence, maker != nullptr ? maker->module : kUnknown, around};
  }
  if (!is_recomputed) {
    ++session.backward.total;
    if (last.maker != kUnknown)
      ++(numbered ? session.backward.by_number : session.backward.by_place);
  }
  step.module = below(around, last.maker, false);
  step.same = goes_on ? kMostLevels : 0;
  if (engine && module != 0) {
    const std::size_t outer = modules_.at(step.module).chain.size();
    step.module = below(step.module, module, true);
    if (goes_on)
      step.same = static_cast<std::uint32_t>(outer) + same;
  } else if (around != kBackwardRoot && (!goes_on || same < modules_.at(around).chain.size())) {
    step.same = same;
  }
}

namespace {

/// Launches from `first` on whose kernels are NCCL's.
std::unordered_set<std::uint32_t> collective_launches(const model::Session& session,
                                                      std::size_t first) {
  std::unordered_set<std::uint32_t> launches;
  for (const model::Kernel& kernel : session.kernels) {
    const model::StringId name = session.kernel_names[kernel.name].short_name;
    if (kernel.launch >= first && model::is_nccl(session.strings.view(name)))
      launches.insert(kernel.launch);
  }
  return launches;
}

}  // namespace

void ModuleCalls::place(std::size_t from, model::Session& session) {
  if (launches_.empty())
    return;
  Steps threads;
  std::unordered_set<std::uint32_t> python_threads;  // not of the engine
  bool any_evaluated = false;
  for (const Launched& launched : launches_) {
    const std::uint32_t thread = session.launches[launched.launch].thread;
    if (launched.module != 0 || launched.origin.kind == MadeBy::kFunction)
      threads[thread];
    if (is_evaluated(launched.origin))
      any_evaluated = true;
    else if (launched.module != 0)
      python_threads.insert(thread);
  }
  // emit_nvtx has a range around each operator: the modules inside say whose operator it is.
  const bool has_operators = model::has_evaluated_functions(session);
  const bool by_launches = any_evaluated && !has_operators;
  std::unordered_set<std::uint32_t> collectives;  // launches
  if (by_launches)
    collectives = collective_launches(session, from);
  std::unordered_map<std::uint32_t, Evaluated> evaluated;  // by thread
  auto launched = launches_.begin();
  for (std::size_t i = from; i < session.launches.size(); ++i) {
    const model::Launch& launch = session.launches[i];
    const std::int64_t end_ns = launch.end_ns == model::kOpen ? launch.start_ns : launch.end_ns;
    Step step{launch.start_ns, end_ns, 0, 0};
    if (launched != launches_.end() && launched->launch == i) {
      step.module = launched->module;
      step.same = launched->same;
      if (by_launches && is_evaluated(launched->origin)) {
        const bool is_engine = !python_threads.contains(launch.thread);
        place_function(*launched,
                       is_engine,
                       collectives.contains(launched->launch),
                       evaluated[launch.thread],
                       step,
                       session);
      }
      ++launched;
    }
    // The modules of calls that launch nothing (cuEventRecord, cuMemAlloc) are not recorded: such a
    // call does not end open modules.
    if (step.module == 0 && launch.kind == model::LaunchKind::kOther)
      continue;
    if (const auto thread = threads.find(launch.thread); thread != threads.end())
      thread->second.push_back(step);
  }
  place(std::move(threads), !has_operators, session);
}

/// The chain of a thread's last launch.
struct ModuleCalls::Chain {
  std::vector<std::uint32_t> modules;  ///< numbers
  std::vector<std::uint32_t> calls;    ///< how many calls each of them has made so far
  std::size_t same = 0;                ///< number of calls that the previous launch was in too

  void launch(const Step& step, const std::unordered_map<std::uint32_t, Module>& defined) {
    same = 0;
    const auto module = defined.find(step.module);
    if (module == defined.end()) {
      modules.clear();
      calls.clear();
      return;
    }
    const std::vector<std::uint32_t>& chain = module->second.chain;
    const std::size_t limit = std::min<std::size_t>({step.same, chain.size(), modules.size()});
    while (same < limit && modules[same] == chain[same])
      ++same;
    modules = chain;
    calls.resize(same);
    calls.resize(chain.size(), 1);
    if (same == chain.size())
      return;
    calls.back() = 0;
    if (same == 0)
      return;
    const std::uint32_t caller_calls = ++calls[same - 1];
    const bool begins_step = caller_calls > 1 && defined.at(chain[same - 1]).later != 0;
    if (begins_step)
      --same;
  }
};

/// Adds the calls of one thread's modules as ranges. A call lasts from its first launch to its
/// last.
class ModuleCalls::ThreadCalls {
 public:
  ThreadCalls(std::uint32_t thread,
              std::uint32_t backward_domain,
              const std::unordered_map<std::uint32_t, Module>& defined,
              model::Session& session)
      : thread_(thread),
        backward_domain_(backward_domain),
        defined_(defined),
        session_(session),
        may_have_begun_(session.is_window()) {}

  /// `program`: the ranges of the program in this thread. `around`: the calls around each of them,
  /// which are not in it.
  void add(const std::vector<Step>& steps, OpenRanges program, const CallsAround& around) {
    for (const Step& step : steps) {
      const bool is_in_other_ranges = program.move_to(step.start_ns, step.end_ns);
      const std::uint32_t innermost = program.open().empty() ? model::kNone : program.open().back();
      chain_.launch(step, defined_);
      const std::size_t outside = is_backward() ? 0 : around.of(innermost);
      const std::size_t same = is_in_other_ranges ? outside : std::max(outside, chain_.same);
      open_.resize(std::min(open_.size(), same - outside));
      if (is_in_other_ranges)
        open_.clear();
      for (const std::uint32_t call : open_)
        session_.ranges[call].end_ns = std::max(session_.ranges[call].end_ns, step.end_ns);
      for (std::size_t level = same; level < chain_.modules.size(); ++level)
        begin_call(level, step, innermost);
      may_have_begun_ = may_have_begun_ && chain_.modules.empty();
    }
  }

 private:
  [[nodiscard]] bool is_backward() const {
    return !chain_.modules.empty() && defined_.at(chain_.modules.front()).backward;
  }

  [[nodiscard]] model::StringId name_of(const Module& module, std::size_t level) const {
    if (module.later == 0)
      return module.name;
    if (chain_.calls[level] > 1)
      return module.later;
    if (may_have_begun_)
      return either(session_.strings, module.name, module.later);
    return module.name;
  }

  void begin_call(std::size_t level, const Step& step, std::uint32_t innermost) {
    const Module& module = defined_.at(chain_.modules[level]);
    const model::StringId name = name_of(module, level);
    const bool is_in_function = !open_.empty() && defined_.at(chain_.modules[level - 1]).later != 0;
    if (is_in_function && session_.ranges[open_.back()].name == name) {
      open_.push_back(open_.back());  // the step is a function of the same name
      return;
    }
    model::Range call;
    call.start_ns = step.start_ns;
    call.end_ns = step.end_ns;
    call.name = name;
    call.thread = thread_;
    if (module.backward)
      call.domain = backward_domain_;
    else if (innermost != model::kNone)
      call.domain = session_.ranges[innermost].domain;
    call.module = true;
    open_.push_back(static_cast<std::uint32_t>(session_.ranges.size()));
    session_.ranges.push_back(call);
  }

  const std::uint32_t thread_;
  const std::uint32_t backward_domain_;
  const std::unordered_map<std::uint32_t, Module>& defined_;
  model::Session& session_;
  Chain chain_;
  /// Ranges of the calls that the last launch was in, without those around the innermost range of
  /// the program.
  std::vector<std::uint32_t> open_;
  /// Calls of a window's first launch may have begun before the window: then it is unknown which
  /// step of a function they are in.
  bool may_have_begun_;
};

void ModuleCalls::place(Steps threads, bool inner_only, model::Session& session) const {
  const std::uint32_t backward_domain =
      modules_.contains(kBackwardRoot) ? model::module_domain(session, true) : model::kNone;
  std::vector<bool> is_library;  // by domain
  for (const model::Domain& domain : session.domains)
    is_library.push_back(model::is_library_domain(session.strings.view(domain.name)));
  auto library =
      OpenRanges::of(session, threads, [&](std::uint32_t domain) { return is_library[domain]; });
  auto programs =
      OpenRanges::of(session, threads, [&](std::uint32_t domain) { return !is_library[domain]; });
  for (auto& [thread, program] : programs) {
    std::vector<Step>& steps = threads[thread];
    std::ranges::stable_sort(steps, {}, &Step::start_ns);
    widen(steps, library.at(thread), session);
    CallsAround around;
    if (inner_only) {
      Chain chain;
      OpenRanges ranges = program;
      for (const Step& step : steps) {
        ranges.move_to(step.start_ns, step.end_ns);
        chain.launch(step, modules_);
        around.launch(ranges.open(), chain.same);
      }
    }
    ThreadCalls(thread, backward_domain, modules_, session).add(steps, program, around);
  }
}

}  // namespace rangescope::read::native
