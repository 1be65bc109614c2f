// What is known of handles: of requests under way, of communicators and windows. As many as there
// are; a lock for each of 64 shares is held for a few instructions.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

#include "inject/mpi/abi.hpp"

namespace rangescope::inject::mpi {

template <typename Value>
class Handles {
 public:
  /// In the place of what was known. False without memory.
  bool put(Word handle, const Value& value) {
    auto* const made = static_cast<Node*>(std::malloc(sizeof(Node)));
    if (made == nullptr) return false;
    (void)take(handle);
    Share& share = share_of(handle);
    const Held held(share);
    share.first = new (made) Node{handle, value, share.first};
    return true;
  }
  /// Removes it; `Value{}` where nothing is known.
  Value take(Word handle) {
    Share& share = share_of(handle);
    Node* found = nullptr;
    {
      const Held held(share);
      Node** at = &share.first;
      while (*at != nullptr && (*at)->handle != handle) at = &(*at)->next;
      found = *at;
      if (found != nullptr) *at = found->next;
    }
    if (found == nullptr) return Value{};
    const Value value = found->value;
    std::free(found);
    return value;
  }
  /// Calls `use` with what is known. False where that is nothing.
  template <typename Use>
  bool with(Word handle, Use use) {
    Share& share = share_of(handle);
    const Held held(share);
    for (Node* at = share.first; at != nullptr; at = at->next) {
      if (at->handle != handle) continue;
      use(at->value);
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
