// The page by which `rangescope profile` says to the library in the program what is recorded: the
// file `control` among the captures, which every process of the program maps once. Without the file
// all is recorded.
//
// What is recorded in a window goes into a folder of its own, window-1, window-2 ... beside the
// page: captures, `launched` (wire/launched.hpp) and samples of the CPU, as of a run that is as
// long as the window.
#pragma once

#include <cstdint>

#include "wire/native.hpp"

namespace rangescope::wire::control {

inline constexpr char kFile[] = "control";
inline constexpr char kSocket[] = "control.sock";  ///< beside the page, while `profile` lives
inline constexpr char kWindow[] = "window-";       ///< and the window's number
inline constexpr char kMagic[8] = {'R', 'S', 'C', 'T', 'R', 'L', '1', '\n'};
inline constexpr std::uint32_t kBytes = native::kLargestPage;  ///< mapped over `Page` itself

/// Page::dormant: the GPU's timeline, which takes a while, is to begin.
inline constexpr std::uint32_t kDormant = 1, kWaking = 2;

struct alignas(kBytes) Page {
  char magic[8];
  std::uint32_t dormant;  ///< not 0: nothing is recorded. kWaking: a window is about to open
  std::uint32_t window;   ///< the number of the one that is open, or was last; from 1
  std::uint32_t since;  ///< the first of those that follow each other without a gap, up to this one
  std::uint32_t unused;
  std::int64_t start_ns;  ///< of the window
  /// --window NAME:FIRST-LAST: the process that pushes a range of that name first counts them here,
  /// opens the window at the push of FIRST, and closes it at that of the one after LAST. `first` 0:
  /// nobody does. Without a name it is cuProfilerStart that opens it, and cuProfilerStop that
  /// closes it: the first of each.
  std::uint32_t first, last;
  std::uint32_t counts;  ///< that process's id
  std::uint32_t pushed;
  std::int64_t end_ns;  ///< when it was closed so
  char name[256];       ///< terminated
};
static_assert(sizeof(Page) == kBytes);

}  // namespace rangescope::wire::control
