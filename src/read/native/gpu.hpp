// The GPU part of a native capture: `<pid>.gpu` (format: wire/gpu.hpp) into a session that holds
// the process's ranges.
//
// Linear in the file's size, plus a sweep over the ranges of threads that captured CUDA graphs.
// Damage becomes a Loss: a torn tail is cut, an unknown record skipped, a record that contradicts
// its own size ends its block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/result.hpp"
#include "model/session.hpp"

namespace rangescope::read::native {

struct GpuStreamHead {
  std::uint32_t pid = 0;
  std::int64_t start_ns = 0;       ///< CLOCK_MONOTONIC
  std::int64_t start_unix_ns = 0;  ///< UTC, of the same moment
};

/// The header of a GPU stream, when `file` begins with one.
[[nodiscard]] std::optional<GpuStreamHead> gpu_stream_head(std::span<const std::byte> file);

/// Adds what `file` holds to `session`, as the work of session.processes[process], whose threads
/// and ranges must be there already. `where` names the file in losses. kBadData when it is no GPU
/// stream, or one of a newer version.
/// Returns what the stream says of its process's memory (wire::gpu::kMemoryKey), "" where nothing.
[[nodiscard]] base::Result<std::string> read_gpu(std::span<const std::byte> file,
                                                 const std::string& where,
                                                 std::uint32_t process,
                                                 model::Session& session);

// The GPU streams of a folder of captures, each given to the process image that wrote it.

/// Reads every `*.gpu` of `folder` (or of `folder`/native) into `session`, whose processes, threads
/// and ranges are there already. A stream belongs to the latest image of its pid that began before
/// it; a process that left no other capture is added; streams of the pids in `left_out` are not
/// read. A stream that cannot be read is a loss.
void read_gpu_files(const std::filesystem::path& folder,
                    const std::set<std::uint32_t>& left_out,
                    model::Session& session);

}  // namespace rangescope::read::native
