#include "inject/cupti/threads.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace rangescope::inject::cupti {

bool start_thread(pthread_t& thread, void* (*body)(void*), void* argument) {
  sigset_t all_signals;
  sigset_t previous;
  sigfillset(&all_signals);
  pthread_sigmask(SIG_SETMASK, &all_signals, &previous);
  const bool started = pthread_create(&thread, nullptr, body, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return started;
}

std::int64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

void make_condition(pthread_cond_t& condition) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&condition, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

void wait_for(pthread_cond_t& condition, pthread_mutex_t& lock, std::int64_t ns) {
  const std::int64_t until = monotonic_ns() + ns;
  const timespec time{until / 1000000000, until % 1000000000};
  pthread_cond_timedwait(&condition, &lock, &time);
}

std::uint32_t thread_id() {
  static thread_local std::uint32_t id = 0;
  if (id == 0)
    id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return id;
}

void Flusher::start(std::uint32_t interval_ms, void (*turn)()) {
  if (interval_ms == 0)
    return;
  interval_ns_ = std::int64_t{interval_ms} * 1000000;
  turn_ = turn;
  stop_ = false;
  make_condition(wake_);
  running_ = start_thread(thread_, loop, this);
}

void* Flusher::loop(void* self) {
  auto& flusher = *static_cast<Flusher*>(self);
  pthread_mutex_lock(&flusher.lock_);
  while (!flusher.stop_) {
    wait_for(flusher.wake_, flusher.lock_, flusher.interval_ns_);
    if (flusher.stop_)
      break;
    pthread_mutex_unlock(&flusher.lock_);
    flusher.turn_();
    pthread_mutex_lock(&flusher.lock_);
  }
  pthread_mutex_unlock(&flusher.lock_);
  return nullptr;
}

void Flusher::stop() {
  if (!running_)
    return;
  pthread_mutex_lock(&lock_);
  stop_ = true;
  pthread_cond_signal(&wake_);
  pthread_mutex_unlock(&lock_);
  pthread_join(thread_, nullptr);
  running_ = false;
}

}  // namespace rangescope::inject::cupti
