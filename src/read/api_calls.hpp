// What a CUDA API call is for, told by its name with or without the suffix _vNNNN.
#pragma once

#include <string_view>

#include "model/gpu.hpp"

namespace rangescope::read {

/// kGraph or kSynchronize where the name says so, kOther otherwise.
[[nodiscard]] model::LaunchKind launch_kind(std::string_view api);
/// What a call of kind kSynchronize (or a stream's wait) waits for.
[[nodiscard]] model::SyncKind sync_kind(std::string_view api);

}  // namespace rangescope::read
