// Numbers distinct keys 0, 1, 2, ... in the order in which they first appear.
//
// Open addressing with linear probing over a power of two, at most half full; keys are compared as bytes, so they have
// no padding. One lookup of a hot key is a hash and one compare. Not for several threads.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace rangescope::read::nsys_sqlite {

template <class Key>
class Dictionary {
  static_assert(std::has_unique_object_representations_v<Key>);

 public:
  /// The number of `key`, given when it is new.
  std::uint32_t number(const Key& key) {
    if (last_ < keys_.size() && equal(keys_[last_], key)) return last_;
    if (keys_.size() * 2 >= slots_.size()) grow();
    for (std::size_t at = hash(key) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == 0) {
        keys_.push_back(key);
        slots_[at] = static_cast<std::uint32_t>(keys_.size());
        return last_ = static_cast<std::uint32_t>(keys_.size() - 1);
      }
      if (equal(keys_[slots_[at] - 1], key)) return last_ = slots_[at] - 1;
    }
  }
  /// The number of `key`, or -1. Safe from several threads while nobody adds.
  [[nodiscard]] std::int64_t find(const Key& key) const {
    if (slots_.empty()) return -1;
    for (std::size_t at = hash(key) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == 0) return -1;
      if (equal(keys_[slots_[at] - 1], key)) return slots_[at] - 1;
    }
  }
  [[nodiscard]] const std::vector<Key>& keys() const { return keys_; }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  void clear() {
    keys_.clear();
    slots_.clear();
    last_ = 0;
  }

 private:
  static bool equal(const Key& a, const Key& b) { return std::memcmp(&a, &b, sizeof(Key)) == 0; }
  static std::size_t hash(const Key& key) {
    constexpr std::size_t kWords = (sizeof(Key) + 7) / 8;
    std::uint64_t words[kWords] = {};
    std::memcpy(words, &key, sizeof(Key));
    std::uint64_t mixed = 0;
    for (const std::uint64_t word : words) {
      mixed = (mixed ^ word) * 0x9e3779b97f4a7c15u;
      mixed ^= mixed >> 32;
    }
    return static_cast<std::size_t>(mixed);
  }
  void grow() {
    const std::size_t size = slots_.empty() ? 64 : slots_.size() * 2;
    slots_.assign(size, 0);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      std::size_t at = hash(keys_[i]) & (size - 1);
      while (slots_[at] != 0) at = (at + 1) & (size - 1);
      slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<Key> keys_;
  std::vector<std::uint32_t> slots_;  ///< number + 1, 0 where free
  std::uint32_t last_ = 0;
};

}  // namespace rangescope::read::nsys_sqlite
