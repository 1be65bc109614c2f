// Small hash tables for the collector: fixed capacity, open addressing (linear probing, Knuth vol. 3 section 6.4),
// memory from calloc on first use, no exceptions. A table that is full is emptied: its user then defines things anew.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace rangescope::inject::cupti {

/// From a trivially copyable key without padding to a 32-bit id; 0 is "absent".
template <typename Key, std::uint32_t Capacity>
class FixedTable {
  static_assert((Capacity & (Capacity - 1)) == 0);
  struct Slot {
    Key key;
    std::uint32_t id;
  };

 public:
  FixedTable() = default;
  FixedTable(const FixedTable&) = delete;
  FixedTable& operator=(const FixedTable&) = delete;
  ~FixedTable() { std::free(slots_); }

  [[nodiscard]] std::uint32_t find(const Key& key) const {
    if (slots_ == nullptr) {
      return 0;
    }
    for (std::uint32_t at = place(key);; at = (at + 1) & (Capacity - 1)) {
      if (slots_[at].id == 0) {
        return 0;
      }
      if (std::memcmp(&slots_[at].key, &key, sizeof key) == 0) {
        return slots_[at].id;
      }
    }
  }

  /// `key` must be absent, `id` not 0.
  void add(const Key& key, std::uint32_t id) {
    if (slots_ == nullptr) {
      slots_ = static_cast<Slot*>(std::calloc(Capacity, sizeof(Slot)));
      if (slots_ == nullptr) {
        return;
      }
    }
    if (used_ >= Capacity / 4 * 3) {
      std::memset(static_cast<void*>(slots_), 0, Capacity * sizeof(Slot));
      used_ = 0;
    }
    std::uint32_t at = place(key);
    while (slots_[at].id != 0) {
      at = (at + 1) & (Capacity - 1);
    }
    slots_[at] = {key, id};
    ++used_;
  }

 private:
  static std::uint32_t place(const Key& key) {
    std::uint64_t hash = 0x9e3779b97f4a7c15ull;
    const auto* at = reinterpret_cast<const unsigned char*>(&key);
    for (std::size_t i = 0; i + 4 <= sizeof key; i += 4) {
      std::uint32_t word;
      std::memcpy(&word, at + i, 4);
      hash = (hash ^ word) * 0xff51afd7ed558ccdull;
      hash ^= hash >> 32;
    }
    return static_cast<std::uint32_t>(hash) & (Capacity - 1);
  }

  Slot* slots_ = nullptr;
  std::uint32_t used_ = 0;
};

/// From a C string to an id. Looked up by pointer first: CUPTI gives every kernel of one function the same pointer. The
/// text is compared all the same, since a module that is unloaded may leave its place to another.
class NameTable {
 public:
  NameTable() = default;
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;
  ~NameTable() { clear(); }

  [[nodiscard]] std::uint32_t find(const char* name) const {
    const Slot& slot = slots_[place(name)];
    return slot.pointer == name && std::strcmp(slot.text, name) == 0 ? slot.id : 0;
  }

  /// Replaces whatever had the place: two names that collide are defined again and again, which costs bytes only.
  void add(const char* name, std::uint32_t id) {
    Slot& slot = slots_[place(name)];
    char* text = strdup(name);
    if (text == nullptr) {
      return;
    }
    std::free(slot.text);
    slot = {name, text, id};
  }

 private:
  struct Slot {
    const char* pointer;
    char* text;
    std::uint32_t id;
  };
  static constexpr std::uint32_t kSlots = 16384;

  static std::uint32_t place(const char* name) {
    return static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(name) * 0x9e3779b97f4a7c15ull) >> 50) &
           (kSlots - 1);
  }
  void clear() {
    for (Slot& slot : slots_) {
      std::free(slot.text);
      slot = {};
    }
  }

  Slot slots_[kSlots] = {};
};

struct KindKey {
  std::uint32_t name, stream;
  std::uint32_t grid[3], block[3], cluster[3];
  std::uint32_t registers, static_shared, dynamic_shared;
};
struct StreamKey {
  std::uint32_t device, context, stream;
};
using KindTable = FixedTable<KindKey, 65536>;
using StreamTable = FixedTable<StreamKey, 16384>;

}  // namespace rangescope::inject::cupti
