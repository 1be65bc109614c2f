// What threads did on the CPU: sampled call chains, and the stretches in which a thread did not
// run.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "model/range.hpp"
#include "model/strings.hpp"

namespace rangescope::model {

enum class FrameKind : std::uint8_t { kNative, kPython, kCut };

/// Name of the kPython frame in place of functions that were not read; its file is empty.
inline constexpr std::string_view kNotRead = "(not read)";

/// A function in a call chain. An inlined one is a frame of its own.
struct CpuFrame {
  FrameKind kind = FrameKind::kNative;
  StringId name = 0;    ///< demangled; "libx.so+0x1a20" without a symbol, 0 where nothing is known
  StringId file = 0;    ///< where it is declared, 0 where unknown
  StringId module = 0;  ///< path of the file it lies in; 0 of Python and of JIT code
  std::uint32_t line = 0;
};

/// A call chain: a frame, and what called it.
struct CpuStack {
  std::uint32_t parent = kNone;  ///< index into CpuProfile::stacks, before this one
  std::uint32_t frame = 0;
};

/// A thread as it was sampled; those of programs without ranges are there too.
struct CpuThread {
  std::uint32_t pid = 0, tid = 0;
  StringId name = 0;
  std::uint32_t thread = kNone;   ///< index into Session::threads
  std::uint32_t creator = kNone;  ///< that started it, index into CpuProfile::threads
  /// A process of the same recording, and so of its host and clock, where several were joined.
  std::uint32_t recorded_with = kNone;
};

/// The thread ran: it counts for `interval_ns` of CPU time.
struct CpuSample {
  std::int64_t at_ns = 0;
  std::uint32_t thread = 0;     ///< index into CpuProfile::threads
  std::uint32_t stack = kNone;  ///< the innermost frame
};

enum class WaitKind : std::uint8_t { kOther, kLock, kIo, kSleep, kPreempted, kGil, kChild };
/// By WaitKind, as reports name them.
inline constexpr std::string_view kWaitNames[] = {
    "other", "lock", "I/O", "sleep", "preempted", "GIL", "child"};
static_assert(std::size(kWaitNames) == static_cast<std::size_t>(WaitKind::kChild) + 1);
[[nodiscard]] constexpr std::string_view name_of(WaitKind kind) {
  return kWaitNames[static_cast<std::size_t>(kind)];
}

/// The thread did not run.
struct CpuWait {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t thread = 0;
  std::uint32_t stack = kNone;  ///< what it waited in, of longer waits
  WaitKind kind = WaitKind::kOther;
  float weight = 1;  ///< waits that it counts for: more than one where switches were recorded for a
                     ///< part of the time
  std::uint32_t holder = kNone;  ///< the thread that had the lock, or the GIL, where that is known
};

/// A source line that samples were taken at.
struct CpuLine {
  std::uint32_t frame = 0;  ///< the function, index into CpuProfile::frames
  std::uint32_t line = 0;   ///< in the file of the function
  std::uint32_t samples = 0;
};

/// An event that the kernel counted of every thread, and recorded each time that a period of them
/// was full.
struct CpuCounter {
  StringId name = 0;  ///< "cycles", as perf calls it
  double period = 1;  ///< events of a record
  double weight = 1;  ///< events that a record counts for: all that were counted in the run by the
                      ///< number of records
  double running =
      1;  ///< share of the time that it was counted in; less where events took turns. 0: unknown
};

struct CpuCount {
  std::int64_t at_ns = 0;
  std::uint32_t thread = 0, counter = 0;
};

struct CpuProfile {
  std::int64_t interval_ns = 0;  ///< 0: nothing was sampled
  std::string unwinding;         ///< how call chains were followed
  bool switches = true;          ///< waits were recorded
  double unwatched = 0;  ///< share of the time in which waits were not, since they came too fast
  bool kernel = true;    ///< samples were taken in the kernel too
  std::vector<CpuThread> threads;
  std::vector<CpuFrame> frames;
  std::vector<CpuStack> stacks;
  std::vector<CpuSample> samples;  ///< by thread, within it by time
  std::vector<CpuWait> waits;      ///< likewise
  std::vector<CpuLine> lines;
  std::vector<CpuCounter> counters;
  std::vector<CpuCount> counts;  ///< by thread, within it by time
};

}  // namespace rangescope::model
