// A CUDA program whose captures have no GPU work because CUDA did not start.
#pragma once

#include <filesystem>

#include "model/session.hpp"

namespace rangescope::read::native {

/// Adds the loss `cuda_failed` with the reason that wire::kCudaErrorFile of this folder has, if it
/// is there.
void note_cuda_error(const std::filesystem::path& folder, model::Session& session);

}  // namespace rangescope::read::native
