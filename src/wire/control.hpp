// The page by which `rangescope profile` tells the library in the program when to record: the file
// `control` in the folder of the captures, which every process of the program maps once. Without
// the file everything is recorded.
//
// Each window has its own folder next to the page, window-1, window-2 ...: captures, `launched`
// (wire/launched.hpp) and samples of the CPU, as for a run that is as long as the window.
#pragma once

#include <cstdint>

#include "wire/native.hpp"

namespace rangescope::wire::control {

inline constexpr char kFile[] = "control";
inline constexpr char kSocket[] = "control.sock";  ///< next to the page, while `profile` lives
inline constexpr char kWindow[] = "window-";       ///< followed by the window's number
inline constexpr char kMagic[8] = {'R', 'S', 'C', 'T', 'R', 'L', '1', '\n'};
inline constexpr std::uint32_t kBytes = native::kLargestPage;  ///< mapped over `Page` itself

/// Values of Page::dormant. kWaking: the GPU's timeline, which takes a while to start, starts.
inline constexpr std::uint32_t kDormant = 1, kWaking = 2;

struct alignas(kBytes) Page {
  char magic[8];
  std::uint32_t dormant;  ///< not 0: nothing is recorded. kWaking: a window is about to open
  std::uint32_t window;   ///< number of the open window, or of the last one; from 1
  std::uint32_t since;    ///< the first window from which there was no gap up to this one
  std::uint32_t unused;
  std::int64_t start_ns;  ///< of the window
  /// --window NAME:FIRST-LAST: the first process that pushes a range of that name counts its pushes
  /// here, opens the window at the push of FIRST, and closes it at the push after LAST. `first` 0:
  /// no process does. Without a name, the first cuProfilerStart opens the window, and the first
  /// cuProfilerStop closes it.
  std::uint32_t first, last;
  std::uint32_t counts;  ///< that process's id
  std::uint32_t pushed;
  std::int64_t end_ns;  ///< when it was closed in this way
  char name[256];       ///< terminated
};
static_assert(sizeof(Page) == kBytes);

}  // namespace rangescope::wire::control
