#include "analyze/cpu/own/call_tree.hpp"

#include <algorithm>

#include "analyze/cpu/cpu.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::kNone;

constexpr double kLeastShare = 0.01;       ///< of the region: smaller rows are left out
constexpr double kSameTime = 0.995;        ///< of its caller: one row with it
constexpr double kMostlyCalledFrom = 0.6;  ///< of its own time: less names no caller
constexpr std::size_t kMostTreeRows = 60;
/// Callers that are compared with a function to find out that it calls itself.
constexpr int kDeepestRecursion = 64;

}  // namespace

CallTree::CallTree(const model::Session& session, const UserCode& code)
    : session_(session), code_(code) {
  const model::CpuProfile& cpu = session.cpu;
  node_of_stack_.resize(cpu.stacks.size(), kNone);
  for (std::size_t s = 0; s < cpu.stacks.size(); ++s) {
    const model::CpuStack& stack = cpu.stacks[s];
    const std::uint32_t caller = stack.parent == kNone ? kNone : node_of_stack_[stack.parent];
    const Origin origin = code.origins[stack.frame];
    if (origin == Origin::kOwn)
      node_of_stack_[s] = child(caller, stack.frame, true);
    else if (origin == Origin::kElsewhere && caller != kNone && nodes_[caller].is_own &&
             is_entry_of_library(stack.frame))
      node_of_stack_[s] = child(caller, stack.frame, false);
    else
      node_of_stack_[s] = caller;
  }
}

/// A recursive function is one node: its callers are asked first.
std::uint32_t CallTree::child(std::uint32_t parent, std::uint32_t frame, bool is_own) {
  std::uint32_t caller = parent;
  for (int left = kDeepestRecursion; left > 0 && caller != kNone;
       --left, caller = nodes_[caller].parent)
    if (nodes_[caller].frame == frame)
      return caller;
  const auto [entry, is_new] =
      children_.try_emplace({parent, frame}, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new)
    nodes_.push_back({parent, frame, is_own});
  return entry->second;
}

bool CallTree::is_entry_of_library(std::uint32_t number) const {
  const model::CpuFrame& frame = session_.cpu.frames[number];
  if (frame.kind == model::FrameKind::kPython)
    return frame.file != 0;
  const std::string_view module = base::file_name(session_.strings.view(frame.module));
  const bool has_name = frame.kind == model::FrameKind::kNative && frame.name != 0;
  return has_name && !module.empty() && module.front() != '[' && !is_interpreter_module(module);
}

CallTree::RegionNodes CallTree::nodes_of(const OwnTimes& by_stack) const {
  RegionNodes region;
  double whole_ns = 0;
  for (const auto& [stack, times] : by_stack) {
    whole_ns += times.total_ns();
    const std::uint32_t node = stack < node_of_stack_.size() ? node_of_stack_[stack] : kNone;
    if (node != kNone)
      region.times[node].add(times);
  }
  // What a node calls comes before it. Its caller comes later, even if it is added here.
  for (const auto& [node, times] : region.times) {
    if (times.total_ns() <= 0)
      continue;
    const std::uint32_t parent = nodes_[node].parent;
    if (parent != kNone)
      region.times[parent].add(times);
    if (times.total_ns() >= kLeastShare * whole_ns)
      region.children[parent].push_back(node);
  }
  return region;
}

std::vector<model::CpuTreeRow> CallTree::rows(const OwnTimes& by_stack) const {
  RegionNodes region = nodes_of(by_stack);
  const auto total_ns = [&](std::uint32_t node) { return region.times.at(node).total_ns(); };
  struct Pending {
    std::uint32_t node, depth;
  };
  std::vector<Pending> pending;
  const auto push_called = [&](std::uint32_t caller, std::uint32_t depth) {
    std::vector<std::uint32_t>& called = region.children[caller];
    std::ranges::stable_sort(called, {}, total_ns);  // the last one is taken first
    for (const std::uint32_t node : called)
      pending.push_back({node, depth});
  };
  push_called(kNone, 0);
  std::vector<model::CpuTreeRow> rows;
  while (!pending.empty() && rows.size() < kMostTreeRows) {
    auto [node, depth] = pending.back();
    pending.pop_back();
    model::CpuTreeRow row;
    row.depth = depth;
    row.cpu_ns = region.times[node].cpu_ns;
    row.waiting_ns = region.times[node].waiting_ns;
    row.chain.push_back(code_place(session_, code_, nodes_[node].frame));
    while (region.children[node].size() == 1) {
      const std::uint32_t called = region.children[node].front();
      if (total_ns(called) < kSameTime * total_ns(node))
        break;
      row.chain.push_back(code_place(session_, code_, nodes_[called].frame));
      node = called;
    }
    rows.push_back(std::move(row));
    push_called(node, depth + 1);
  }
  return rows;
}

OwnCode::OwnCode(const model::Session& session)
    : session_(session), code_(user_code(session)), tree_(session, code_) {}

void OwnCode::fill(const OwnTimes& times, model::CpuWork& work) const {
  using TimeByFrame = std::map<std::uint32_t, double>;
  TimeByFrame cpu_ns_of_own, event_loop_ns_of_own;
  std::unordered_map<std::uint32_t, TimeByFrame> callers;  // of library functions
  for (const auto& [stack, time] : times) {
    if (stack >= code_.innermost.size() || time.cpu_ns <= 0)
      continue;
    const std::uint32_t own_frame = code_.innermost[stack];
    const std::uint32_t running_frame = session_.cpu.stacks[stack].frame;
    if (own_frame == kNone)
      continue;
    cpu_ns_of_own[own_frame] += time.cpu_ns;
    if (code_.is_callback[stack])
      event_loop_ns_of_own[own_frame] += time.cpu_ns;
    if (own_frame != running_frame)
      callers[running_frame][own_frame] += time.cpu_ns;
  }
  for (const auto& [frame, ns] : cpu_ns_of_own) {
    model::CpuFunction function = function_of(session_, frame);
    function.self_ns = ns;
    function.event_loop_ns = event_loop_ns_of_own[frame];
    work.own_functions.push_back(std::move(function));
  }
  std::ranges::sort(work.own_functions,
                    [](const model::CpuFunction& a, const model::CpuFunction& b) {
                      return a.self_ns != b.self_ns ? a.self_ns > b.self_ns : a.frame < b.frame;
                    });
  if (work.own_functions.size() > model::kMostFunctions)
    work.own_functions.resize(model::kMostFunctions);
  for (model::CpuFunction& function : work.functions) {
    const auto found = callers.find(function.frame);
    if (found == callers.end())
      continue;
    const auto main_caller =
        std::ranges::max_element(found->second, {}, &TimeByFrame::value_type::second);
    if (main_caller->second < kMostlyCalledFrom * function.self_ns)
      continue;
    function.caller = code_place(session_, code_, main_caller->first);
  }
  work.tree = tree_.rows(times);
}

}  // namespace rangescope::analyze
