// One thread's stream: where its next record goes, the strings it has defined, and its open ranges.
// When its owner ends, a later thread takes it over, so that programs with thousands of short
// threads need few chunks.
//
// Only its owner touches it. Everything here can fail without memory or disk space; then events are
// counted as dropped.
//
// A signal handler that does not return (siglongjmp, pthread_exit) may leave a change half done.
// System calls are made inside Quiet, where no handler runs. Everything else is stored in an order
// from which recover() can restore a consistent state: a record exists once its header word is
// stored, an open range once the stack's size includes it, a name once its table entry has its id.
// publish() keeps the compiler to that order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {

/// A store that a signal handler of the same thread sees after all earlier stores. Costs no extra
/// instruction.
template <typename T>
void publish(T& place, T value) {
  __atomic_store_n(&place, value, __ATOMIC_RELEASE);
}

class ThreadStream {
 public:
  /// Memory for a whole record, or null: then the caller calls dropped(). Writes owed records first
  /// (thread and gaps).
  [[nodiscard]] unsigned char* room(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes || owes_) [[unlikely]]
      return make_room(bytes);
    return at_;
  }
  /// Publishes a record at room(): the header word last.
  void commit(unsigned char* record, wire::native::RecordHeader head) {
    std::uint64_t word;
    static_assert(sizeof word == sizeof head);
    std::memcpy(&word, &head, sizeof word);
    publish(*reinterpret_cast<std::uint64_t*>(record), word);
    publish(at_, record + std::size_t{head.words} * 8);
  }
  /// Nanoseconds since the latest push or pop in this chunk; without one, more than any short
  /// record holds. Call it after room(), which may begin a chunk.
  [[nodiscard]] std::uint64_t since(std::int64_t now) const {
    return static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(latest_ns_);
  }
  /// Call it after a push or pop with that time was committed.
  void set_latest_ns(std::int64_t now) { latest_ns_ = now; }
  /// The time of the latest push or pop in this chunk.
  [[nodiscard]] std::int64_t latest_ns() const { return latest_ns_; }
  /// Counts events that found no room.
  void dropped(std::uint64_t count = 1);

  [[nodiscard]] std::uint8_t chunk() const { return static_cast<std::uint8_t>(sequence_); }
  /// Not all ranges are recorded, because space runs out (capture_thinning()).
  [[nodiscard]] bool is_thinning() const { return thinning_ > 1; }
  /// While thinning: whether a range or mark inside `parent` (null: in none) is recorded. A
  /// recorded range is recorded with everything inside it, unless it began in an earlier chunk:
  /// then each range inside is chosen by itself.
  [[nodiscard]] bool chooses(const OpenRange* parent);
  /// Adds the ranges that chooses() left out to the capture's counts.
  void count_left_out();

  /// Id of a name in this stream, which defines it if it is new; 0 for "" and without room. `kept`
  /// becomes the stream's copy of the name.
  [[nodiscard]] std::uint32_t intern(const Name& name, const char*& kept) {
    if (names_size_ != 0 && name.bytes != 0) [[likely]] {
      if (const Interned* slot = find(name); slot->id != 0) [[likely]] {
        kept = slot->text;
        return slot->id;
      }
    }
    return intern_new(name, kept);
  }
  /// Writes the definition of `domain`; false without room.
  [[nodiscard]] bool define_domain(std::uint32_t domain);

  /// Whether the definition of that payload layout is already in the stream.
  [[nodiscard]] bool knows_layout(std::uint32_t layout) const {
    return (layouts_[layout / 64] >> layout % 64 & 1) != 0;
  }
  /// Writes that definition; false without room.
  [[nodiscard]] bool define_layout(const PayloadLayout& layout, std::uint32_t id);

  struct DomainState {
    std::uint32_t depth;     ///< open ranges, as the program counts them
    std::uint32_t recorded;  ///< those of them that are recorded in this stream
    std::uint32_t top;       ///< index + 1 into the stack
    bool defined;
  };
  /// Null without memory.
  [[nodiscard]] DomainState* domain_state(std::uint32_t domain) {
    if (domain < domains_size_) [[likely]]
      return domains_ + domain;
    return grow_domains(domain);
  }
  /// The entry for the next open range. It is part of the stack after pushed(). Null if the stack
  /// is too deep.
  [[nodiscard]] OpenRange* push_entry() {
    if (stack_size_ == stack_room_ && !grow_stack()) [[unlikely]]
      return nullptr;
    return stack_ + stack_size_;
  }
  void pushed() { publish(stack_size_, stack_size_ + 1); }
  [[nodiscard]] OpenRange* stack() { return stack_; }
  [[nodiscard]] std::size_t stack_size() const { return stack_size_; }
  void trim_stack() {
    while (stack_size_ > 0 && stack_[stack_size_ - 1].gone)
      --stack_size_;
  }
  /// Ends a push or pop: recover() undoes the changes since the latest call.
  void settle() { publish(settled_, stack_size_); }

  void begin_thread(std::uint32_t tid);  ///< a new owner, without open ranges
  /// Further records go into the window's file. Open ranges stay open if the stream has recorded
  /// since window `since`, from which on there was no gap; otherwise they are forgotten.
  void begin_window(std::uint32_t window, std::uint32_t since, std::int64_t start_ns);
  void after_fork(std::uint32_t tid, std::uint32_t ordinal, std::uint32_t generation);
  /// Restores a consistent state after a hook of this thread was left half done: its push has not
  /// happened, its pop has.
  void recover();
  /// Writes into memory instead of a chunk, to measure what recording takes.
  void write_to(unsigned char* begin, std::size_t bytes) {
    at_ = begin;
    end_ = begin + bytes;
    latest_ns_ = kNever;
  }
  void assign_to(std::uint32_t generation, std::uint32_t ordinal, std::uint32_t window) {
    generation_ = generation;
    ordinal_ = ordinal;
    window_ = window;
  }
  [[nodiscard]] std::uint32_t window() const { return window_; }
  /// One branch for both conditions, because every hook asks.
  [[nodiscard]] bool is_of(std::uint32_t generation, std::uint32_t window) const {
    return ((generation ^ generation_) | (window ^ window_)) == 0;
  }
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

  /// Whether `address` is in its mapped chunk. Async-signal-safe.
  [[nodiscard]] bool holds(const void* address) const {
    const auto* begin = reinterpret_cast<const unsigned char*>(chunk_);
    return begin != nullptr && address >= begin && address < begin + chunk_bytes_;
  }

  std::atomic<std::uint32_t> owner{0};  ///< the thread that uses it, or that used it last
  ThreadStream* made_before = nullptr;  ///< in the list of Process::streams

 private:
  static constexpr std::int64_t kNever = INT64_MIN / 2;
  struct Interned {
    std::uint32_t hash;
    std::uint32_t id;
    const char* text;  ///< in text_ blocks; the 4 bytes before it are the length
  };
  [[nodiscard]] unsigned char* make_room(std::size_t bytes);
  [[nodiscard]] bool new_chunk(std::size_t bytes);
  void note_refusal(wire::native::Drop reason);
  [[nodiscard]] bool grow_stack();
  [[nodiscard]] DomainState* grow_domains(std::uint32_t domain);
  [[nodiscard]] std::uint32_t define_string(const Name& name, Interned* slot, const char*& kept);
  [[nodiscard]] std::uint32_t intern_new(const Name& name, const char*& kept);
  [[nodiscard]] Interned* find(const Name& name) const {
    const std::uint32_t mask = names_size_ - 1;
    for (std::uint32_t i = name.hash & mask;; i = (i + 1) & mask) {
      Interned& slot = names_[i];
      if (slot.id == 0)
        return &slot;
      if (slot.hash != name.hash)
        continue;
      std::uint32_t bytes;
      std::memcpy(&bytes, slot.text - 4, 4);
      if (bytes == name.bytes && std::memcmp(slot.text, name.text, bytes) == 0)
        return &slot;
    }
  }
  [[nodiscard]] bool grow_names();
  void forget_names();
  void begin_file();
  void record_open(OpenRange& range, std::int64_t window_ns);
  void recover_records();
  [[nodiscard]] char* keep_text(const Name& name);
  [[nodiscard]] bool write_owed();
  [[nodiscard]] bool write_gaps();

  unsigned char* at_ = nullptr;  ///< where the next record goes
  unsigned char* end_ = nullptr;
  std::int64_t latest_ns_ = kNever;  ///< of the latest push or pop in this chunk
  std::uint32_t generation_ = 0;     ///< of the process that it belongs to
  std::uint32_t window_ = 0;         ///< of its chunk's file
  bool owes_ = false;                ///< a thread or gap record has to be written first
  bool owes_thread_ = false;
  bool is_writing_owed_ = false;
  std::uint32_t gap_dropped_ = 0;
  Interned* names_ = nullptr;
  std::uint32_t names_size_ = 0;  ///< power of two
  std::uint32_t names_used_ = 0;
  std::uint32_t next_string_ = 1;
  struct TextBlock {
    TextBlock* next;
    std::size_t size, used;
  };
  TextBlock* text_ = nullptr;
  std::size_t text_bytes_ = 0;
  DomainState* domains_ = nullptr;
  std::uint32_t domains_size_ = 0;
  std::uint64_t layouts_[4] = {};  ///< payload layouts that were defined, a bit each
  OpenRange* stack_ = nullptr;
  std::size_t stack_size_ = 0;
  std::size_t stack_room_ = 0;
  std::size_t settled_ = 0;              ///< stack_size_ after the last complete push or pop
  unsigned char* long_until_ = nullptr;  ///< end of the last record that is longer than kMostShort
  wire::native::ChunkHeader* chunk_ = nullptr;
  std::size_t chunk_bytes_ = 0;
  wire::native::Drop refused_{};  ///< why the last request for a chunk failed
  std::uint32_t refusals_ = 0;    ///< failed requests in a row
  std::uint32_t pause_ = 0;       ///< events to drop before the next request, which takes 20 us
  std::uint32_t sequence_ = 0;
  std::uint32_t thinning_ = 1;     ///< one range of this many is recorded
  std::uint32_t chosen_from_ = 0;  ///< ranges seen while thinning
  std::uint32_t left_out_ = 0;     ///< ranges not recorded and not yet counted in the capture
  std::uint32_t ordinal_ = 0;
  std::uint32_t tid_ = 0;
};

}  // namespace rangescope::inject
