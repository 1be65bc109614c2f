#include "base/deadline.hpp"

#include <pthread.h>

#include <algorithm>
#include <ctime>

namespace rangescope::base {

Deadline::Spent Deadline::thread_time() {
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  ::pthread_getcpuclockid(::pthread_self(), &clock);
  const auto now = [clock] {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  return [now, begin = now()] { return now() - begin; };
}

Deadline::Spent Deadline::wall_time() {
  return [begin = std::chrono::steady_clock::now()] {
    return std::chrono::steady_clock::now() - begin;
  };
}

Deadline::Deadline(std::chrono::nanoseconds most,
                   Spent spent,
                   std::function<void()> interrupt,
                   std::function<void()> give_up)
    : thread_([this,
               most,
               spent = std::move(spent),
               interrupt = std::move(interrupt),
               give_up = std::move(give_up)] { watch(most, spent, interrupt, give_up); }) {}

void Deadline::watch(std::chrono::nanoseconds most,
                     const Spent& spent,
                     const std::function<void()>& interrupt,
                     const std::function<void()>& give_up) {
  using std::chrono::nanoseconds;
  constexpr nanoseconds kGrace = std::chrono::seconds(5), kAgain = std::chrono::seconds(1);
  constexpr nanoseconds kShortest = std::chrono::milliseconds(10);
  std::unique_lock lock(mutex_);
  const auto ended_within = [&](nanoseconds time) {
    return ended_.wait_for(lock, time, [&] { return done_; });
  };
  for (nanoseconds left = most - spent(); left > nanoseconds::zero(); left = most - spent())
    if (ended_within(std::max(left, kShortest)))
      return;
  over_ = true;
  for (nanoseconds waited{}; waited < kGrace; waited += kAgain) {
    interrupt();
    if (ended_within(kAgain))
      return;
  }
  give_up();
  ended_.wait(lock, [&] { return done_; });
}

bool Deadline::over() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable())
    thread_.join();
  return over_;
}

}  // namespace rangescope::base
