// Threads of ours in the profiled program: starting them, waiting with a time limit, clock and id.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace rangescope::inject::cupti {

/// Starts a thread with all signals blocked, because the program's signals are for its own threads.
[[nodiscard]] bool start_thread(pthread_t& thread, void* (*body)(void*), void* argument);

/// CLOCK_MONOTONIC, the clock of conditions.
[[nodiscard]] std::int64_t monotonic_ns();
void make_condition(pthread_cond_t& condition);
/// Waits for the condition for at most `ns`.
void wait_for(pthread_cond_t& condition, pthread_mutex_t& lock, std::int64_t ns);

/// This thread's kernel id, read once a thread.
[[nodiscard]] std::uint32_t thread_id();

/// A thread that calls a function at regular intervals.
class Flusher {
 public:
  /// Calls `turn` every `interval_ms`; 0: no thread is started.
  void start(std::uint32_t interval_ms, void (*turn)());
  /// Waits for a running turn.
  void stop();

 private:
  static void* loop(void* self);

  pthread_t thread_{};
  bool running_ = false, stop_ = false;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  std::int64_t interval_ns_ = 0;
  void (*turn_)() = nullptr;
};

}  // namespace rangescope::inject::cupti
