// The capture file of this process: made when it is first needed, grown chunk by chunk. Events that
// cannot be stored are counted in its header.
//
// No file descriptor stays open, so a program that closes or counts all descriptors is not
// affected. The file is sparse and created with its maximum size. Blocks are allocated for a chunk
// before it is written, so a full disk never causes SIGBUS. Mapping another chunk takes no
// descriptor and no path. Where that is not possible (Linux before 5.14, network file systems) each
// chunk opens the file, reserves blocks and closes it. After a fork the child has no file until it
// records something, and then makes its own. Nothing here waits for another thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/native.hpp"

namespace rangescope::inject {

/// Reads the settings, once: RANGESCOPE_DIR, RANGESCOPE_MAX_CAPTURE_SIZE, RANGESCOPE_VERBOSE. True
/// if a capture is wanted and its folder can be written. Prints nothing, except one line on stderr
/// under RANGESCOPE_VERBOSE if it returns false.
[[nodiscard]] bool capture_prepare();
/// The folder of the captures. Call capture_prepare() first.
[[nodiscard]] const char* capture_folder();

/// A mapped chunk of `bytes` (a multiple of 4096), all zeros. On failure null and the reason in
/// `why`: kWindowOver if another window is recorded by now. Makes the window's file if this process
/// has none yet.
[[nodiscard]] wire::native::ChunkHeader* capture_chunk(std::uint32_t window,
                                                       std::size_t bytes,
                                                       wire::native::Drop& why);
inline constexpr wire::native::Drop kWindowOver{wire::native::kDropReasons};  ///< not counted
/// N if one range of N is to be recorded: 1 until half of the file is used, then 4, 16, ... as the
/// space left halves again.
[[nodiscard]] std::uint32_t capture_thinning();
void capture_release(wire::native::ChunkHeader* chunk, std::size_t bytes);

/// Counts events that are not in the capture. The count survives the process once there is a file.
void capture_count(wire::native::Drop why, std::uint64_t count = 1);

/// Makes the file now, so that a process that never opens a range is listed as well. False if that
/// fails.
bool capture_open();

/// Whether `address` is in a mapped header of a capture. Async-signal-safe.
[[nodiscard]] bool capture_header_holds(const void* address);

/// Sets the cost of recording an empty range, for headers that are made from now on (FileHeader).
void capture_range_cost(std::uint64_t own_ps, std::uint64_t pair_ps);

/// Stores in the header that the process ended in an orderly way, and when.
void capture_end();

/// CLOCK_MONOTONIC of the machine (wire/clock.hpp), after clock_prepare(), which capture_prepare()
/// calls.
[[nodiscard]] std::int64_t now_ns();
void clock_prepare();

}  // namespace rangescope::inject
