// The capture file of this process: made at the first need, grown chunk by chunk, counting what
// could not be kept.
//
// No file descriptor stays open (a program that closes all descriptors, or counts them, sees
// nothing of us). The file is made as large as it may become, and sparse; what is mapped of it has
// its blocks before it is written, so that a full disk never becomes SIGBUS. Mapping more takes no
// descriptor and no path. Where that is not possible (Linux before 5.14, file systems of other
// machines) each chunk opens the file, reserves blocks and closes it. After a fork the child has no
// file until it records something; then it makes its own. Nothing here waits for another thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/native.hpp"

namespace rangescope::inject {

/// Reads the settings, once: RANGESCOPE_DIR, RANGESCOPE_MAX_CAPTURE_SIZE, RANGESCOPE_VERBOSE. True
/// when a capture is wanted and its folder can be written. Never prints, but for one line on stderr
/// under RANGESCOPE_VERBOSE when it is refused.
[[nodiscard]] bool capture_prepare();
/// The folder of the captures, after that.
[[nodiscard]] const char* capture_folder();

/// A mapped chunk of `bytes` (a multiple of 4096), all zeros; null, with the reason in `why`, when
/// it cannot be had: kWindowOver where another window is recorded by now. Makes the window's file
/// when this process has none yet.
[[nodiscard]] wire::native::ChunkHeader* capture_chunk(std::uint32_t window, std::size_t bytes,
                                                       wire::native::Drop& why);
inline constexpr wire::native::Drop kWindowOver{wire::native::kDropReasons};  ///< not counted
/// One of so many ranges is recorded, for what room is left: 1 up to half of the size, then 4, 16,
/// ...
[[nodiscard]] std::uint32_t capture_one_of();
void capture_release(wire::native::ChunkHeader* chunk, std::size_t bytes);

/// Counts an event that is not in the capture. Survives the process once there is a file.
void capture_count(wire::native::Drop why, std::uint64_t count = 1);

/// Makes the file now, so that a process which never opens a range is known all the same. False
/// when that fails.
bool capture_open();

/// Whether `address` is in a mapped header of a capture. Async-signal-safe.
[[nodiscard]] bool capture_header_holds(const void* address);

/// What recording an empty range takes, for the headers that are made from now on (FileHeader).
void capture_range_cost(std::uint64_t own_ps, std::uint64_t pair_ps);

/// Notes the orderly end of the process in the header.
void capture_end();

/// CLOCK_MONOTONIC of the machine (wire/clock.hpp), once clock_prepare() was called;
/// capture_prepare() does.
[[nodiscard]] std::int64_t now_ns();
void clock_prepare();

// A mapped file that somebody truncates takes its pages along: the next store into it is SIGBUS,
// which would end the program. With the guard it goes into memory that nobody reads, and a loss
// tells of it.
//
// The program may see that SIGBUS has a handler. What was there before it gets every other SIGBUS,
// as if it stood alone. A program that installs a handler of its own later, and a thread that
// blocks SIGBUS, are not guarded.

/// Whether `address` belongs to what the calling thread maps of a capture. Async-signal-safe.
[[nodiscard]] bool writer_holds(const void* address);

/// Once a process; later calls do nothing. Children of a fork inherit it.
void guard_maps();

}  // namespace rangescope::inject
