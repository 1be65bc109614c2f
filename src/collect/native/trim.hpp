// Captures are made as large as they may become (inject/nvtx/capture.hpp); when their processes
// have ended, the hole behind what they hold is given back.
#pragma once

#include <cstddef>
#include <filesystem>

namespace rangescope::collect::native {

/// Cuts the captures of a folder at FileHeader::used_bytes. Leaves alone those of processes that
/// still run, and what is no capture or cannot be written. How many processes still run.
std::size_t trim_captures(const std::filesystem::path& folder);

}  // namespace rangescope::collect::native
