#include "sample/cpu/real_time.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <system_error>

namespace rangescope::sample::cpu {
namespace {

void ask_for_short_turns() {
  struct {
    std::uint32_t size = 48, policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = ::getpriority(PRIO_PROCESS, 0);  // as it is
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 100'000, deadline = 0, period = 0;
  } attributes;
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

bool set_policy(pthread_t thread, int policy, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  return ::pthread_setschedparam(thread, policy, &parameters) == 0;
}

}  // namespace

RealTime::RealTime() : watched_(::pthread_self()) {
  bool allowed = set_policy(watched_, SCHED_FIFO, 1);
  set_policy(watched_, SCHED_OTHER, 0);  // which the watchdog inherits
  try {
    if (allowed)
      watchdog_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    allowed = false;
  }
  if (!allowed || !set_policy(watched_, SCHED_FIFO, 1))
    ask_for_short_turns();
}

RealTime::~RealTime() {
  if (!watchdog_.joinable())
    return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  watchdog_.join();
}

void RealTime::rests(bool nothing_is_urgent) {
  if (rests_ == nothing_is_urgent || !watchdog_.joinable())
    return;
  const std::lock_guard lock(mutex_);
  rests_ = nothing_is_urgent;
  if (taken_)
    return;
  if (rests_)
    set_policy(watched_, SCHED_OTHER, 0);
  else
    set_policy(watched_, SCHED_FIFO, 1);
}

void RealTime::watch() {
  std::uint64_t previous_piece = 0;
  int times_taken = 0;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kMost, [this] { return over_; })) {
    const std::uint64_t piece = piece_.load(std::memory_order_relaxed);
    const bool is_stuck = works_.load(std::memory_order_relaxed) && piece == previous_piece;
    if (is_stuck && !taken_) {
      taken_ = true;
      set_policy(watched_, SCHED_OTHER, 0);
      if (++times_taken == kMostTimes)
        return;
    } else if (!is_stuck && taken_) {
      taken_ = false;
      if (!rests_)
        set_policy(watched_, SCHED_FIFO, 1);
    }
    previous_piece = piece;
  }
}

}  // namespace rangescope::sample::cpu
