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

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "model/sketch.hpp"
#include "profile/sampling.hpp"

namespace rangescope::profile {

struct WindowChoice {
  struct Counted {
    std::string range;  ///< empty: from cudaProfilerStart() to cudaProfilerStop()
    std::uint32_t first = 0, last = 0;
  };
  /// Freezes the last windows where one held an occurrence longer than `factor` times what the
  /// range took before
  /// (`quantile` of it), or than `limit_ns`.
  struct When {
    std::string range;
    double quantile = 0, factor = 1, limit_ns = 0;
  };
  std::optional<std::chrono::nanoseconds>
      keep_last;  ///< so much of the end is kept, in windows that follow each other
  std::optional<When> when;
  std::optional<Counted> counted;                 ///< from occurrence `first` of a range to `last`
  bool stopped = false;                           ///< begins dormant
  std::optional<std::chrono::nanoseconds> after;  ///< the first window begins
  std::optional<std::chrono::nanoseconds> length;
  [[nodiscard]] bool any() const { return keep_last || counted || stopped || after || length; }
};

/// "step > p99 * 1.5", "step > 20ms". kUsage.
[[nodiscard]] base::Result<WindowChoice::When> parse_when(const std::string& text);
/// The length that an instance must exceed, where `lengths_ns` are those of all instances before.
/// Nothing while they are too few for a quantile. Quantiles are within model::kRelativeError.
[[nodiscard]] std::optional<double> limit_ns(const WindowChoice::When& when,
                                             const model::Distribution& lengths_ns);
/// "step:100-110", "step:100". kUsage.
[[nodiscard]] base::Result<WindowChoice::Counted> parse_counted(const std::string& text);

class Windows {
 public:
  /// Makes `captures`, its page and its socket, and opens the first window where that begins with
  /// the program. Must be called by the thread that starts the program, last before it
  /// (sample/cpu/recorder.hpp). kIo; as begin_cpu().
  [[nodiscard]] static base::Result<std::unique_ptr<Windows>> begin(
      const std::filesystem::path& captures, const WindowChoice& choice,
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
