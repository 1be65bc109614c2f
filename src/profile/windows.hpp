// Windows of a program that `profile` runs: the stretches of its life that are recorded. Between
// them its library is dormant (wire/control.hpp) and its CPU is not sampled.
//
// A thread of ours opens and closes them, as the command line asked (--after, --for) and as
// `rangescope ctl` asks while the program runs: over a socket of the run's folder, of mode 0600,
// which answers this user's and root's processes alone. A request is a line (start, stop, status,
// mark NAME), its answer some lines, of which the first begins with "ok" or "error". With
// --keep-last windows follow each other without a gap, and old ones are removed; a mark keeps those
// of the last seconds as a run below the run (marks/NAME). Whatever clients do, neither the program
// nor `profile` waits for them (base/server.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "profile/sampling.hpp"
#include "profile/window_choice.hpp"

namespace rangescope::profile {

class Windows {
 public:
  /// Makes `captures`, its page and its socket, and opens the first window where that begins with
  /// the program. Must be called by the thread that starts the program, last before it
  /// (sample/cpu/recorder.hpp). kIo; as begin_cpu().
  [[nodiscard]] static base::Result<std::unique_ptr<Windows>> begin(
      const std::filesystem::path& captures,
      const WindowChoice& choice,
      const SampleChoice& sampling);
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  ~Windows();

  void started(pid_t program);
  /// The program has ended, and with it the window that is open. Waits until all windows can be
  /// read.
  void ended();
  [[nodiscard]] std::uint32_t count() const;

 private:
  struct State;
  explicit Windows(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rangescope::profile
