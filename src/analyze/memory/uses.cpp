#include "analyze/memory/uses.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "model/backward.hpp"

namespace rangescope::analyze {
namespace {

using model::Allocation;
using model::kOpen;
using model::MemoryUse;
using model::Session;

bool begins_earlier(const TimeSpan& a, const TimeSpan& b) {
  return a.start_ns < b.start_ns;
}

/// The ends of the range that is repeated most of those that no other range of their thread
/// contains: of the program's own, or of calls of modules.
std::vector<std::int64_t> ends_of_repeated_range(const Session& session, bool of_modules) {
  struct Repeated {
    std::int64_t total_ns = 0;
    std::vector<std::int64_t> ends_ns;
  };
  std::map<std::pair<model::StringId, std::uint32_t>, Repeated> by_name;
  std::vector<std::int64_t> covered_until(session.threads.size(), 0);
  std::vector<const model::Range*> ranges;
  for (const model::Range& range : session.ranges) {
    const bool is_closed = range.kind == model::RangeKind::kPushPop && range.end_ns != kOpen;
    if (!is_closed || range.thread >= covered_until.size())
      continue;
    // In a trace of PyTorch annotations look like operators.
    const bool is_of_program = !session.processes[session.threads[range.thread].process].operators;
    const bool is_wanted = of_modules ? range.module : !range.module && range.domain == 0;
    if (is_of_program && is_wanted)
      ranges.push_back(&range);
  }
  std::ranges::stable_sort(ranges, {}, &model::Range::start_ns);
  for (const model::Range* range : ranges) {
    std::int64_t& covered = covered_until[range->thread];
    if (range->start_ns < covered)
      continue;
    covered = range->end_ns;
    Repeated& repeated = by_name[{range->name, range->thread}];
    repeated.total_ns += range->end_ns - range->start_ns;
    repeated.ends_ns.push_back(range->end_ns);
  }
  const Repeated* longest = nullptr;
  for (const auto& [name, repeated] : by_name) {
    const bool is_longer = longest == nullptr || repeated.total_ns > longest->total_ns;
    if (repeated.ends_ns.size() > 1 && is_longer)
      longest = &repeated;
  }
  return longest == nullptr ? std::vector<std::int64_t>{} : longest->ends_ns;
}

class UseRules {
 public:
  UseRules(const Session& session,
           std::uint32_t allocator,
           const MemoryUsage& usage,
           const Steps& steps)
      : usage_(usage), steps_(steps) {
    for (const Allocation& allocation : session.allocators.allocations)
      if (allocation.allocator == allocator)
        learn_sizes(allocation);
    for (const model::FailedAllocation& failure : session.allocators.failures)
      if (failure.allocator == allocator)
        failures_ns_.push_back(failure.at_ns);
    const std::size_t steps_seen = std::max<std::size_t>(steps.ends_ns.size(), 1);
    const auto events_of_step =
        static_cast<double>(usage.times().size()) / static_cast<double>(steps_seen);
    few_events_ = std::max(kFewEvents, static_cast<std::size_t>(kShortShare * events_of_step));
  }

  [[nodiscard]] MemoryUse use_of(const Allocation& allocation) const {
    if (is_parameter(allocation))
      return MemoryUse::kParameters;
    if (allocation.older)
      return use_of_older(allocation);
    if (is_optimizer_state(allocation))
      return MemoryUse::kOptimizerState;
    if (is_gradient(allocation))
      return MemoryUse::kGradients;
    if (is_kept(allocation))
      return MemoryUse::kCache;
    const bool is_open = allocation.end_ns == kOpen;
    const bool is_short = !is_open && events_inside(allocation) <= few_events_;
    if (is_short && !is_freed_by_failure(allocation))
      return MemoryUse::kTemporary;
    return MemoryUse::kActivations;
  }

 private:
  void learn_sizes(const Allocation& allocation) {
    const bool is_state = is_optimizer_state(allocation);
    has_new_state_ = has_new_state_ || is_state;
    const bool is_of_model =
        is_parameter(allocation) || (allocation.older && allocation.end_ns == kOpen);
    if (is_state || is_of_model)
      lasting_sizes_.insert(allocation.bytes);
  }

  [[nodiscard]] MemoryUse use_of_older(const Allocation& allocation) const {
    const bool optimizer_had_state = !steps_.optimizers.empty() && !has_new_state_;
    if (allocation.end_ns != kOpen || optimizer_had_state)
      return MemoryUse::kOlder;
    return MemoryUse::kParameters;
  }

  /// The recording has the start of the program: what is there before the first module is called,
  /// and outlives the last step, is the model.
  [[nodiscard]] bool is_parameter(const Allocation& allocation) const {
    if (allocation.owner != 0)
      return true;
    const bool has_start = steps_.first_module_ns != kOpen;
    const bool is_before_model = has_start && allocation.start_ns < steps_.first_module_ns;
    if (allocation.older || !is_before_model)
      return false;
    const bool outlives_steps =
        !steps_.ends_ns.empty() && allocation.end_ns > steps_.ends_ns.back();
    return allocation.end_ns == kOpen || outlives_steps;
  }

  /// The last span that began at or before `at_ns`; null where none did.
  [[nodiscard]] static const TimeSpan* last_begun(const std::vector<TimeSpan>& spans,
                                                  std::int64_t at_ns) {
    const auto next = std::ranges::upper_bound(spans, at_ns, {}, &TimeSpan::start_ns);
    return next == spans.begin() ? nullptr : &*std::prev(next);
  }
  [[nodiscard]] static const TimeSpan* first_after(const std::vector<TimeSpan>& spans,
                                                   std::int64_t at_ns) {
    const auto next = std::ranges::upper_bound(spans, at_ns, {}, &TimeSpan::start_ns);
    return next == spans.end() ? nullptr : &*next;
  }
  [[nodiscard]] static bool is_inside(const std::vector<TimeSpan>& spans, std::int64_t at_ns) {
    const TimeSpan* span = last_begun(spans, at_ns);
    return span != nullptr && at_ns <= span->end_ns;
  }

  [[nodiscard]] bool is_optimizer_state(const Allocation& allocation) const {
    if (allocation.older || !is_inside(steps_.optimizers, allocation.start_ns))
      return false;
    const TimeSpan* next_run = first_after(steps_.optimizers, allocation.start_ns);
    return allocation.end_ns == kOpen ||
           (next_run != nullptr && allocation.end_ns > next_run->start_ns);
  }

  [[nodiscard]] bool is_gradient(const Allocation& allocation) const {
    if (allocation.older || is_inside(steps_.optimizers, allocation.start_ns))
      return false;
    const TimeSpan* optimizer = first_after(steps_.optimizers, allocation.start_ns);
    if (optimizer == nullptr)
      return is_gradient_of_last_step(allocation);
    if (allocation.end_ns <= optimizer->end_ns)
      return false;
    if (is_inside(steps_.backwards, allocation.start_ns) &&
        is_freed_by_next_step(allocation, *optimizer))
      return true;
    const bool is_freed = allocation.end_ns != kOpen;
    if (is_freed && !steps_.zero_grads.empty())
      return is_inside(steps_.zero_grads, allocation.end_ns);
    return lasting_sizes_.contains(allocation.bytes);
  }

  /// Nothing else that a backward pass allocates is in use behind the optimizer but what stays.
  [[nodiscard]] bool is_freed_by_next_step(const Allocation& allocation,
                                           const TimeSpan& optimizer) const {
    const TimeSpan* next = first_after(steps_.optimizers, optimizer.start_ns);
    const std::int64_t next_ns = next == nullptr ? kOpen : next->start_ns;
    return allocation.end_ns != kOpen && allocation.end_ns < next_ns;
  }

  /// No optimizer follows: the recording ends within a step. What is as large as a parameter and
  /// stays is a gradient.
  [[nodiscard]] bool is_gradient_of_last_step(const Allocation& allocation) const {
    return !steps_.optimizers.empty() && allocation.end_ns == kOpen &&
           lasting_sizes_.contains(allocation.bytes);
  }

  [[nodiscard]] bool is_kept(const Allocation& allocation) const {
    const auto end_of_step = std::ranges::lower_bound(steps_.ends_ns, allocation.start_ns);
    if (end_of_step == steps_.ends_ns.end())
      return steps_.ends_ns.empty() && allocation.end_ns == kOpen;
    return allocation.end_ns > *end_of_step;
  }

  [[nodiscard]] bool is_freed_by_failure(const Allocation& allocation) const {
    return std::ranges::any_of(failures_ns_, [&](std::int64_t at_ns) {
      return allocation.start_ns < at_ns && at_ns < allocation.end_ns;
    });
  }

  [[nodiscard]] std::size_t events_inside(const Allocation& allocation) const {
    return usage_.events_before(allocation.end_ns) - usage_.events_before(allocation.start_ns);
  }

  const MemoryUsage& usage_;
  const Steps& steps_;
  std::size_t few_events_ = kFewEvents;
  bool has_new_state_ = false;
  std::vector<std::int64_t> failures_ns_;
  std::unordered_set<std::uint64_t> lasting_sizes_;  ///< of parameters and optimizer state
};

}  // namespace

bool is_operator(std::string_view name) {
  return name.starts_with("aten::") || name.starts_with("autograd::") ||
         name.find("::_") != std::string_view::npos;
}

Steps find_steps(const Session& session) {
  constexpr std::string_view kOptimizer = "Optimizer.step#", kZeroGrad = "Optimizer.zero_grad#",
                             kProfilerStep = "ProfilerStep#";
  Steps steps;
  std::vector<std::int64_t> profiler_steps_ns;
  const auto is_on_gpu = [&](const model::Range& range) {
    return range.domain < session.domains.size() &&
           session.strings.view(session.domains[range.domain].name) == "gpu_annotation";
  };
  for (const model::Range& range : session.ranges) {
    if (range.end_ns == kOpen || is_on_gpu(range))
      continue;
    const std::string_view name = session.strings.view(range.name);
    const bool is_optimizer_phase = range.module && name == model::kOptimizerStep;
    if (range.module && name == model::kBackward)
      steps.backwards.push_back({range.start_ns, range.end_ns});
    if (range.module)
      steps.first_module_ns = std::min(steps.first_module_ns, range.start_ns);
    if (name.starts_with(kOptimizer) || is_optimizer_phase)
      steps.optimizers.push_back({range.start_ns, range.end_ns});
    if (name.starts_with(kZeroGrad))
      steps.zero_grads.push_back({range.start_ns, range.end_ns});
    if (name.starts_with(kProfilerStep))
      profiler_steps_ns.push_back(range.end_ns);
  }
  std::ranges::sort(steps.optimizers, begins_earlier);
  std::ranges::sort(steps.zero_grads, begins_earlier);
  std::ranges::sort(steps.backwards, begins_earlier);
  for (const TimeSpan& optimizer : steps.optimizers)
    steps.ends_ns.push_back(optimizer.end_ns);
  if (steps.ends_ns.empty())
    steps.ends_ns = std::move(profiler_steps_ns);
  if (steps.ends_ns.empty())
    steps.ends_ns = ends_of_repeated_range(session, false);
  if (steps.ends_ns.empty())
    steps.ends_ns = ends_of_repeated_range(session, true);
  std::ranges::sort(steps.ends_ns);
  return steps;
}

std::vector<MemoryUse> memory_uses(const Session& session,
                                   std::uint32_t allocator,
                                   const MemoryUsage& usage,
                                   const Steps& steps) {
  const std::vector<Allocation>& allocations = session.allocators.allocations;
  std::vector<MemoryUse> uses(allocations.size(), MemoryUse::kTemporary);
  const UseRules rules(session, allocator, usage, steps);
  for (std::size_t i = 0; i < allocations.size(); ++i)
    if (allocations[i].allocator == allocator)
      uses[i] = rules.use_of(allocations[i]);
  return uses;
}

}  // namespace rangescope::analyze
