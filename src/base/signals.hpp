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

/// "SIGSEGV", or "SIG42" for a signal without a name.
[[nodiscard]] std::string signal_name(int signal);

/// From now on, writing beyond RLIMIT_FSIZE is an error (EFBIG) instead of the end of this process.
/// Programs that it runs start with the signal's default action.
void outlive_file_limit();
/// Gives a program that takes this process's place the default action again.
void stop_outliving_file_limit();

/// Ends this process by `signal` without a core file. Never returns: exits with 128 + signal if the
/// process survives the signal.
[[noreturn]] void die_by(int signal);

struct Arrived {
  int signal;
  bool from_kernel;
  pid_t sender;  ///< of the last of this number, if a process of this PID namespace sent it; else 0
};

/// Owns the handlers while a child runs, and blocks signals in this thread except while it waits.
/// Ignored signals stay ignored (nohup). Only one object owns them: a second one is not mine().
class Signals {
 public:
  /// `forward`: counts every signal that would end this process, else only SIGCHLD and SIGPIPE.
  explicit Signals(bool forward);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();
  [[nodiscard]] bool mine() const { return mine_; }
  /// Signals handled or ignored here: the child must start with their default actions.
  [[nodiscard]] sigset_t handled() const;
  /// This process was started with SIGCHLD ignored. The child must be too, so that its own children
  /// leave no zombies.
  [[nodiscard]] bool ignored_ends_of_children() const { return ignored_ends_of_children_; }
  /// The signal mask that this process started with; the child must start with it too.
  [[nodiscard]] const sigset_t& before() const { return before_; }
  /// Calls `on_arrival` for each signal since the previous call, except SIGCHLD.
  void drain(const std::function<void(const Arrived&)>& on_arrival) const;

 private:
  void install(int signal);
  bool mine_ = false;
  bool ignored_ends_of_children_ = false;
  sigset_t before_{};
  std::vector<std::pair<int, struct sigaction>> old_;
};

}  // namespace rangescope::base
