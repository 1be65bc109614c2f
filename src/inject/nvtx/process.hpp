// State that belongs to one process. It is in a page that the kernel fills with zeros in the child
// of every fork, including a raw clone(2), no matter what other threads of the parent were doing.
// So the child starts without file and streams, and there is no lock that it could inherit. Zeros
// are therefore a valid state of everything here.
//
// Nothing in the injected library waits for another thread. If several threads need a new object at
// once, each makes one, and the first to publish its own with one compare-and-swap wins.
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/native.hpp"

namespace rangescope::inject {

class ThreadStream;
struct CaptureFile;

struct alignas(wire::native::kLargestPage) Process {
  /// 0: nothing was recorded here yet. No process has the number of an ancestor.
  std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> next_stream;  ///< ordinal of the next new stream
  std::atomic<ThreadStream*> streams;  ///< all of this process, linked by ThreadStream::made_before
  std::atomic<ThreadStream*> candidate;  ///< where to look next for a stream whose thread has ended
  std::atomic<CaptureFile*> file;        ///< null: none yet
  std::atomic<CaptureFile*> older;       ///< of the previous window
  std::atomic<CaptureFile*> spare;       ///< of an older window: used again for the next file
  std::atomic<std::uint64_t> no_file;    ///< window for which no file can be made, plus 1; 0: none
  std::atomic<bool> filtered;  ///< no file was tried: a seccomp filter might kill the program
  std::atomic<bool> cut_off;   ///< neither a file nor the reason can be written (chroot, setuid)
  std::atomic<std::uint64_t> first_range_id;                     ///< FileHeader::first_range_id
  std::atomic<std::uint64_t> early[wire::native::kDropReasons];  ///< drops before there was a file
};
extern Process process;

/// The next id of a start/end range. The child of a fork continues from its parent's.
extern std::atomic<std::uint64_t> next_range_id;

/// Makes the kernel clear `process` in children of a fork. Call it before anything is stored there;
/// any number of times, on any thread.
void process_watch_forks();

/// Process::generation, assigned if it is still 0.
[[nodiscard]] std::uint32_t process_generation();

}  // namespace rangescope::inject
