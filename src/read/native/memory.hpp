// The snapshot of PyTorch's allocator that a profiled process saved next to its GPU stream.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "model/session.hpp"
#include "read/native/gpu.hpp"

namespace rangescope::read::native {

/// Adds the snapshot next to `stream` to `session.allocators`, as memory of
/// session.processes[process]. PyTorch names no threads: its allocations have none.
/// `state`: what the stream says of it (wire::gpu::kMemoryKey), "" where it says nothing. What is
/// missing or cannot be read is a loss.
void read_memory_file(const std::filesystem::path& stream,
                      const GpuStreamHead& head,
                      std::string_view state,
                      std::uint32_t process,
                      model::Session& session);

}  // namespace rangescope::read::native
