// The GPU streams of a folder of captures, each given to the process image that wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

#include "model/session.hpp"

namespace rangescope::read::native {

/// Reads every `*.gpu` of `folder` (or of `folder`/native) into `session`, whose processes, threads and ranges are
/// there already. A stream belongs to the latest image of its pid that began before it; a process that left no other
/// capture is added; streams of the pids in `left_out` are not read. A stream that cannot be read is a loss.
void read_gpu_files(const std::filesystem::path& folder, const std::set<std::uint32_t>& left_out,
                    model::Session& session);

}  // namespace rangescope::read::native
