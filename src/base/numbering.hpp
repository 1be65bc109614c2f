// Numbers distinct keys 0, 1, 2, ... in the order in which they first appear.
//
// Open addressing with linear probing over a power of two, at most half full. Keys are compared as
// bytes, so they have no padding. One lookup of a hot key is a hash and one compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace rangescope::base {

template <class Key>
class Numbering {
  static_assert(std::has_unique_object_representations_v<Key>);

 public:
  /// The number of `key`; a new key gets the next number.
  std::uint32_t number(const Key& key) {
    if (last_ < keys_.size() && equal(keys_[last_], key))
      return last_;
    if (keys_.size() * 2 >= slots_.size())
      grow();
    std::uint32_t& slot = slots_[place_of(key)];
    if (slot == 0) {
      keys_.push_back(key);
      slot = static_cast<std::uint32_t>(keys_.size());
    }
    return last_ = slot - 1;
  }
  /// The number of `key`, or -1. Safe from several threads while none of them adds keys.
  [[nodiscard]] std::int64_t find(const Key& key) const {
    if (slots_.empty())
      return -1;
    return std::int64_t{slots_[place_of(key)]} - 1;
  }
  [[nodiscard]] const std::vector<Key>& keys() const { return keys_; }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  void clear() { *this = {}; }

 private:
  static bool equal(const Key& a, const Key& b) { return std::memcmp(&a, &b, sizeof(Key)) == 0; }
  /// The slot of `key`, or the free slot that it would take.
  [[nodiscard]] std::size_t place_of(const Key& key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash(key) & mask;
    while (slots_[slot] != 0 && !equal(keys_[slots_[slot] - 1], key))
      slot = (slot + 1) & mask;
    return slot;
  }
  static std::size_t hash(const Key& key) {
    std::uint64_t words[(sizeof(Key) + 7) / 8] = {};
    std::memcpy(words, &key, sizeof(Key));
    std::uint64_t mixed = 0;
    for (const std::uint64_t word : words) {
      mixed = (mixed ^ word) * 0x9e3779b97f4a7c15u;
      mixed ^= mixed >> 32;
    }
    return static_cast<std::size_t>(mixed);
  }
  void grow() {
    slots_.assign(slots_.empty() ? 16 : slots_.size() * 2, 0);
    for (std::size_t i = 0; i < keys_.size(); ++i)
      slots_[place_of(keys_[i])] = static_cast<std::uint32_t>(i + 1);
  }

  std::vector<Key> keys_;
  std::vector<std::uint32_t> slots_;  ///< number + 1; 0 if free
  std::uint32_t last_ = 0;
};

}  // namespace rangescope::base
