// What threads of ours in the profiled program need: starting one, waiting with a time limit, the
// clock, their id.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace rangescope::inject::cupti {

/// Starts one with every signal blocked: the program's signals are for its own threads.
[[nodiscard]] bool start_thread(pthread_t& thread, void* (*body)(void*), void* argument);

/// CLOCK_MONOTONIC, the clock of conditions.
[[nodiscard]] std::int64_t monotonic_ns();
void make_condition(pthread_cond_t& condition);
/// Waits for the condition for at most `ns`.
void wait_for(pthread_cond_t& condition, pthread_mutex_t& lock, std::int64_t ns);

/// This thread's kernel id, asked of the kernel once.
[[nodiscard]] std::uint32_t thread_id();

// A thread that takes a turn at regular intervals, and sleeps between.

class Flusher {
 public:
  /// `turn` is called every `interval_ms`; 0: there is no thread.
  void start(std::uint32_t interval_ms, void (*turn)());
  /// After the turn that is under way.
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
