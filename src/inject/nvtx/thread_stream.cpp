#include "inject/nvtx/thread_stream.hpp"

#include <algorithm>
#include <utility>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/payloads.hpp"
#include "inject/nvtx/quiet.hpp"

namespace rangescope::inject {
namespace {

namespace native = wire::native;
using native::Drop;

constexpr std::size_t kFirstChunk = 8 * 1024;
constexpr std::size_t kLastChunk = 1024 * 1024;
constexpr std::uint32_t kFirstNames = 128;
constexpr std::uint32_t kMostNames =
    64 * 1024;  // table slots; cleared when three quarters are used
constexpr std::size_t kMostText = 16 * 1024 * 1024;  // bytes of names kept for comparison
constexpr std::size_t kTextBlock = 16 * 1024;
constexpr std::size_t kMostDepth = 1 << 20;
constexpr std::size_t kMostShort = 256;  // no record without text has more bytes

constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// The padding up to the next word is zero already, as chunks are zeros when they are mapped.
void store_text(unsigned char* out, const char* text, std::size_t bytes) {
  std::memcpy(out, text, bytes);
}

}  // namespace

void ThreadStream::dropped(std::uint64_t count) {
  gap_dropped_ += static_cast<std::uint32_t>(count);
  owes_ = true;
}

// After refusals in a row, 0, 1, 3, 7 and at most 63 events are dropped before the next request.
void ThreadStream::note_refusal(Drop reason) {
  refused_ = reason;
  capture_count(reason);
  if (refusals_ < 6)
    pause_ = (1u << refusals_++) - 1;
  else
    pause_ = 63;
}

bool ThreadStream::new_chunk(std::size_t bytes) {
  if (pause_ > 0) {
    --pause_;
    capture_count(refused_);
    return false;
  }
  const Quiet quiet;
  std::size_t chunk_bytes = chunk_bytes_ == 0 ? kFirstChunk : chunk_bytes_ * 2;
  if (chunk_bytes > kLastChunk)
    chunk_bytes = kLastChunk;
  const std::size_t smallest = round_up(bytes + sizeof(native::ChunkHeader), page_bytes());
  if (chunk_bytes < smallest)
    chunk_bytes = smallest;
  Drop why{};
  native::ChunkHeader* chunk = capture_chunk(window_, chunk_bytes, why);
  const bool may_fit_less = why != Drop::kNoMemory && why != kWindowOver;
  if (chunk == nullptr && may_fit_less && chunk_bytes > smallest) {
    chunk_bytes = smallest;
    chunk = capture_chunk(window_, chunk_bytes, why);
  }
  if (chunk == nullptr) {
    note_refusal(why);
    return false;
  }
  refusals_ = 0;
  thinning_ = capture_thinning();
  if (chunk_ != nullptr)
    capture_release(chunk_, chunk_bytes_);
  publish(chunk_, chunk);  // before the first store into it, for holds()
  publish(chunk_bytes_, chunk_bytes);
  chunk->bytes = chunk_bytes;
  chunk->stream = ordinal_;
  chunk->sequence = sequence_++;
  chunk->tid = tid_;
  __atomic_store_n(&chunk->magic, native::kChunkMagic, __ATOMIC_RELEASE);
  at_ = reinterpret_cast<unsigned char*>(chunk) + sizeof(native::ChunkHeader);
  end_ = reinterpret_cast<unsigned char*>(chunk) + chunk_bytes;
  latest_ns_ = kNever;
  return true;
}

bool ThreadStream::chooses(const OpenRange* parent) {
  const bool is_chosen_alone =
      parent == nullptr || parent->inherited || (parent->recorded && parent->chunk != chunk());
  const bool is_chosen = is_chosen_alone ? chosen_from_++ % thinning_ == 0 : parent->recorded;
  if (is_chosen)
    return true;
  if (++left_out_ == 256)
    count_left_out();
  return false;
}

void ThreadStream::count_left_out() {
  if (left_out_ > 0)
    capture_count(Drop::kThinned, left_out_);
  left_out_ = 0;
}

// The slow path of room(): the records that are owed first, then a new chunk.
unsigned char* ThreadStream::make_room(std::size_t bytes) {
  if (static_cast<std::size_t>(end_ - at_) < bytes && !new_chunk(bytes))
    return nullptr;
  if (owes_ && !is_writing_owed_) {
    is_writing_owed_ = true;
    const bool is_written = write_owed();
    is_writing_owed_ = false;
    if (!is_written)
      return nullptr;
    if (static_cast<std::size_t>(end_ - at_) < bytes && !new_chunk(bytes))
      return nullptr;
  }
  return at_;
}

bool ThreadStream::write_owed() {
  if (owes_thread_) {
    unsigned char* record = make_room(sizeof(native::Timed));
    if (record == nullptr)
      return false;
    const std::int64_t now = now_ns();
    std::memcpy(record + 8, &now, 8);
    commit(record, {native::Type::kThread, 0, 2, tid_});
    owes_thread_ = false;
  }
  if (gap_dropped_ > 0 && !write_gaps())
    return false;
  owes_ = false;
  return true;
}

// A gap record for each domain says how many of its ranges are open. The first one has the number
// of dropped events.
bool ThreadStream::write_gaps() {
  const std::int64_t now = now_ns();
  for (std::uint32_t domain = 0; domain < domains_size_; ++domain) {
    if (domain != 0 && !domains_[domain].defined)
      continue;
    unsigned char* record = make_room(sizeof(native::Gap));
    if (record == nullptr)
      return false;
    const native::Gap gap{{}, now, domains_[domain].recorded, gap_dropped_};
    std::memcpy(record + 8, reinterpret_cast<const unsigned char*>(&gap) + 8, sizeof gap - 8);
    commit(record, {native::Type::kGap, 0, sizeof gap / 8, domain});
    gap_dropped_ = 0;
  }
  gap_dropped_ = 0;
  return true;
}

ThreadStream::DomainState* ThreadStream::grow_domains(std::uint32_t domain) {
  std::uint32_t size = domains_size_ == 0 ? 8 : domains_size_;
  while (size <= domain)
    size *= 2;
  const Quiet quiet;
  auto* grown = arena_array<DomainState>(size);
  if (grown == nullptr)
    return nullptr;
  if (domains_size_ > 0)
    std::memcpy(grown, domains_, domains_size_ * sizeof(DomainState));
  domains_ = grown;  // the old array stays in the arena: at most as much again
  domains_size_ = size;
  return domains_ + domain;
}

bool ThreadStream::grow_stack() {
  const std::size_t room = stack_room_ == 0 ? 32 : stack_room_ * 2;
  if (room > kMostDepth)
    return false;
  const Quiet quiet;
  auto* grown = arena_array<OpenRange>(room);
  if (grown == nullptr)
    return false;
  if (stack_size_ > 0)
    std::memcpy(grown, stack_, stack_size_ * sizeof(OpenRange));
  stack_ = grown;
  stack_room_ = room;
  return true;
}

bool ThreadStream::grow_names() {
  const std::uint32_t size = names_size_ == 0 ? kFirstNames : names_size_ * 2;
  const Quiet quiet;
  auto* grown = static_cast<Interned*>(pages_allocate(size * sizeof(Interned)));
  if (grown == nullptr)
    return false;
  for (std::uint32_t i = 0; i < names_size_; ++i) {
    if (names_[i].id == 0)
      continue;
    std::uint32_t slot = names_[i].hash & (size - 1);
    while (grown[slot].id != 0)
      slot = (slot + 1) & (size - 1);
    grown[slot] = names_[i];
  }
  pages_free(names_, names_size_ * sizeof(Interned));
  names_ = grown;
  names_size_ = size;
  return true;
}

// Keeps memory bounded for a program whose names never repeat (one a step): the table is cleared,
// and names that are used again are defined again. Open ranges lose their names here, because the
// text blocks are freed or reused.
void ThreadStream::forget_names() {
  const Quiet quiet;
  std::memset(names_, 0, names_size_ * sizeof(Interned));
  names_used_ = 0;
  for (std::size_t i = 0; i < stack_size_; ++i)
    stack_[i].name_bytes = 0;
  TextBlock* keep = nullptr;
  for (TextBlock* block = text_; block != nullptr;) {
    TextBlock* next = block->next;
    if (keep == nullptr && block->size == kTextBlock)
      keep = block;
    else
      pages_free(block, block->size);
    block = next;
  }
  text_ = keep;
  text_bytes_ = 0;
  if (keep != nullptr) {
    keep->next = nullptr;
    keep->used = sizeof(TextBlock);
  }
}

char* ThreadStream::keep_text(const Name& name) {
  const std::size_t bytes = round_up(std::size_t{name.bytes} + 4, 4);
  if (text_ == nullptr || text_->size - text_->used < bytes) {
    const std::size_t needed = bytes + sizeof(TextBlock);
    const std::size_t size = needed > kTextBlock ? round_up(needed, 4096) : kTextBlock;
    const Quiet quiet;
    auto* block = static_cast<TextBlock*>(pages_allocate(size));
    if (block == nullptr)
      return nullptr;
    block->next = text_;
    block->size = size;
    block->used = sizeof(TextBlock);
    text_ = block;
  }
  char* entry = reinterpret_cast<char*>(text_) + text_->used;
  text_->used += bytes;
  text_bytes_ += bytes;
  std::memcpy(entry, &name.bytes, 4);
  std::memcpy(entry + 4, name.text, name.bytes);
  return entry + 4;
}

std::uint32_t ThreadStream::define_string(const Name& name, Interned* slot, const char*& kept) {
  const std::size_t bytes = round_up(sizeof(native::Text) + name.bytes, 8);
  unsigned char* record = room(bytes);
  if (record == nullptr)
    return 0;
  char* text = keep_text(name);
  if (text == nullptr) {
    capture_count(Drop::kNoMemory);
    return 0;
  }
  const std::uint64_t length = name.bytes;
  publish(long_until_, record + bytes);
  std::memcpy(record + 8, &length, 8);
  store_text(record + 16, name.text, name.bytes);
  const std::uint32_t id = next_string_;
  publish(next_string_, id + 1);
  const std::uint8_t flags = name.cut ? native::kCut : std::uint8_t{0};
  commit(record, {native::Type::kString, flags, static_cast<std::uint16_t>(bytes / 8), id});
  publish(names_used_, names_used_ + 1);
  slot->hash = name.hash;
  slot->text = text;
  publish(slot->id, id);
  kept = text;
  return id;
}

// Defines a name that is not in the table, in the table and in the stream.
std::uint32_t ThreadStream::intern_new(const Name& name, const char*& kept) {
  kept = nullptr;
  if (name.bytes == 0)
    return 0;
  const bool is_table_full = names_used_ * 4 >= names_size_ * 3;
  if (is_table_full && (names_size_ >= kMostNames || !grow_names())) {
    if (names_size_ == 0) {
      capture_count(Drop::kNoMemory);
      return 0;
    }
    forget_names();
  }
  if (text_bytes_ > kMostText)
    forget_names();
  return define_string(name, find(name), kept);
}

bool ThreadStream::define_domain(std::uint32_t domain) {
  const char* name = domain_name(domain);
  const std::size_t length = std::strlen(name);
  const std::size_t bytes = round_up(sizeof(native::Text) + length, 8);
  unsigned char* record = room(bytes);
  if (record == nullptr)
    return false;
  const std::uint64_t stored_length = length;
  publish(long_until_, record + bytes);
  std::memcpy(record + 8, &stored_length, 8);
  store_text(record + 16, name, length);
  commit(record, {native::Type::kDomain, 0, static_cast<std::uint16_t>(bytes / 8), domain});
  domains_[domain].defined = true;
  return true;
}

bool ThreadStream::define_layout(const PayloadLayout& layout, std::uint32_t id) {
  static_assert(kMostLayouts <= sizeof layouts_ * 8);
  static_assert(sizeof(native::Schema) +
                    PayloadLayout::kMostEntries * sizeof(native::SchemaEntry) <=
                kMostShort);
  static_assert(sizeof(native::StructuredPayload) + PayloadLayout::kMostBytes <= kMostShort);
  std::uint32_t names[PayloadLayout::kMostEntries];
  const char* kept = nullptr;
  for (std::uint32_t i = 0; i < layout.count; ++i) {
    names[i] = intern(layout.entries[i].name, kept);
    if (names[i] == 0 && layout.entries[i].name.bytes != 0)
      return false;
  }
  const std::size_t bytes = sizeof(native::Schema) + layout.count * sizeof(native::SchemaEntry);
  unsigned char* record = room(bytes);
  if (record == nullptr)
    return false;
  const std::uint64_t count = layout.count;
  std::memcpy(record + 8, &count, 8);
  unsigned char* out = record + sizeof(native::Schema);
  for (std::uint32_t i = 0; i < layout.count; ++i) {
    const PayloadLayout::Entry& entry = layout.entries[i];
    const auto number = static_cast<std::uint8_t>(entry.number);
    const native::SchemaEntry stored{names[i], number, entry.bytes, 0, entry.offset};
    std::memcpy(out, &stored, sizeof stored);
    out += sizeof stored;
  }
  commit(record, {native::Type::kSchema, 0, static_cast<std::uint16_t>(bytes / 8), id});
  publish(layouts_[id / 64], layouts_[id / 64] | std::uint64_t{1} << id % 64);
  return true;
}

void ThreadStream::begin_thread(std::uint32_t tid) {
  stack_size_ = settled_ = 0;
  recover();  // the previous thread may have ended inside a hook
  gap_dropped_ = 0;
  tid_ = tid;
  owes_ = owes_thread_ = true;
}

// Skips a record that was published although at_ does not include it yet, and clears what was
// written of the next one, as records expect zeros.
void ThreadStream::recover_records() {
  if (at_ == nullptr)
    return;
  const auto left = static_cast<std::size_t>(end_ - at_);
  if (left < sizeof(native::RecordHeader))
    return;
  native::RecordHeader head;
  std::memcpy(&head, at_, sizeof head);
  at_ += std::min(std::size_t{head.words} * 8, left);
  unsigned char* until = at_ + std::min(kMostShort, static_cast<std::size_t>(end_ - at_));
  if (long_until_ > until && long_until_ <= end_)
    until = long_until_;
  std::memset(at_, 0, static_cast<std::size_t>(until - at_));
}

void ThreadStream::recover() {
  recover_records();
  latest_ns_ = kNever;  // the last record's time may not have been stored there
  if (stack_size_ > settled_)
    stack_size_ = settled_;
  trim_stack();
  settled_ = stack_size_;
  for (std::uint32_t i = 0; i < domains_size_; ++i)
    domains_[i] = {0, 0, 0, domains_[i].defined};
  for (std::size_t i = 0; i < stack_size_; ++i) {
    OpenRange& range = stack_[i];
    if (range.gone)
      continue;
    DomainState& state = domains_[range.domain];
    range.below = state.top;
    state.top = static_cast<std::uint32_t>(i + 1);
    ++state.depth;
    if (range.recorded)
      ++state.recorded;
  }
  is_writing_owed_ = false;
  dropped();
}

// Forgets the current file: in the next one nothing is defined and no open range is recorded yet.
void ThreadStream::begin_file() {
  if (chunk_ != nullptr)
    capture_release(chunk_, chunk_bytes_);
  chunk_ = nullptr;
  at_ = end_ = nullptr;
  chunk_bytes_ = 0;
  sequence_ = 0;
  thinning_ = 1;
  left_out_ = 0;
  refusals_ = pause_ = 0;
  next_string_ = 1;
  gap_dropped_ = 0;
  is_writing_owed_ = false;
  for (std::uint64_t& defined : layouts_)
    defined = 0;
  for (std::uint32_t i = 0; i < domains_size_; ++i) {
    domains_[i].recorded = 0;
    domains_[i].defined = false;
  }
  for (std::size_t i = 0; i < stack_size_; ++i)
    stack_[i].recorded = false;
  owes_ = owes_thread_ = true;
}

void ThreadStream::after_fork(std::uint32_t tid, std::uint32_t ordinal, std::uint32_t generation) {
  begin_file();  // unmaps the chunk in the child; the parent's mapping stays
  if (names_ != nullptr)
    forget_names();
  assign_to(generation, ordinal, window_);
  for (std::size_t i = 0; i < stack_size_; ++i)
    stack_[i].inherited = true;
  tid_ = tid;
}

void ThreadStream::begin_window(std::uint32_t window, std::uint32_t since, std::int64_t start_ns) {
  const bool knows_open_ranges = since != 0 && window_ >= since;
  begin_file();
  window_ = window;
  if (!knows_open_ranges) {
    stack_size_ = settled_ = 0;
    for (std::uint32_t i = 0; i < domains_size_; ++i)
      domains_[i] = {};
  }
  TextBlock* const old_blocks = std::exchange(text_, nullptr);  // with the names of open ranges
  if (names_ != nullptr)
    std::memset(static_cast<void*>(names_), 0, names_size_ * sizeof(Interned));
  names_used_ = 0;
  text_bytes_ = 0;
  for (std::size_t i = 0; i < stack_size_; ++i)
    record_open(stack_[i], start_ns);
  for (TextBlock* block = old_blocks; block != nullptr;) {
    TextBlock* const next = block->next;
    pages_free(block, block->size);
    block = next;
  }
}

// Records a range that was open when the window began, with its own start if that is known, else
// with the window's.
void ThreadStream::record_open(OpenRange& range, std::int64_t window_ns) {
  const std::int64_t start_ns = range.start_ns != 0 ? range.start_ns : window_ns;
  const Name name = name_of(range.name, range.name_bytes);
  range.name = nullptr;
  range.name_bytes = 0;
  if (range.gone || range.inherited)
    return;
  const char* kept = nullptr;
  const std::uint32_t id = intern(name, kept);
  DomainState& state = domains_[range.domain];
  const bool has_scope = range.domain != 0;
  if (has_scope && !state.defined && !define_domain(range.domain))
    return;
  if (id == 0 && name.bytes != 0)
    return;
  const std::size_t bytes = has_scope ? 24 : 16;
  unsigned char* const record = room(bytes);
  if (record == nullptr)
    return;
  std::memcpy(record + 8, &start_ns, 8);
  std::uint8_t flags = native::kBefore;
  if (has_scope) {
    flags |= native::kHasScope;
    const native::Scope scope{range.domain, 0};
    std::memcpy(record + 16, &scope, sizeof scope);
  }
  commit(record, {native::Type::kPush, flags, static_cast<std::uint16_t>(bytes / 8), id});
  range.recorded = true;
  range.start_ns = start_ns;
  ++state.recorded;
  range.chunk = chunk();
  range.name = kept;
  range.name_bytes = name.bytes;
}

}  // namespace rangescope::inject
