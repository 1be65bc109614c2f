#include "read/api_calls.hpp"

namespace rangescope::read {

model::LaunchKind launch_kind(std::string_view api) {
  if (api.starts_with("cudaGraphLaunch") || api.starts_with("cuGraphLaunch")) return model::LaunchKind::kGraph;
  for (const std::string_view wait :
       {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaThreadSynchronize",
        "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}) {
    if (api.starts_with(wait)) return model::LaunchKind::kSynchronize;
  }
  return model::LaunchKind::kOther;
}

model::SyncKind sync_kind(std::string_view api) {
  if (api.find("WaitEvent") != std::string_view::npos) return model::SyncKind::kStreamWaitEvent;
  if (api.find("StreamSync") != std::string_view::npos) return model::SyncKind::kStream;
  if (api.find("EventSync") != std::string_view::npos) return model::SyncKind::kEvent;
  return model::SyncKind::kContext;
}

}  // namespace rangescope::read
