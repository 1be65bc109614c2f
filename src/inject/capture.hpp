// The capture file of this process: made at the first need, grown chunk by chunk, counting what could not be kept.
//
// No file descriptor stays open (a program that closes all descriptors, or counts them, sees nothing of us): each chunk
// opens the file, reserves the blocks on disk before they are mapped (a full disk must never become SIGBUS) and closes
// it. After a fork the child has no file until it records something; then it makes its own. Nothing here waits for
// another thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/native.hpp"

namespace rangescope::inject {

/// Reads the settings, once: RANGESCOPE_DIR, RANGESCOPE_MAX_CAPTURE_SIZE, RANGESCOPE_VERBOSE. True when a capture is
/// wanted and its folder can be written. Never prints, but for one line on stderr under RANGESCOPE_VERBOSE when it is
/// refused.
[[nodiscard]] bool capture_prepare();

/// A mapped chunk of `bytes` (a multiple of 4096) whose header is filled in but for stream, sequence, tid and magic;
/// null, with the reason in `why`, when it cannot be had. Opens the file when this process has none yet.
[[nodiscard]] wire::native::ChunkHeader* capture_chunk(std::size_t bytes, wire::native::Drop& why);
void capture_release(wire::native::ChunkHeader* chunk, std::size_t bytes);

/// Counts an event that is not in the capture. Survives the process once there is a file.
void capture_count(wire::native::Drop why, std::uint64_t count = 1);

/// Makes the file now, so that a process which never opens a range is known all the same. False when that fails.
bool capture_open();

/// Notes the orderly end of the process in the header.
void capture_end();

[[nodiscard]] std::int64_t now_ns();

}  // namespace rangescope::inject
