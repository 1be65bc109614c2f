// --watch: shows, while a program runs, the table of what was captured so far.
//
// The recording is the same `rangescope profile` or `attach` with -q, run as a child: watching adds
// no work in the program. What is shown is read from the growing capture, as one would read that of
// a program that died at this moment. Reading takes longer as the capture grows, so the pause
// between two pictures is at least ten times what the last one took.
//
// A picture replaces the one before only where nothing else is written to the terminal: where the
// program has both its output streams elsewhere, or ran before we did. Otherwise pictures follow
// each other, and what the program printed stays.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyze/options.hpp"
#include "base/result.hpp"
#include "cli/arguments.hpp"
#include "cli/bind.hpp"
#include "cli/watch/metrics_server.hpp"
#include "model/session.hpp"

namespace rangescope::cli {

/// What asks for watching, on the command line of `profile` and `attach`.
struct WatchChoice {
  bool is_on = false;
  std::optional<std::chrono::nanoseconds> every;
  std::string openmetrics;  ///< address that serves the numbers of the table too; "" for none
  /// The program ran before we did: it writes nothing to our terminal, and is named by its id.
  bool is_of_running = false;

  [[nodiscard]] bool is_asked_for() const { return is_on || every || !openmetrics.empty(); }
};

/// The command line of the child that records: `words` without what asks for watching, and with
/// `tag`, in front of a program, whose arguments may follow without "--", or behind a process id.
[[nodiscard]] std::vector<std::string> recording_of(const std::vector<std::string>& words,
                                                    const std::string& tag,
                                                    bool is_of_running);

class Watch {
 public:
  /// `root`: of the runs.
  Watch(std::string root, WatchChoice wanted, ReportChoice choice, analyze::Options analysis);

  /// Runs `words`, the arguments of this rangescope from its subcommand on, without what asks for
  /// watching, and draws while they run. The exit code is that of the recording.
  [[nodiscard]] base::Result<int> run(const std::vector<std::string>& words);

 private:
  [[nodiscard]] base::Result<void> show_last(const std::filesystem::path& run, int report_fd) const;
  [[nodiscard]] std::filesystem::path find();
  void tick(std::chrono::nanoseconds elapsed);
  void draw(std::chrono::nanoseconds elapsed);
  void clear();
  [[nodiscard]] int screen() const;
  void put(const std::string& text) const;

  std::string root_;
  std::string tag_;  ///< a word that only our child has on its command line
  WatchChoice wanted_;
  std::string page_ = "# EOF\n";
  MetricsServer server_;
  int terminal_ = -1;  ///< where pictures replace each other; -1: nowhere
  ReportChoice choice_;
  analyze::Options analysis_;
  std::filesystem::path run_;
  std::chrono::nanoseconds next_{0};
  std::ptrdiff_t lines_ = 0;
};

}  // namespace rangescope::cli
