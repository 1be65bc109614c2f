// CUDA graphs that are captured again in the loop: what a thread does from the first call of a
// capture to its last, and the calls that make and destroy graphs. A capture records launches, and
// launches none.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::size_t kFewestCapturing = 3;

bool has_part(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

bool begins_capture(std::string_view call) {
  return has_part(call, "BeginCapture");
}

bool makes_or_destroys_graph(std::string_view call) {
  return has_part(call, "GraphInstantiate") || has_part(call, "GraphExecDestroy") ||
         has_part(call, "GraphDestroy");
}

/// What a thread does right before a capture is for it: PyTorch collects garbage and empties its
/// caches there. It goes back to the last launch or wait.
Ids before_capture(const Recording& recording, const Ids& calls, std::size_t begin) {
  Ids before;
  for (std::size_t index = begin; index > 0; --index) {
    const Id id = calls[index - 1];
    const Kind kind = recording.operation(id).kind;
    const bool is_own = kind == Kind::kStretch || has_part(recording.call_name(id), "MemFree");
    if (!is_own)
      break;
    before.push_back(id);
  }
  return before;
}

Ids capturing_operations(const Recording& recording, const Instance& instance) {
  Ids operations;
  bool is_capturing = false;
  for (std::size_t index = 0; index < instance.calls.size(); ++index) {
    const Id id = instance.calls[index];
    const std::string_view call = recording.call_name(id);
    if (begins_capture(call)) {
      is_capturing = true;
      append(operations, before_capture(recording, instance.calls, index));
    }
    if (is_capturing || makes_or_destroys_graph(call))
      operations.push_back(id);
    if (has_part(call, "EndCapture"))
      is_capturing = false;
  }
  return operations;
}

}  // namespace

void find_graph_captures(const Recording& recording, Findings& findings) {
  if (!recording.has_steps())
    return;
  const auto& instances = recording.instances();
  Ids operations;
  std::size_t capturing = 0, last_capturing = 0;
  for (std::size_t index = kStartUpInstances; index < instances.size(); ++index) {
    Ids of_instance = capturing_operations(recording, instances[index]);
    std::erase_if(of_instance, [&](Id id) { return findings.is_claimed(id); });
    const bool captures = std::ranges::any_of(
        of_instance, [&](Id id) { return begins_capture(recording.call_name(id)); });
    if (!captures)
      continue;
    ++capturing;
    last_capturing = index;
    append(operations, of_instance);
  }
  if (capturing < kFewestCapturing || !is_late(recording, last_capturing))
    return;
  findings.claim(operations);
  const double capture_ns = recording.duration_ns(operations);
  Candidate candidate{
      "graph_captures",
      fmt::format("the launching thread captures a CUDA graph again in {} of {} instances "
                  "({} in all)",
                  capturing,
                  instances.size(),
                  base::format_ns(capture_ns)),
      {},
      {},
      {{"instances", static_cast<double>(capturing)}, {"capture_ns", capture_ns}}};
  candidate.remedy.removed = std::move(operations);
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
