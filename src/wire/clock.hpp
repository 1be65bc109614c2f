// The clock of captures: the machine's CLOCK_MONOTONIC. A process in a time namespace
// (time_namespaces(7)) reads a clock with an offset, and the processes of a run, including its
// samplers, may be in several namespaces.
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace rangescope::wire {

/// How far CLOCK_MONOTONIC of this process is ahead of the machine's, in nanoseconds; 0 if /proc
/// does not say. Reads two links and a file, and allocates nothing.
[[nodiscard]] inline std::int64_t clock_ahead_ns() {
  char own[64], of_children[64], text[256];
  const ssize_t bytes = ::readlink("/proc/self/ns/time", own, sizeof own);
  // A process that made a namespace is not in it: its children will be, and the file is about
  // theirs.
  if (bytes <= 0 ||
      ::readlink("/proc/self/ns/time_for_children", of_children, sizeof of_children) != bytes ||
      std::memcmp(own, of_children, static_cast<std::size_t>(bytes)) != 0)
    return 0;
  const int file = ::open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  const ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  text[got > 0 ? got : 0] = '\0';
  constexpr char kName[] = "monotonic ";  // then seconds and nanoseconds
  if (std::strncmp(text, kName, sizeof kName - 1) != 0)
    return 0;
  char* end = nullptr;
  const std::int64_t seconds = std::strtoll(text + sizeof kName - 1, &end, 10);
  return seconds * 1'000'000'000 + std::strtoll(end, nullptr, 10);
}

}  // namespace rangescope::wire
