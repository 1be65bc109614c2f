// Stops one thread of another process by ptrace, for as long as something of it is read.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

namespace rangescope::sample::cpu {

/// How often a thread that was asked to stop is looked at, and how long it has stood still at most
/// when `use` begins.
inline constexpr auto kStopPolled = std::chrono::microseconds(50);

/// Calls `use` while the thread stands still, and returns what it returns; false where it could not
/// be stopped. A signal that arrives meanwhile is handed on.
template <class Use>
bool while_stopped(pid_t tid, const Use& use) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = std::chrono::milliseconds(500);
  if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0)
    return false;
  const bool is_asked = ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0;
  const auto until = Clock::now() + kPatience;
  siginfo_t stop{};
  // Not taken: if we end now, a signal that it stopped for still arrives.
  while (
      is_asked &&
      (::waitid(
           P_PID, static_cast<id_t>(tid), &stop, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) ==
       0) &&
      stop.si_pid == 0 && Clock::now() < until)
    std::this_thread::sleep_for(kStopPolled);
  const bool stopped = stop.si_pid != 0 && stop.si_code == CLD_TRAPPED;
  constexpr int kOurs = PTRACE_EVENT_STOP << 8 | SIGTRAP;
  const bool is_used = stopped && stop.si_status == kOurs && use();
  if (!stopped && stop.si_pid == 0) {  // until it stops, only the end of this thread lets it go
    int status = 0;
    ::waitpid(tid, &status, __WALL);
    stop.si_status = status >> 8;
  }
  const bool has_signal = stop.si_status != kOurs && stop.si_status >> 8 == 0;
  const int signal = has_signal ? stop.si_status & 0x7f : 0;
  ::ptrace(
      PTRACE_DETACH, tid, nullptr, reinterpret_cast<void*>(static_cast<std::uintptr_t>(signal)));
  return is_used;
}

}  // namespace rangescope::sample::cpu
