// What rangescope itself does that takes long, as one line of a terminal: "reading 43 %, 120
// MiB/s".
//
// A line appears after two seconds and goes when the work ends or a message is printed. Never while
// a profiled program runs: the terminal is that program's. Nothing is drawn before
// show_progress(true).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace rangescope::base {

/// Standard error is a terminal, and its user wants to see what goes on.
void show_progress(bool wanted);

/// One piece of work, for as long as it lives. One at a time; another one inside it draws nothing.
/// Costs a thread where lines are shown, else nothing.
class Work {
 public:
  /// `total`: bytes of it; 0: unknown.
  explicit Work(std::string activity, std::uint64_t total = 0);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  /// So many bytes more are done. Any thread; an addition.
  static void done(std::uint64_t bytes) noexcept;
  /// Takes the line off the terminal until it is next drawn.
  static void clear_line() noexcept;

 private:
  struct Line;
  std::unique_ptr<Line> line_;
};

/// "reading 43 %, 120 MiB/s": for tests apart from a terminal.
[[nodiscard]] std::string progress_text(const std::string& activity,
                                        std::uint64_t bytes,
                                        std::uint64_t total,
                                        double seconds);

}  // namespace rangescope::base
