// Launching takes longer than what is launched, and nothing in a step keeps it from being a CUDA
// graph.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/candidate.hpp"
#include "analyze/replay/between_calls.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::size_t kFewestLaunches = 8;
constexpr double kMostOfInstances = 0.8;
constexpr double kDominates = 0.5;

/// The kernels and shapes that an instance launches. In which order threads do is another one each
/// time.
std::vector<std::uint64_t> signature_of(const Recording& recording, const Instance& instance) {
  std::vector<std::uint64_t> signature;
  for (const Id work : instance.works) {
    if (!recording.is_kernel(work))
      continue;
    const model::Kernel& kernel = recording.session().kernels[recording.operation(work).source];
    signature.push_back((std::uint64_t{kernel.name} << 32U) | kernel.shape);
  }
  std::ranges::sort(signature);
  return signature;
}

/// Waits, copies from memory that a graph does not know, and graphs themselves.
bool forbids_capture(const Recording& recording, const Instance& instance) {
  const auto is_wait = [&](Id id) { return recording.operation(id).kind == Kind::kWait; };
  const bool waits = std::ranges::any_of(instance.calls, is_wait) ||
                     std::ranges::any_of(instance.helper_calls, is_wait);
  const bool has_graph = std::ranges::any_of(
      instance.works, [&](Id id) { return recording.operation(id).kind == Kind::kGraph; });
  const bool copies_from_host = std::ranges::any_of(instance.works, [&](Id id) {
    return recording.operation(id).kind == Kind::kCopy &&
           recording.copy(id).kind != model::CopyKind::kDeviceToDevice;
  });
  return waits || has_graph || copies_from_host;
}

/// Of an instance, those that need not be launched, and those that are launched tensor by tensor or
/// sample by sample. They have cures of their own: a graph would only launch them faster, and an
/// optimizer that works so often cannot be captured as it is.
double kernels_with_other_cures(const Recording& recording, const Findings& findings) {
  std::size_t kernels = 0;
  for (const Candidate& candidate : findings.candidates()) {
    if (candidate.cure.ends_with("_one_by_one")) {
      kernels += candidate.remedy.operations().size();
    } else {
      kernels += static_cast<std::size_t>(std::ranges::count_if(
          candidate.remedy.removed, [&](Id id) { return recording.is_kernel(id); }));
    }
  }
  return per_instance(recording, kernels);
}

/// Time of its threads in calls and short stretches between them.
double launching_ns(const Recording& recording, const Instance& instance) {
  double ns = 0;
  const auto add = [&](Id id) {
    if (!replay::is_long_stretch(recording.operation(id)))
      ns += recording.duration_ns(id);
  };
  std::ranges::for_each(instance.calls, add);
  std::ranges::for_each(instance.helper_calls, add);
  return ns;
}

}  // namespace

void find_launches(const Recording& recording, Findings& findings) {
  if (!recording.has_steps() || recording.instances().size() < 3)
    return;
  const Instance& middle = recording.instances()[recording.instances().size() / 2];
  const auto signature = signature_of(recording, middle);
  if (signature.size() < kFewestLaunches)
    return;
  if (2 * kernels_with_other_cures(recording, findings) >= static_cast<double>(signature.size()))
    return;
  Candidate candidate{"cuda_graph", "", {}, {0, 0, 1}, {}};
  candidate.remedy.graph_launch_ns =
      static_cast<std::int64_t>(recording.costs().graph_launch_ns.expected);
  double launch_ns = 0, wall_ns = 0, busy_ns = 0;
  for (const Instance& instance : recording.instances()) {
    if (forbids_capture(recording, instance))
      continue;
    if (signature_of(recording, instance) != signature)
      continue;
    candidate.remedy.captured.push_back({instance.span, instance.helpers});
    launch_ns += launching_ns(recording, instance);
    busy_ns += recording.duration_ns(instance.works);
    wall_ns += static_cast<double>(instance.span.end_ns - instance.span.start_ns);
  }
  const auto captured = static_cast<double>(candidate.remedy.captured.size());
  const bool are_alike =
      captured >= kMostOfInstances * static_cast<double>(recording.instances().size());
  if (!are_alike || launch_ns < kDominates * wall_ns || busy_ns >= launch_ns)
    return;
  candidate.observation =
      fmt::format("launch-bound: {} kernels per instance take {}, launching them {}",
                  signature.size(),
                  base::format_ns(busy_ns / captured),
                  base::format_ns(launch_ns / captured));
  candidate.evidence = {{"kernels_per_instance", static_cast<double>(signature.size())},
                        {"launch_ns", launch_ns},
                        {"kernel_ns", busy_ns}};
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
