#include "read/missing_work.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.hpp"

namespace rangescope::read {
namespace {

/// Calls have their kind from the work that they started: without work there is the name alone.
bool starts_kernels(const model::Session& session, const model::Launch& launch) {
  if (launch.kind == model::LaunchKind::kKernel || launch.kind == model::LaunchKind::kGraph)
    return true;
  constexpr std::string_view kCalls[] = {"cudaLaunch",
                                         "cudaGraphLaunch",
                                         "cuLaunch",
                                         "cuGraphLaunch",
                                         "hipLaunchKernel",
                                         "hipGraphLaunch",
                                         "hipExtLaunch"};
  const std::string_view name = session.strings.view(launch.name);
  return std::ranges::any_of(kCalls, [&](std::string_view call) { return name.starts_with(call); });
}

/// Captures of rangescope tell themselves what they lack.
bool is_own_capture(const model::Session& session) {
  return !session.sources.empty() && session.sources.front().maker == model::Maker::kRangescope;
}

}  // namespace

void note_missing_work(model::Session& session) {
  const bool has_work = !session.kernels.empty() || !session.graph_launches.empty() ||
                        !session.copies.empty() || !session.memsets.empty();
  if (has_work || session.unrecorded.kernels || is_own_capture(session))
    return;
  std::uint64_t launches = 0;
  for (const model::Launch& launch : session.launches)
    if (starts_kernels(session, launch))
      ++launches;
  if (launches == 0)
    return;
  session.unrecorded.kernels = session.unrecorded.copies = true;
  std::string detail = base::counted(launches, "launch call");
  detail += " and no kernel: the recording has the CPU's side alone, GPU times are unknown";
  session.losses.push_back({"launches_without_work", launches, std::move(detail)});
}

}  // namespace rangescope::read
