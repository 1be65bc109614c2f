#include "inject/cupti/flusher.hpp"

#include "inject/cupti/threads.hpp"

namespace rangescope::inject::cupti {

void Flusher::start(std::uint32_t interval_ms, void (*turn)()) {
  if (interval_ms == 0) return;
  interval_ns_ = std::int64_t{interval_ms} * 1000000;
  turn_ = turn;
  make_condition(wake_);
  running_ = start_thread(thread_, loop, this);
}

void* Flusher::loop(void* self) {
  auto& flusher = *static_cast<Flusher*>(self);
  pthread_mutex_lock(&flusher.lock_);
  while (!flusher.stop_) {
    wait_for(flusher.wake_, flusher.lock_, flusher.interval_ns_);
    if (flusher.stop_) break;
    pthread_mutex_unlock(&flusher.lock_);
    flusher.turn_();
    pthread_mutex_lock(&flusher.lock_);
  }
  pthread_mutex_unlock(&flusher.lock_);
  return nullptr;
}

void Flusher::stop() {
  if (!running_) return;
  pthread_mutex_lock(&lock_);
  stop_ = true;
  pthread_cond_signal(&wake_);
  pthread_mutex_unlock(&lock_);
  pthread_join(thread_, nullptr);
  running_ = false;
}

}  // namespace rangescope::inject::cupti
