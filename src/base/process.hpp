// Runs another program, without a shell: arguments, environment changes, folder, output, time
// limit, signals, and how it ended.
//
// Output that is neither kept nor copied is inherited: the program has the very descriptors that we
// have, so that a terminal stays a terminal. One program at a time may run with `forward_signals`
// (handlers belong to the process). Refuses: an empty argv without a child, and a program that does
// not exist (kNoInput) or may not be run (kPermission).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rangescope::base {

/// What becomes of one output stream of the child.
struct Output {
  bool pass = true;   ///< shown on our own stream at once
  bool keep = false;  ///< kept in Ended::out or Ended::err
  std::filesystem::path
      file;  ///< written there too, by the child itself where it is all; "" for no file
};

struct Command {
  std::vector<std::string> argv;
  /// A child that was forked already, in place of one to start: it is waited for.
  pid_t running = 0;
  std::map<std::string, std::string> set_env;
  std::vector<std::string> unset_env;
  std::filesystem::path cwd;  ///< "" for ours
  Output out, err;
  /// Its own process group, so that a time limit or a signal ends its children too. Without it the
  /// child shares our group, as under a shell's `time`: what a terminal's Ctrl-C does to both is
  /// not done twice.
  bool own_group = false;
  /// With own_group: signals go to the child alone, as they would without us, and not to its whole
  /// group.
  bool signal_child_only = false;
  /// It stays in our process group, and we leave that for one of our own while it runs: a signal to
  /// the group reaches it once. Nothing where we lead the group.
  bool leave_group = false;
  bool null_stdin = false;
  /// Signals that would end us go on to it, also those sent to a fault's number. Ended by SIGINT,
  /// SIGTERM, SIGHUP or SIGQUIT, or by the limit: all it started ends.
  bool forward_signals = false;
  /// "NAME=value" in the environment of all it starts, by which they are found when all ends.
  /// Without it, orphans of what it starts become our children.
  std::string mark;
  std::optional<std::chrono::nanoseconds> timeout;  ///< then SIGTERM, and SIGKILL after `grace`
  std::chrono::nanoseconds grace = std::chrono::seconds(5);
  std::function<void(pid_t)> started;  ///< called once it runs
  std::chrono::milliseconds tick_every{250};
  std::function<void(std::chrono::nanoseconds elapsed)>
      tick;  ///< called about every `tick_every` while it runs
  /// Asked after each tick: true ends it as the time limit would.
  std::function<bool()> enough;
  /// The clock of the time limit, of ticks and of Ended::wall_ns. Another one lets a test skip
  /// hours.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// How it ended. Exactly one of exit_code and signal is there, unless it was left.
struct Ended {
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool core_dumped = false;
  bool timed_out = false;          ///< our time limit ended it
  bool enough = false;             ///< Command::enough ended it
  bool left = false;               ///< not ours: it runs on, or its end was not reported to us
  std::optional<int> forwarded;    ///< the last signal that reached us and went on to it
  std::int64_t start_unix_ns = 0;  ///< UTC
  std::int64_t wall_ns = 0;        ///< from before the spawn until it was reaped
  /// Of it and the children that it waited for; absent where it was left.
  struct Usage {
    std::int64_t user_ns = 0, system_ns = 0;
    std::int64_t peak_rss_bytes = 0;  ///< of the largest of them; 0: unknown
  };
  std::optional<Usage> usage;
  std::optional<std::uint64_t>
      open_files;  ///< most descriptors that it allowed itself in the end (RLIMIT_NOFILE)
  std::string out, err;

  [[nodiscard]] bool ok() const { return exit_code == 0 || left; }
};

/// What only answers: its words are kept and not shown, and in English; it reads nothing and has a
/// group of its own.
[[nodiscard]] Command question(std::vector<std::string> argv,
                               std::optional<std::chrono::nanoseconds> limit);

/// Runs it to its end.
[[nodiscard]] Result<Ended> run(const Command& command);

/// "exit code 3", "SIGSEGV (11), core dumped"
[[nodiscard]] std::string describe(const Ended& ended);
}  // namespace rangescope::base
