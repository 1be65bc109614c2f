// One thread's stream: where its next record goes, the strings it has defined, and its open ranges.
// Passed on to a later thread when its owner ends, so that programs with thousands of short threads
// need few chunks.
//
// Only its owner touches it. Everything here may fail for want of memory or disk; then events are
// counted as dropped.
//
// A signal handler may leave any of this behind half done (siglongjmp, pthread_exit). What takes a
// system call happens inside Quiet, where no handler runs; the rest is stored in such an order that
// recover() finds a whole state: a record is there once its header word is, an open range once the
// stack's size counts it, a name once its table entry has its id. Stores that stand in that order
// do so by publish(), which keeps the compiler to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {

/// Stores after whatever was stored before, as a signal handler of the same thread sees it; no
/// instruction more.
template <typename T>
void publish(T& place, T value) {
  __atomic_store_n(&place, value, __ATOMIC_RELEASE);
}

class ThreadStream {
 public:
  /// Bytes for a whole record, or null (counted by the caller through dropped()). Writes what is
  /// owed first: thread and gaps.
  [[nodiscard]] unsigned char* room(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes || owes_) [[unlikely]]
      return make_room(bytes);
    return at_;
  }
  /// Publishes the record at room(): the header word last.
  void commit(unsigned char* at, wire::native::RecordHeader head) {
    std::uint64_t word;
    static_assert(sizeof word == sizeof head);
    std::memcpy(&word, &head, sizeof word);
    publish(*reinterpret_cast<std::uint64_t*>(at), word);
    publish(at_, at + std::size_t{head.words} * 8);
  }
  /// Nanoseconds from the latest push or pop in this chunk, and more than any record holds where
  /// there is none. After room(), which may begin a chunk.
  [[nodiscard]] std::uint64_t since(std::int64_t now) const {
    return static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(latest_ns_);
  }
  /// A push or pop of that time was committed.
  void timed(std::int64_t now) { latest_ns_ = now; }
  /// The time of the latest push or pop in this chunk.
  [[nodiscard]] std::int64_t latest_ns() const { return latest_ns_; }
  /// An event that found no room.
  void dropped(std::uint64_t count = 1);

  [[nodiscard]] std::uint8_t chunk() const { return static_cast<std::uint8_t>(sequence_); }
  /// Not everything fits (capture_one_of()).
  [[nodiscard]] bool thins() const { return one_of_ > 1; }
  /// Then: whether what is pushed now inside `parent` (null: nothing) is recorded. A range is taken
  /// with all that is inside it; inside one that began in an earlier chunk each is chosen anew.
  [[nodiscard]] bool takes(const OpenRange* parent);
  void tell_thinned();

  /// Id of a name in this stream, defining it when it is new; 0 for "" and for want of room. `kept`
  /// is our copy of it.
  [[nodiscard]] std::uint32_t intern(const Name& name, const char*& kept) {
    if (names_size_ != 0 && name.bytes != 0) [[likely]] {
      if (const Interned* slot = find(name); slot->id != 0) [[likely]] {
        kept = slot->text;
        return slot->id;
      }
    }
    return intern_new(name, kept);
  }
  /// Makes sure that the stream says what `domain` is; false for want of room.
  [[nodiscard]] bool define_domain(std::uint32_t domain);

  /// Does the stream say already what lies where in payloads of that layout?
  [[nodiscard]] bool knows_layout(std::uint32_t layout) const {
    return (layouts_[layout / 64] >> layout % 64 & 1) != 0;
  }
  /// Makes it say so; false for want of room.
  [[nodiscard]] bool define_layout(const PayloadLayout& layout, std::uint32_t id);

  struct DomainState {
    std::uint32_t depth;     ///< open ranges, as the program counts
    std::uint32_t recorded;  ///< of those, recorded in this stream
    std::uint32_t top;       ///< index + 1 into the stack
    bool defined;
  };
  /// Null for want of memory.
  [[nodiscard]] DomainState* domain_state(std::uint32_t domain) {
    if (domain < domains_size_) [[likely]]
      return domains_ + domain;
    return grow_domains(domain);
  }
  /// Where the next open range goes: there once it is filled in and pushed(). Null when the stack
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
    while (stack_size_ > 0 && stack_[stack_size_ - 1].gone) --stack_size_;
  }
  /// A push or pop is over: recover() takes back what a later one began.
  void settle() { publish(settled_, stack_size_); }

  void begin_thread(std::uint32_t tid);  ///< a new owner, with nothing open
  /// What comes goes into the window's file. Ranges that are open stay so where there was no gap:
  /// from window `since` on; else nothing is known of them.
  void begin_window(std::uint32_t window, std::uint32_t since, std::int64_t start_ns);
  void after_fork(std::uint32_t tid, std::uint32_t ordinal, std::uint32_t generation);
  /// A hook of this thread was left behind half done: a push has not happened, a pop has.
  void recover();
  /// Writes where nobody reads, for a rehearsal.
  void write_to(unsigned char* begin, std::size_t bytes) {
    at_ = begin;
    end_ = begin + bytes;
    latest_ns_ = kNever;
  }
  void belongs_to(std::uint32_t generation, std::uint32_t ordinal, std::uint32_t window) {
    generation_ = generation;
    ordinal_ = ordinal;
    window_ = window;
  }
  [[nodiscard]] std::uint32_t window() const { return window_; }
  /// One branch for both: this is asked by every hook.
  [[nodiscard]] bool is_of(std::uint32_t generation, std::uint32_t window) const {
    return ((generation ^ generation_) | (window ^ window_)) == 0;
  }
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

  /// Whether `address` is in its mapped chunk. Async-signal-safe.
  [[nodiscard]] bool holds(const void* address) const {
    const auto* begin = reinterpret_cast<const unsigned char*>(chunk_);
    return begin != nullptr && address >= begin && address < begin + chunk_bytes_;
  }

  std::atomic<std::uint32_t> owner{0};  ///< the thread that has it, or had it until it ended
  ThreadStream* made_before = nullptr;  ///< in the list of Process::streams

 private:
  static constexpr std::int64_t kNever = INT64_MIN / 2;
  struct Interned {
    std::uint32_t hash;
    std::uint32_t id;
    const char* text;  ///< in text_ blocks; the length stands in the 4 bytes before it
  };
  [[nodiscard]] unsigned char* make_room(std::size_t bytes);
  [[nodiscard]] bool new_chunk(std::size_t bytes);
  [[nodiscard]] bool grow_stack();
  [[nodiscard]] DomainState* grow_domains(std::uint32_t domain);
  [[nodiscard]] std::uint32_t define_string(const Name& name, Interned* slot, const char*& kept);
  [[nodiscard]] std::uint32_t intern_new(const Name& name, const char*& kept);
  [[nodiscard]] Interned* find(const Name& name) const {
    const std::uint32_t mask = names_size_ - 1;
    for (std::uint32_t i = name.hash & mask;; i = (i + 1) & mask) {
      Interned& slot = names_[i];
      if (slot.id == 0) return &slot;
      if (slot.hash != name.hash) continue;
      std::uint32_t bytes;
      std::memcpy(&bytes, slot.text - 4, 4);
      if (bytes == name.bytes && std::memcmp(slot.text, name.text, bytes) == 0) return &slot;
    }
  }
  [[nodiscard]] bool grow_names();
  void forget_names();
  void begin_file();
  void put_open(OpenRange& range, std::int64_t window_ns);
  [[nodiscard]] char* keep_text(const Name& name);
  [[nodiscard]] bool pay_debts();

  unsigned char* at_ = nullptr;
  unsigned char* end_ = nullptr;
  std::int64_t latest_ns_ = kNever;  ///< of the latest push or pop in this chunk
  std::uint32_t generation_ = 0;     ///< of the process that it belongs to
  std::uint32_t window_ = 0;         ///< of its chunk's file
  bool owes_ = false;                ///< a thread or gap record must come first
  bool owes_thread_ = false;
  bool paying_ = false;
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
  std::size_t settled_ = 0;              ///< stack_size_ when the last push or pop was over
  unsigned char* long_until_ = nullptr;  ///< end of the last record that is longer than kMostShort
  wire::native::ChunkHeader* chunk_ = nullptr;
  std::size_t chunk_bytes_ = 0;
  wire::native::Drop refused_{};  ///< why there was no chunk, and
  std::uint32_t refusals_ = 0;    ///< how often in turn:
  std::uint32_t pause_ = 0;  ///< so many events are dropped before the next try, which takes 20 us
  std::uint32_t sequence_ = 0;
  std::uint32_t one_of_ = 1;
  std::uint32_t chosen_from_ = 0;  ///< since it thins
  std::uint32_t left_out_ = 0;     ///< and not told yet
  std::uint32_t ordinal_ = 0;
  std::uint32_t tid_ = 0;
};

}  // namespace rangescope::inject
