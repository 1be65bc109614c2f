// When rangescope started a program, and when the program ended: the file `launched` next to its
// captures, written by the launcher, so that a program that does not load our library has a begin
// and an end too. Lines `key value`:
//
//   rangescope-launched 1
//   start_unix_ns 1700000000000000000   UTC, from before the spawn
//   start_ns 81900000000                CLOCK_MONOTONIC, the same moment
//   end_ns 83900000000                  when it was reaped; absent while it runs
//
// For a window, start and end are the window's. There are also, for a process that was running
// already (`attach`), the first two, and for a program that we started, the last:
//
//   attached_pid 4711
//   ran_ns 7200000000000                how long it had run when the window began
//   window 2                            the window's number (wire/control.hpp)
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace rangescope::wire::launched {

inline constexpr char kFile[] = "launched";
inline constexpr char kHead[] = "rangescope-launched 1\n";

struct Launched {
  std::int64_t start_unix_ns = 0, start_ns = 0, end_ns = 0;  ///< end 0: it runs
  std::uint32_t attached_pid = 0;                            ///< 0: it was started by us
  std::int64_t ran_ns = 0;
  std::uint32_t window = 0;
};

inline std::string text_of(const Launched& launched) {
  std::string text = kHead;
  text += "start_unix_ns " + std::to_string(launched.start_unix_ns) + "\nstart_ns " +
          std::to_string(launched.start_ns) + "\n";
  if (launched.end_ns > 0)
    text += "end_ns " + std::to_string(launched.end_ns) + "\n";
  if (launched.attached_pid > 0)
    text += "attached_pid " + std::to_string(launched.attached_pid) + "\nran_ns " +
            std::to_string(launched.ran_ns) + "\n";
  if (launched.window > 0)
    text += "window " + std::to_string(launched.window) + "\n";
  return text;
}

/// False if it is not such a file, or damaged.
inline bool read(const std::string& text, Launched& into) {
  const std::string head = kHead;
  if (text.compare(0, head.size(), head) != 0)
    return false;
  const int fields = std::sscanf(text.c_str() + head.size(),
                                 "start_unix_ns %" SCNd64 " start_ns %" SCNd64 " end_ns %" SCNd64,
                                 &into.start_unix_ns,
                                 &into.start_ns,
                                 &into.end_ns);
  constexpr std::int64_t kLatest = std::int64_t{1} << 62;
  if (const auto line = text.find("attached_pid "); line != std::string::npos)
    std::sscanf(text.c_str() + line,
                "attached_pid %" SCNu32 " ran_ns %" SCNd64,
                &into.attached_pid,
                &into.ran_ns);
  if (const auto line = text.find("\nwindow "); line != std::string::npos)
    std::sscanf(text.c_str() + line, "\nwindow %" SCNu32, &into.window);
  if (into.ran_ns < 0 || into.ran_ns >= kLatest)
    into.ran_ns = 0;
  const bool has_start =
      fields >= 2 && into.start_ns > 0 && into.start_ns < kLatest && into.start_unix_ns > 0;
  const bool is_running = into.end_ns == 0;
  return has_start && into.end_ns < kLatest && (is_running || into.end_ns >= into.start_ns);
}

}  // namespace rangescope::wire::launched
