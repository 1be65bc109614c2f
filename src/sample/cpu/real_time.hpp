// Real-time priority for a thread that answers the kernel at once, with a watchdog: when the thread
// stays at one piece of work for longer than kMost, another thread takes the priority away until it
// is done, and after kMostTimes for good. A real-time thread that never ends would starve the
// program that it measures.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace rangescope::sample::cpu {

class RealTime {
 public:
  static constexpr std::chrono::milliseconds kMost{250};
  static constexpr int kMostTimes = 8;
  /// For the calling thread. Without the right to it (root), it asks for short turns, which come
  /// sooner (Linux 6.12).
  RealTime();
  RealTime& operator=(RealTime&&) = delete;
  ~RealTime();

  /// A piece of work begins; none is under way.
  void begins() {
    piece_.fetch_add(1, std::memory_order_relaxed), works_.store(true, std::memory_order_relaxed);
  }
  void ends() { works_.store(false, std::memory_order_relaxed); }
  /// Nothing is urgent from now on, or something is again. A real-time thread wakes where it slept,
  /// and puts aside the program that runs there; one without the priority goes to an idle core.
  void rests(bool nothing_is_urgent);

 private:
  /// The watchdog: looks every kMost whether the thread is still at the same piece of work.
  void watch();
  pthread_t watched_;
  std::atomic<std::uint64_t> piece_{0};  ///< number of the piece of work
  std::atomic<bool> works_{false};       ///< it is under way
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false, taken_ = false;  ///< under mutex_; `taken_`: the priority, by the watchdog
  bool rests_ = false;
  std::thread watchdog_;
};

}  // namespace rangescope::sample::cpu
