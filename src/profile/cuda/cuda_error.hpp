// A CUDA program on a machine without a GPU: what its CUDA calls were answered.
#pragma once

#include <filesystem>
#include <string>

#include "model/session.hpp"

namespace rangescope::profile {

/// If the program has GPU code and CUDA did not start in it, asks CUDA's driver for the reason, in
/// a process of its own, and keeps it in the folder of the captures and as a loss of the session.
/// Nothing where the driver starts here: then the program did not call CUDA. A program that only
/// loads CUDA's libraries, as PyTorch does, may work on the CPU: it counts if it `failed`.
void explain_missing_cuda(const std::filesystem::path& captures,
                          const std::string& program,
                          bool failed,
                          model::Session& session);

}  // namespace rangescope::profile
