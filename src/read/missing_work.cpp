#include "read/missing_work.hpp"

#include <string>
#include <utility>

#include "base/units.hpp"

namespace rangescope::read {
namespace {

bool starts_kernels(const model::Launch& launch) {
  return launch.kind == model::LaunchKind::kKernel || launch.kind == model::LaunchKind::kGraph;
}

}  // namespace

void note_missing_work(model::Session& session) {
  const bool has_work = !session.kernels.empty() || !session.graph_launches.empty() || !session.copies.empty() ||
                        !session.memsets.empty();
  if (has_work || session.unrecorded.kernels) return;
  std::uint64_t launches = 0;
  for (const model::Launch& launch : session.launches) launches += starts_kernels(launch) ? 1 : 0;
  if (launches == 0) return;
  session.unrecorded.kernels = session.unrecorded.copies = true;
  std::string detail = base::counted(launches, "launch call");
  detail += " and no kernel: the recording has the CPU's side alone, GPU times are unknown";
  session.losses.push_back({"launches_without_work", launches, std::move(detail)});
}

}  // namespace rangescope::read
