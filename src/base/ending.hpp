// The whole of what run() started, once it has been asked to end. Tools double-fork their helpers
// and put them into other sessions; so that none is lost, they are found by a mark in their
// environment, or orphans of the child's tree become ours while it runs (Linux's "child
// subreaper").
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
  /// Orphans are adopted by one run at a time: an orphan does not show which run it belongs to.
  explicit Ending(const Command& command);
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending();
  void of(pid_t child) { child_ = child; }

  /// `signal` to the child, or to its group. `had_it`: the terminal sent it to our group, and so to
  /// a child that shares it.
  void send(int signal, bool had_it) const;
  /// Whether a process of the program sent it, which is in our group: to the group, that is, and so
  /// to the program too. A signal that it sends to us alone looks the same, and was not for the
  /// program either.
  [[nodiscard]] bool sent_it(pid_t sender) const;
  /// To everybody: its time is up.
  void send_all(int signal) const;
  /// Orphans that ended are ours to bury, or a program that makes thousands would fill the process
  /// table.
  void bury() const;
  void kill_all() const;
  /// The child is gone: the others get a moment, then SIGTERM and `grace`, then SIGKILL.
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
  std::vector<TreeMember> before_;  // we, and what runs already
};

}  // namespace rangescope::base
