// Maps handles (of active requests, communicators and windows) to values. Grows as needed. There
// are 64 shares, each with a lock that is held for a few instructions.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

#include "inject/mpi/abi.hpp"

namespace rangescope::inject::mpi {

template <typename Value>
class Handles {
 public:
  /// Replaces the value of a handle. False without memory.
  bool put(Word handle, const Value& value) {
    void* const memory = std::malloc(sizeof(Node));
    if (memory == nullptr)
      return false;
    (void)take(handle);
    Share& share = share_of(handle);
    const Held held(share);
    share.first = new (memory) Node{handle, value, share.first};
    return true;
  }
  /// Removes and returns the value of a handle; `Value{}` if there is none.
  Value take(Word handle) {
    Share& share = share_of(handle);
    Node* node = nullptr;
    {
      const Held held(share);
      Node** link = &share.first;
      while (*link != nullptr && (*link)->handle != handle)
        link = &(*link)->next;
      node = *link;
      if (node != nullptr)
        *link = node->next;
    }
    if (node == nullptr)
      return Value{};
    const Value value = node->value;
    std::free(node);
    return value;
  }
  /// Calls `use` with the value of a handle. False if there is none.
  template <typename Use>
  bool with(Word handle, Use use) {
    Share& share = share_of(handle);
    const Held held(share);
    for (Node* node = share.first; node != nullptr; node = node->next) {
      if (node->handle != handle)
        continue;
      use(node->value);
      return true;
    }
    return false;
  }

 private:
  struct Node {
    Word handle;
    Value value;
    Node* next;
  };
  struct alignas(64) Share {
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    Node* first = nullptr;
  };
  class Held {
   public:
    explicit Held(Share& share) : share_(share) {
      while (share_.busy.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Held() { share_.busy.clear(std::memory_order_release); }
    Held& operator=(Held&&) = delete;

   private:
    Share& share_;
  };
  Share& share_of(Word handle) { return shares_[((handle >> 6) ^ handle ^ (handle >> 12)) % 64]; }
  Share shares_[64];
};

}  // namespace rangescope::inject::mpi
