// A thread that takes a turn at regular intervals, and sleeps between.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace rangescope::inject::cupti {

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
