// One T for each thread that asks. When its owner ends, a later thread takes it over, because
// programs make thousands of threads. A T keeps its state from owner to owner.
//
// No lock. The first mine() of a thread searches all existing ones. There are as many as threads at
// one time; memory is never freed.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace rangescope::inject::python {

template <typename T>
class PerThread {
 public:
  PerThread() { usable_ = pthread_key_create(&key_, give_back) == 0; }
  PerThread& operator=(PerThread&&) = delete;

  /// Null without memory.
  [[nodiscard]] T* mine() {
    auto* held = usable_ ? static_cast<Held*>(pthread_getspecific(key_)) : nullptr;
    if (held == nullptr) [[unlikely]]
      held = take();
    if (held == nullptr)
      return nullptr;
    return &held->value;
  }
  template <typename Use>
  void each(const Use& use) {
    for (Held* held = all_.load(std::memory_order_acquire); held != nullptr; held = held->next)
      use(held->value);
  }

 private:
  struct Held {
    T value;
    Held* next = nullptr;
    std::atomic<bool> has_owner{true};
  };
  static void give_back(void* held) {
    static_cast<Held*>(held)->has_owner.store(false, std::memory_order_release);
  }

  Held* take() {
    if (!usable_)
      return nullptr;
    Held* held = all_.load(std::memory_order_acquire);
    for (; held != nullptr; held = held->next) {
      bool has_owner = false;
      if (held->has_owner.compare_exchange_strong(has_owner, true, std::memory_order_acquire))
        break;
    }
    if (held == nullptr) {
      void* memory = std::malloc(sizeof(Held));
      if (memory == nullptr)
        return nullptr;
      held = new (memory) Held;
      held->next = all_.load(std::memory_order_relaxed);
      while (!all_.compare_exchange_weak(held->next, held, std::memory_order_release)) {
      }
    }
    if (pthread_setspecific(key_, held) != 0) {
      give_back(held);
      return nullptr;
    }
    return held;
  }

  pthread_key_t key_{};
  bool usable_ = false;
  std::atomic<Held*> all_{nullptr};
};

}  // namespace rangescope::inject::python
