// Turns activity records into records of the GPU stream, interning names, streams and launch shapes
// on the way.
//
// Runs on CUPTI's worker thread and on ours, never on the program's launching threads (except
// node()). Cost: one hash look-up and one 24-byte copy a kernel. Memory is bounded: a full table is
// cleared, and its definitions are written again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "inject/cupti/api.hpp"
#include "inject/cupti/gpu_stream.hpp"
#include "inject/cupti/launches.hpp"

namespace rangescope::inject::cupti {

// Small hash tables for the collector: fixed capacity, open addressing (linear probing, Knuth vol.
// 3 section 6.4), memory from calloc on first use, no exceptions. A full table is cleared: its user
// then writes definitions again.

/// Maps a trivially copyable key without padding to a 32-bit id; 0 is "absent".
template <typename Key, std::uint32_t Capacity>
class FixedTable {
  static_assert((Capacity & (Capacity - 1)) == 0);
  struct Slot {
    Key key;
    std::uint32_t id;
  };

 public:
  FixedTable& operator=(FixedTable&&) = delete;
  ~FixedTable() { std::free(slots_); }

  [[nodiscard]] std::uint32_t find(const Key& key) const {
    if (slots_ == nullptr)
      return 0;
    std::uint32_t slot = first_slot(key);
    while (slots_[slot].id != 0 && std::memcmp(&slots_[slot].key, &key, sizeof key) != 0)
      slot = (slot + 1) & (Capacity - 1);
    return slots_[slot].id;
  }

  /// `key` must be absent, `id` not 0.
  void add(const Key& key, std::uint32_t id) {
    if (slots_ == nullptr) {
      slots_ = static_cast<Slot*>(std::calloc(Capacity, sizeof(Slot)));
      if (slots_ == nullptr)
        return;
    }
    if (used_ >= Capacity / 4 * 3) {
      std::memset(static_cast<void*>(slots_), 0, Capacity * sizeof(Slot));
      used_ = 0;
    }
    std::uint32_t slot = first_slot(key);
    while (slots_[slot].id != 0)
      slot = (slot + 1) & (Capacity - 1);
    slots_[slot] = {key, id};
    ++used_;
  }

 private:
  static std::uint32_t first_slot(const Key& key) {
    std::uint64_t hash = 0x9e3779b97f4a7c15ull;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&key);
    for (std::size_t i = 0; i + 4 <= sizeof key; i += 4) {
      std::uint32_t word;
      std::memcpy(&word, bytes + i, 4);
      hash = (hash ^ word) * 0xff51afd7ed558ccdull;
      hash ^= hash >> 32;
    }
    return static_cast<std::uint32_t>(hash) & (Capacity - 1);
  }

  Slot* slots_ = nullptr;
  std::uint32_t used_ = 0;
};

/// Maps a C string to an id. Looked up by pointer first: CUPTI gives all kernels of a function the
/// same pointer. The text is compared as well, because after a module is unloaded another name may
/// have its address.
class NameTable {
 public:
  NameTable& operator=(NameTable&&) = delete;
  ~NameTable() {
    for (Slot& slot : slots_)
      std::free(slot.text);
  }

  [[nodiscard]] std::uint32_t find(const char* name) const {
    const Slot& slot = slots_[place(name)];
    if (slot.pointer != name || std::strcmp(slot.text, name) != 0)
      return 0;
    return slot.id;
  }

  /// Replaces the name in the same slot. Two names that collide are defined repeatedly, which only
  /// costs bytes.
  void add(const char* name, std::uint32_t id) {
    Slot& slot = slots_[place(name)];
    char* text = strdup(name);
    if (text == nullptr)
      return;
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
    return static_cast<std::uint32_t>(
               (reinterpret_cast<std::uintptr_t>(name) * 0x9e3779b97f4a7c15ull) >> 50) &
           (kSlots - 1);
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
struct ModuleKey {
  std::uint32_t around, hash[2];
};
using ModuleTable = FixedTable<ModuleKey, 65536>;
using StreamTable = FixedTable<StreamKey, 16384>;

/// CUPTI's structs have version suffixes and grew over time; only the encoder knows which release
/// wrote what. From CUDA 12.0 to 13.0 every struct that is read grew at its end or in its padding,
/// never in the middle (asserted in encode.cpp against the headers): a field is read where it has
/// always been, and newer ones only where the library writes them.
class Encoder {
 public:
  explicit Encoder(GpuStream& stream) : stream_(stream) {}

  /// Any record that CUPTI delivers. Other kinds than those that are recorded are ignored.
  void activity(const Api& api, const CUpti_Activity& record);
  /// `end` 0: unknown.
  void launch(const Api& api,
              std::uint32_t cbid,
              std::uint32_t correlation,
              std::uint32_t tid,
              std::uint64_t start,
              std::uint64_t end,
              std::uint32_t module = 0,
              std::uint32_t same = 0,
              wire::gpu::MadeBy made_by = {});
  /// Details of the call that was written last.
  void details(std::uint32_t correlation, const CallDetails& details);
  /// The number of a module in a chain; the same for the same names.
  std::uint32_t module(std::uint32_t around, const char* name, const char* type, bool function);
  void node(std::uint32_t tid,
            std::uint8_t type,
            std::uint64_t time_ns,
            std::uint64_t node,
            std::uint64_t original);
  void loss(wire::gpu::LossKind kind, std::uint64_t count, const char* detail);
  void info(const char* key, const char* value);
  void info(const char* key, std::int64_t number);
  /// The id of any text. Every call defines the text again: use it for rare records.
  std::uint32_t text_id(const char* text, std::size_t bytes);
  void clock_sample(std::int64_t before, std::int64_t cupti, std::int64_t after);

  /// Kernels, copies, memsets and graph launches that had no end when they were delivered.
  [[nodiscard]] std::uint64_t unfinished() const { return unfinished_; }
  /// Those that ended before they started. They are not written.
  [[nodiscard]] std::uint64_t impossible() const { return impossible_; }

 private:
  /// Whether the times can be written; if not, counts the work as unfinished or impossible.
  [[nodiscard]] bool has_times(std::uint64_t start, std::uint64_t end);
  /// The id of name, stream and launch configuration, defined if it is new.
  std::uint32_t kind_id(const CUpti_ActivityKernel9& record);
  /// The index of a driver function, whose name is asked for and defined if it is new; 0: unknown.
  std::uint8_t api_index(const Api& api, std::uint32_t cbid);
  std::uint32_t name_id(const char* name);
  void put_text(wire::gpu::Type type, std::uint32_t id, const char* text, std::size_t bytes);
  std::uint32_t stream_id(std::uint32_t device, std::uint32_t context, std::uint32_t stream);
  void kernel(const CUpti_ActivityKernel9& record);
  template <typename Struct>
  void copy(const Struct& record,
            wire::gpu::Type type,
            std::uint8_t kind,
            std::uint8_t source_kind = 0,
            std::uint8_t destination_kind = 0);
  void graph(const CUpti_ActivityGraphTrace& record);
  void device(const CUpti_ActivityDevice4& record);
  void context(const CUpti_ActivityContext2& record, std::uint32_t version);

  static constexpr std::uint32_t kCbids = 2048;

  GpuStream& stream_;
  NameTable names_;
  KindTable kinds_;
  StreamTable streams_;
  ModuleTable modules_;
  std::uint32_t next_name_ = 1;
  std::uint32_t next_kind_ = 1;
  std::uint32_t next_stream_ = 0;
  std::uint32_t next_module_ = 1;
  std::uint8_t api_index_[kCbids] = {};
  std::uint32_t next_api_ = 1;
  std::uint64_t unfinished_ = 0;
  std::uint64_t impossible_ = 0;
};

}  // namespace rangescope::inject::cupti
