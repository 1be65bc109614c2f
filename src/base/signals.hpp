// Signals while another program runs, the names of signals, and ending by one.
//
// Handlers count what arrives, and the loop that waits is woken out of ppoll. No descriptor:
// `ulimit -n 4` is enough.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rangescope::base {

/// "SIGSEGV"; "SIG42" where there is no name.
[[nodiscard]] std::string signal_name(int signal);

/// From now on a file that grows beyond RLIMIT_FSIZE is an error (EFBIG) and does not end us. What
/// is run starts with the signal's default action.
void outlive_file_limit();
/// Gives a program that takes this process's place the default action again.
void stop_outliving_file_limit();

/// Ends this process by `signal`, without a core file of our own; never returns (128 + signal where
/// it was survived).
[[noreturn]] void die_by(int signal);

struct Arrived {
  int signal;
  bool from_kernel;
  pid_t sender;  ///< of the last of this number, if a process of this PID namespace sent it; else 0
};

/// Owns the handlers while a child runs, and holds signals back in this thread but while it waits.
/// Signals that we ignore stay ignored (nohup). One at a time: of two, the second is not mine().
class Signals {
 public:
  /// `forward`: all that would end us are counted; else SIGCHLD and SIGPIPE alone.
  explicit Signals(bool forward);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();
  [[nodiscard]] bool mine() const { return mine_; }
  /// Handled or ignored here: the child must start with their default actions.
  [[nodiscard]] sigset_t handled() const;
  /// We were started with SIGCHLD ignored, and so must the child be: its own children leave no
  /// zombies.
  [[nodiscard]] bool ignored_ends_of_children() const { return ignored_ends_of_children_; }
  /// The mask that we came with, and the child must start with.
  [[nodiscard]] const sigset_t& before() const { return before_; }
  /// Calls it for each signal that arrived since the last time, but SIGCHLD.
  void drain(const std::function<void(const Arrived&)>& on_arrival) const;

 private:
  void install(int signal);
  bool mine_ = false;
  bool ignored_ends_of_children_ = false;
  sigset_t before_{};
  std::vector<std::pair<int, struct sigaction>> old_;
};

}  // namespace rangescope::base
