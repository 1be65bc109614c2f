// Whether this process records now, and into which window's folder. What the hooks of NVTX ask
// first is one load of a page that is this library's own, or, where somebody controls the
// recording, his (wire/control.hpp).
#pragma once

#include "inject/nvtx/writer.hpp"
#include "wire/control.hpp"

namespace rangescope::inject::control {

extern wire::control::Page page;  ///< zeros: all is recorded

/// Nothing is recorded now: hooks return at once.
[[nodiscard]] inline bool dormant() {
  return __atomic_load_n(&page.dormant, __ATOMIC_RELAXED) != 0;
}
/// The same, and no window is about to open.
[[nodiscard]] inline bool asleep() {
  return __atomic_load_n(&page.dormant, __ATOMIC_RELAXED) == wire::control::kDormant;
}
/// Somebody else says when to record.
[[nodiscard]] inline bool controlled() {
  return page.magic[0] != 0;
}
/// The number of the window; 0 where nobody controls the recording.
[[nodiscard]] inline std::uint32_t window() {
  return __atomic_load_n(&page.window, __ATOMIC_ACQUIRE);
}

/// Some range opens and closes the window.
[[nodiscard]] inline bool counts() {
  return __atomic_load_n(&page.first, __ATOMIC_RELAXED) != 0;
}
/// A range of that name is pushed: opens or closes the window, where it is its turn.
void count(const Name& name);

/// cuProfilerStart and cuProfilerStop open and close the window.
[[nodiscard]] inline bool by_calls() {
  return counts() && page.name[0] == '\0';
}
/// The program calls cuProfilerStart. True for the first one: the window is to open, by starts()
/// once all is awake.
[[nodiscard]] bool is_called();
void starts();
/// It calls cuProfilerStop: the window closes.
void stops();

/// Puts the page of `folder` in the place of ours. False where there is one that cannot be used.
[[nodiscard]] bool join(const char* folder);
/// Whether `address` is in the page. Async-signal-safe.
[[nodiscard]] bool holds(const void* address);
/// The page's file was cut: nothing is recorded any more. `page` was just made anew, and can be
/// written.
void lost();

}  // namespace rangescope::inject::control
