#include "base/signals.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace rangescope::base {
namespace {

constexpr int kSignals = 65;
struct Counts {
  std::atomic<unsigned> by_user[kSignals], by_kernel[kSignals];
  std::atomic<pid_t> sender[kSignals];
  std::atomic<unsigned>* of(bool from_kernel) { return from_kernel ? by_kernel : by_user; }
};
Counts g_arrived;
std::atomic<pid_t> g_waiting{0};  // the thread that runs a program, 0: none
bool g_ignores_file_limit = false;

pid_t this_thread() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

bool is_fault(int signal) {
  constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  return std::find(kFaults.begin(), kFaults.end(), signal) != kFaults.end();
}

// What ends a process by default, and what it is sent for. Not what stops it: the program's own
// stop is ours, too.
bool is_forwarded(int signal) {
  constexpr std::array kNot = {
      SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};
  if (signal >= __SIGRTMIN && signal < SIGRTMIN)
    return false;  // the C library's own
  return std::find(kNot.begin(), kNot.end(), signal) == kNot.end();
}

void on_signal(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const bool from_kernel = info->si_code > 0;
  const bool from_us = info->si_code <= 0 && info->si_pid == ::getpid();
  const bool is_own_fault = is_fault(signal) && (from_kernel || from_us);
  // This process raises some signals itself: by writing to a closed pipe or beyond the file limit.
  const bool is_counted = !from_us || signal == SIGCHLD;
  if (is_own_fault) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  } else if (is_counted) {
    const bool has_sender =
        info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE;
    if (!from_kernel)
      g_arrived.sender[signal] = has_sender ? info->si_pid : 0;
    g_arrived.of(from_kernel)[signal].fetch_add(1);
    const pid_t waiting = g_waiting.load();
    if (waiting != 0 && waiting != this_thread())
      ::syscall(SYS_tgkill, ::getpid(), waiting, SIGCHLD);
  }
  errno = saved;
}

}  // namespace

Signals::Signals(bool forward) {
  pid_t nobody = 0;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before_);
  mine_ = g_waiting.compare_exchange_strong(nobody, this_thread());
  if (!mine_)
    return;
  install(SIGCHLD);
  install(SIGPIPE);  // the reader of our copy may go away; the program must not notice
  for (int signal = 1; forward && signal < kSignals; ++signal) {
    if (signal != SIGPIPE && is_forwarded(signal))
      install(signal);
  }
  sigset_t held = handled();
  for (int signal = 1; signal < kSignals; ++signal) {
    if (is_fault(signal))
      sigdelset(&held, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

Signals::~Signals() {
  if (!mine_)
    return;
  for (const auto& [signal, action] : old_)
    ::sigaction(signal, &action, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  for (int signal = 1; signal < kSignals; ++signal)
    g_arrived.by_user[signal] = g_arrived.by_kernel[signal] = 0;
  g_waiting = 0;
}

sigset_t Signals::handled() const {
  sigset_t set;
  sigemptyset(&set);
  for (const auto& [signal, action] : old_)
    sigaddset(&set, signal);
  if (g_ignores_file_limit)
    sigaddset(&set, SIGXFSZ);
  return set;
}

void Signals::drain(const std::function<void(const Arrived&)>& on_arrival) const {
  for (int signal = 1; mine_ && signal < kSignals; ++signal) {
    for (const bool from_kernel : {false, true}) {
      const pid_t sender = from_kernel ? 0 : g_arrived.sender[signal].load();
      unsigned count = g_arrived.of(from_kernel)[signal].exchange(0);
      for (; signal != SIGCHLD && count > 0; --count)
        on_arrival(Arrived{signal, from_kernel, sender});
    }
  }
}

void Signals::install(int signal) {
  struct sigaction old {};
  ::sigaction(signal, nullptr, &old);
  const bool ours = signal == SIGXFSZ && g_ignores_file_limit;
  const bool ignored = (old.sa_flags & SA_SIGINFO) == 0 && old.sa_handler == SIG_IGN;
  if (signal == SIGCHLD)
    ignored_ends_of_children_ = ignored;
  if (signal != SIGCHLD && ignored && !ours)
    return;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) == 0)
    old_.emplace_back(signal, old);
}

void outlive_file_limit() {
  struct sigaction old {};
  ::sigaction(SIGXFSZ, nullptr, &old);
  if ((old.sa_flags & SA_SIGINFO) != 0 || old.sa_handler != SIG_DFL)
    return;
  ::signal(SIGXFSZ, SIG_IGN);
  g_ignores_file_limit = true;
}

void stop_outliving_file_limit() {
  if (g_ignores_file_limit)
    ::signal(SIGXFSZ, SIG_DFL);
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  if (name == nullptr)
    return "SIG" + std::to_string(signal);
  return std::string("SIG") + name;
}

void die_by(int signal) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace rangescope::base
