// What belongs to one process alone. It lies in a page that the kernel fills with zeros in the
// child of every fork, also of one made by a raw clone(2), whatever the other threads of the parent
// were doing: the child starts with no file and no stream, and there is no lock that it could
// inherit. Zeros are therefore a valid state of everything here.
//
// Nothing of the injected library waits for another thread: what several threads may make at once
// is made by each, and the first to publish it with one compare-and-swap wins.
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/native.hpp"

namespace rangescope::inject {

class ThreadStream;
struct CaptureFile;

struct alignas(wire::native::kLargestPage) Process {
  std::atomic<std::uint32_t>
      generation;  ///< 0: nothing was recorded here yet; unlike that of every ancestor
  std::atomic<std::uint32_t> next_stream;  ///< ordinal of the next new stream
  std::atomic<ThreadStream*> streams;  ///< all of this process, linked by ThreadStream::made_before
  std::atomic<ThreadStream*> candidate;  ///< where to look next for a stream whose thread has ended
  std::atomic<CaptureFile*> file;        ///< null: none yet
  std::atomic<CaptureFile*> older,
      spare;  ///< of the window before, and of one before that: its place is used again
  std::atomic<std::uint64_t>
      no_file;                 ///< none can be made for this window, plus 1: do not try for ever
  std::atomic<bool> filtered;  ///< none was tried, for a seccomp filter might kill for that
  std::atomic<bool> cut_off;   ///< neither a file nor the reason can be written (chroot, setuid)
  std::atomic<std::uint64_t> first_range_id;  ///< FileHeader::first_range_id
  std::atomic<std::uint64_t>
      early[wire::native::kDropReasons];  ///< counted before there was a file
};
extern Process process;

/// The next id of a start/end range: goes on in the child of a fork.
extern std::atomic<std::uint64_t> next_range_id;

/// Makes `process` one that forks clear. Before anything is stored there; any number of times, on
/// any thread.
void process_watch_forks();

/// Process::generation, made where it is 0.
[[nodiscard]] std::uint32_t process_generation();

}  // namespace rangescope::inject
