// Whether this process records now, and into which window's folder. The hooks of NVTX ask first,
// which is one load from a page. The page is this library's own, or, if another process controls
// the recording, shared with that process (wire/control.hpp).
#pragma once

#include "inject/nvtx/writer.hpp"
#include "wire/control.hpp"

namespace rangescope::inject::control {

extern wire::control::Page page;  ///< zeros: everything is recorded

/// Nothing is recorded now: hooks return at once.
[[nodiscard]] inline bool dormant() {
  return __atomic_load_n(&page.dormant, __ATOMIC_RELAXED) != 0;
}
/// The same, and no window is about to open.
[[nodiscard]] inline bool asleep() {
  return __atomic_load_n(&page.dormant, __ATOMIC_RELAXED) == wire::control::kDormant;
}
/// Another process says when to record.
[[nodiscard]] inline bool controlled() {
  return page.magic[0] != 0;
}
/// The number of the window; 0 if no process controls the recording.
[[nodiscard]] inline std::uint32_t window() {
  return __atomic_load_n(&page.window, __ATOMIC_ACQUIRE);
}

/// Instances of a range open and close the window.
[[nodiscard]] inline bool counts() {
  return __atomic_load_n(&page.first, __ATOMIC_RELAXED) != 0;
}
/// Counts the push of a range of that name, and opens or closes the window at the right number.
void count(const Name& name);

/// cuProfilerStart and cuProfilerStop open and close the window.
[[nodiscard]] inline bool by_calls() {
  return counts() && page.name[0] == '\0';
}
/// Call it when the program calls cuProfilerStart. True the first time: the caller wakes everything
/// up and then opens the window with starts().
[[nodiscard]] bool is_called();
void starts();
/// Closes the window: the program calls cuProfilerStop.
void stops();

/// Maps the page of `folder` over ours, if there is one. False if that page cannot be used.
[[nodiscard]] bool join(const char* folder);
/// Whether `address` is in the page. Async-signal-safe.
[[nodiscard]] bool holds(const void* address);
/// Stops all recording, after the page's file was truncated. `page` has just been replaced and can
/// be written.
void lost();

}  // namespace rangescope::inject::control
