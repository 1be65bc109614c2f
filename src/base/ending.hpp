// Ends every process that run() started. Tools double-fork their helpers and put them into other
// sessions. To find them all, they carry a mark in their environment, or this process adopts the
// orphans of the child's tree while it runs (Linux's "child subreaper").
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "base/process_tree.hpp"

namespace rangescope::base {

class Ending {
 public:
  /// Only one run at a time adopts orphans: an orphan does not show which run it belongs to.
  explicit Ending(const Command& command);
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending();
  void of(pid_t child) { child_ = child; }

  /// Sends `signal` to the child, or to its group. `had_it`: the child already got it, because the
  /// terminal sent it to the group that it shares with us.
  void send(int signal, bool had_it) const;
  /// Is the sender a process of the program in our group? Then it signalled the whole group, so the
  /// program got the signal too. A signal to us alone looks the same; it was not meant for the
  /// program either.
  [[nodiscard]] bool sent_it(pid_t sender) const;
  /// Sends `signal` to all processes, because their time is up.
  void send_all(int signal) const;
  /// Reaps adopted orphans that have ended. Otherwise a program with thousands of them would fill
  /// the process table.
  void bury() const;
  void kill_all() const;
  /// After the child has ended: the others get a moment, then SIGTERM, and SIGKILL after `grace`.
  void finish(std::chrono::nanoseconds grace) const;

 private:
  [[nodiscard]] pid_t child_or_group() const { return own_group_ ? -child_ : child_; }
  [[nodiscard]] bool ran_before(const TreeMember& member) const;
  [[nodiscard]] std::vector<TreeMember> others() const;
  void send_others(int signal) const;
  [[nodiscard]] bool gone_within(std::chrono::nanoseconds time) const;

  bool own_group_, to_group_, adopt_;
  std::string mark_;
  int was_reaper_ = 0;
  pid_t child_ = -1;
  std::vector<TreeMember> before_;  // this process, and those that ran before the child
};

}  // namespace rangescope::base
