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
    64 * 1024;  // table slots; beyond three quarters it is forgotten
constexpr std::size_t kMostText = 16 * 1024 * 1024;  // bytes of names kept for comparison
constexpr std::size_t kTextBlock = 16 * 1024;
constexpr std::size_t kMostDepth = 1 << 20;
constexpr std::size_t kMostShort = 256;  // bytes of a record without text, and more

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

void store_text(unsigned char* at, const char* text, std::size_t bytes) {
  std::memcpy(at, text,
              bytes);  // what follows to the next word is zero already: chunks are born so
}

}  // namespace

void ThreadStream::dropped(std::uint64_t count) {
  gap_dropped_ += static_cast<std::uint32_t>(count);
  owes_ = true;
}

bool ThreadStream::new_chunk(std::size_t bytes) {
  if (pause_ > 0) {
    --pause_;
    capture_count(refused_);
    return false;
  }
  const Quiet quiet;
  std::size_t want = chunk_bytes_ == 0 ? kFirstChunk : chunk_bytes_ * 2;
  if (want > kLastChunk) want = kLastChunk;
  const std::size_t least = round_up(bytes + sizeof(native::ChunkHeader), page_bytes());
  if (want < least) want = least;
  Drop why{};
  native::ChunkHeader* chunk = capture_chunk(window_, want, why);
  if (chunk == nullptr && why != Drop::kNoMemory && why != kWindowOver &&
      want > least) {  // a little may still fit
    want = least;
    chunk = capture_chunk(window_, want, why);
  }
  if (chunk == nullptr) {
    capture_count(refused_ = why);
    pause_ = refusals_ < 6 ? (1u << refusals_++) - 1 : 63;
    return false;
  }
  refusals_ = 0;
  one_of_ = capture_one_of();
  if (chunk_ != nullptr) capture_release(chunk_, chunk_bytes_);
  publish(chunk_, chunk);  // before the first store into it: holds()
  publish(chunk_bytes_, want);
  chunk->bytes = want;
  chunk->stream = ordinal_;
  chunk->sequence = sequence_++;
  chunk->tid = tid_;
  __atomic_store_n(&chunk->magic, native::kChunkMagic, __ATOMIC_RELEASE);
  at_ = reinterpret_cast<unsigned char*>(chunk) + sizeof(native::ChunkHeader);
  end_ = reinterpret_cast<unsigned char*>(chunk) + want;
  latest_ns_ = kNever;
  return true;
}

bool ThreadStream::takes(const OpenRange* parent) {
  const bool alone =
      parent == nullptr || parent->inherited || (parent->recorded && parent->chunk != chunk());
  if (alone ? chosen_from_++ % one_of_ == 0 : parent->recorded) return true;
  if (++left_out_ == 256) tell_thinned();
  return false;
}

void ThreadStream::tell_thinned() {
  if (left_out_ > 0) capture_count(Drop::kThinned, left_out_);
  left_out_ = 0;
}

// The slow way of room(): debts first, then a new chunk.
unsigned char* ThreadStream::make_room(std::size_t bytes) {
  if (static_cast<std::size_t>(end_ - at_) < bytes && !new_chunk(bytes)) return nullptr;
  if (owes_ && !paying_) {
    paying_ = true;
    const bool paid = pay_debts();
    paying_ = false;
    if (!paid) return nullptr;
    if (static_cast<std::size_t>(end_ - at_) < bytes && !new_chunk(bytes)) return nullptr;
  }
  return at_;
}

bool ThreadStream::pay_debts() {
  if (owes_thread_) {
    unsigned char* at = make_room(sizeof(native::Timed));
    if (at == nullptr) return false;
    const std::int64_t now = now_ns();
    std::memcpy(at + 8, &now, 8);
    commit(at, {native::Type::kThread, 0, 2, tid_});
    owes_thread_ = false;
  }
  if (gap_dropped_ > 0) {
    const std::int64_t now = now_ns();
    for (std::uint32_t domain = 0; domain < domains_size_; ++domain) {
      if (domain != 0 && !domains_[domain].defined) continue;
      unsigned char* at = make_room(sizeof(native::Gap));
      if (at == nullptr) return false;
      const native::Gap gap{{}, now, domains_[domain].recorded, gap_dropped_};
      std::memcpy(at + 8, reinterpret_cast<const unsigned char*>(&gap) + 8, sizeof gap - 8);
      commit(at, {native::Type::kGap, 0, sizeof gap / 8, domain});
      gap_dropped_ = 0;
    }
    gap_dropped_ = 0;
  }
  owes_ = false;
  return true;
}

ThreadStream::DomainState* ThreadStream::grow_domains(std::uint32_t domain) {
  std::uint32_t size = domains_size_ == 0 ? 8 : domains_size_;
  while (size <= domain) size *= 2;
  const Quiet quiet;
  auto* fresh = arena_array<DomainState>(size);
  if (fresh == nullptr) return nullptr;
  if (domains_size_ > 0) std::memcpy(fresh, domains_, domains_size_ * sizeof(DomainState));
  domains_ = fresh;  // the old one stays in the arena: at most as much again
  domains_size_ = size;
  return domains_ + domain;
}

bool ThreadStream::grow_stack() {
  const std::size_t room = stack_room_ == 0 ? 32 : stack_room_ * 2;
  if (room > kMostDepth) return false;
  const Quiet quiet;
  auto* fresh = arena_array<OpenRange>(room);
  if (fresh == nullptr) return false;
  if (stack_size_ > 0) std::memcpy(fresh, stack_, stack_size_ * sizeof(OpenRange));
  stack_ = fresh;
  stack_room_ = room;
  return true;
}

bool ThreadStream::grow_names() {
  const std::uint32_t size = names_size_ == 0 ? kFirstNames : names_size_ * 2;
  const Quiet quiet;
  auto* fresh = static_cast<Interned*>(pages_allocate(size * sizeof(Interned)));
  if (fresh == nullptr) return false;
  for (std::uint32_t i = 0; i < names_size_; ++i) {
    if (names_[i].id == 0) continue;
    std::uint32_t at = names_[i].hash & (size - 1);
    while (fresh[at].id != 0) at = (at + 1) & (size - 1);
    fresh[at] = names_[i];
  }
  pages_free(names_, names_size_ * sizeof(Interned));
  names_ = fresh;
  names_size_ = size;
  return true;
}

// A program with ever new names (one a step) must not eat memory: the table starts anew and names
// are defined again. Names of open ranges stay readable: the blocks are reused only for later
// names, and the stack's texts are cleared.
void ThreadStream::forget_names() {
  const Quiet quiet;
  std::memset(names_, 0, names_size_ * sizeof(Interned));
  names_used_ = 0;
  for (std::size_t i = 0; i < stack_size_; ++i) stack_[i].name_bytes = 0;
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
    const std::size_t size = bytes + sizeof(TextBlock) > kTextBlock
                                 ? round_up(bytes + sizeof(TextBlock), 4096)
                                 : kTextBlock;
    const Quiet quiet;
    auto* block = static_cast<TextBlock*>(pages_allocate(size));
    if (block == nullptr) return nullptr;
    block->next = text_;
    block->size = size;
    block->used = sizeof(TextBlock);
    text_ = block;
  }
  char* at = reinterpret_cast<char*>(text_) + text_->used;
  text_->used += bytes;
  text_bytes_ += bytes;
  std::memcpy(at, &name.bytes, 4);
  std::memcpy(at + 4, name.text, name.bytes);
  return at + 4;
}

std::uint32_t ThreadStream::define_string(const Name& name, Interned* slot, const char*& kept) {
  const std::size_t bytes = round_up(sizeof(native::Text) + name.bytes, 8);
  unsigned char* at = room(bytes);
  if (at == nullptr) return 0;
  char* text = keep_text(name);
  if (text == nullptr) {
    capture_count(Drop::kNoMemory);
    return 0;
  }
  const std::uint64_t length = name.bytes;
  publish(long_until_, at + bytes);
  std::memcpy(at + 8, &length, 8);
  store_text(at + 16, name.text, name.bytes);
  const std::uint32_t id = next_string_;
  publish(next_string_, id + 1);
  commit(at, {native::Type::kString, name.cut ? native::kCut : std::uint8_t{0},
              static_cast<std::uint16_t>(bytes / 8), id});
  publish(names_used_, names_used_ + 1);
  slot->hash = name.hash;
  slot->text = text;
  publish(slot->id, id);
  kept = text;
  return id;
}

// A name that is not in the table: room for it there, then its definition in the stream.
std::uint32_t ThreadStream::intern_new(const Name& name, const char*& kept) {
  kept = nullptr;
  if (name.bytes == 0) return 0;
  if (names_used_ * 4 >= names_size_ * 3 && (names_size_ >= kMostNames || !grow_names())) {
    if (names_size_ == 0) {
      capture_count(Drop::kNoMemory);
      return 0;
    }
    forget_names();
  }
  if (text_bytes_ > kMostText) forget_names();
  return define_string(name, find(name), kept);
}

bool ThreadStream::define_domain(std::uint32_t domain) {
  const char* name = domain_name(domain);
  const std::size_t length = std::strlen(name);
  const std::size_t bytes = round_up(sizeof(native::Text) + length, 8);
  unsigned char* at = room(bytes);
  if (at == nullptr) return false;
  const std::uint64_t wide = length;
  publish(long_until_, at + bytes);
  std::memcpy(at + 8, &wide, 8);
  store_text(at + 16, name, length);
  commit(at, {native::Type::kDomain, 0, static_cast<std::uint16_t>(bytes / 8), domain});
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
    if (names[i] == 0 && layout.entries[i].name.bytes != 0) return false;
  }
  const std::size_t bytes = sizeof(native::Schema) + layout.count * sizeof(native::SchemaEntry);
  unsigned char* at = room(bytes);
  if (at == nullptr) return false;
  const std::uint64_t count = layout.count;
  std::memcpy(at + 8, &count, 8);
  for (std::uint32_t i = 0; i < layout.count; ++i) {
    const PayloadLayout::Entry& one = layout.entries[i];
    const native::SchemaEntry entry{names[i], static_cast<std::uint8_t>(one.number), one.bytes, 0,
                                    one.offset};
    std::memcpy(at + sizeof(native::Schema) + i * sizeof entry, &entry, sizeof entry);
  }
  commit(at, {native::Type::kSchema, 0, static_cast<std::uint16_t>(bytes / 8), id});
  publish(layouts_[id / 64], layouts_[id / 64] | std::uint64_t{1} << id % 64);
  return true;
}

void ThreadStream::begin_thread(std::uint32_t tid) {
  stack_size_ = settled_ = 0;
  recover();  // the thread before may have ended in the midst of a hook
  gap_dropped_ = 0;
  tid_ = tid;
  owes_ = owes_thread_ = true;
}

void ThreadStream::recover() {
  if (at_ != nullptr && static_cast<std::size_t>(end_ - at_) >= sizeof(native::RecordHeader)) {
    native::RecordHeader head;
    std::memcpy(&head, at_, sizeof head);  // published, and not yet counted
    at_ += std::min(std::size_t{head.words} * 8, static_cast<std::size_t>(end_ - at_));
    unsigned char* until = at_ + std::min(kMostShort, static_cast<std::size_t>(end_ - at_));
    if (long_until_ > until && long_until_ <= end_) until = long_until_;
    std::memset(
        at_, 0,
        static_cast<std::size_t>(until - at_));  // not published: what comes next expects zeros
  }
  latest_ns_ = kNever;  // a record may be there whose time was not yet kept
  if (stack_size_ > settled_) stack_size_ = settled_;
  trim_stack();
  settled_ = stack_size_;
  for (std::uint32_t i = 0; i < domains_size_; ++i) domains_[i] = {0, 0, 0, domains_[i].defined};
  for (std::size_t i = 0; i < stack_size_; ++i) {
    OpenRange& range = stack_[i];
    if (range.gone) continue;
    DomainState& state = domains_[range.domain];
    range.below = state.top;
    state.top = static_cast<std::uint32_t>(i + 1);
    ++state.depth;
    if (range.recorded) ++state.recorded;
  }
  paying_ = false;
  dropped();
}

/// Nothing is defined in it, and none of the open ranges stands in it.
void ThreadStream::begin_file() {
  if (chunk_ != nullptr) capture_release(chunk_, chunk_bytes_);
  chunk_ = nullptr;
  at_ = end_ = nullptr;
  chunk_bytes_ = 0;
  sequence_ = 0;
  one_of_ = 1;
  left_out_ = 0;
  refusals_ = pause_ = 0;
  next_string_ = 1;
  gap_dropped_ = 0;
  paying_ = false;
  for (std::uint64_t& defined : layouts_) defined = 0;
  for (std::uint32_t i = 0; i < domains_size_; ++i) {
    domains_[i].recorded = 0;
    domains_[i].defined = false;
  }
  for (std::size_t i = 0; i < stack_size_; ++i) stack_[i].recorded = false;
  owes_ = owes_thread_ = true;
}

void ThreadStream::after_fork(std::uint32_t tid, std::uint32_t ordinal, std::uint32_t generation) {
  begin_file();  // the child's map of the chunk goes; the parent's stays
  if (names_ != nullptr) forget_names();
  belongs_to(generation, ordinal, window_);
  for (std::size_t i = 0; i < stack_size_; ++i) stack_[i].inherited = true;
  tid_ = tid;
}

void ThreadStream::begin_window(std::uint32_t window, std::uint32_t since, std::int64_t start_ns) {
  const bool goes_on = since != 0 && window_ >= since;
  begin_file();
  window_ = window;
  if (!goes_on) {
    stack_size_ = settled_ = 0;
    for (std::uint32_t i = 0; i < domains_size_; ++i) domains_[i] = {};
  }
  TextBlock* const before = std::exchange(text_, nullptr);  // the open ranges' names are in it
  if (names_ != nullptr) std::memset(static_cast<void*>(names_), 0, names_size_ * sizeof(Interned));
  names_used_ = 0;
  text_bytes_ = 0;
  for (std::size_t i = 0; i < stack_size_; ++i) put_open(stack_[i], start_ns);
  for (TextBlock* block = before; block != nullptr;) {
    TextBlock* const next = block->next;
    pages_free(block, block->size);
    block = next;
  }
}

/// A range that was open when the window began, with its own begin, or that of the window where
/// that is not known.
void ThreadStream::put_open(OpenRange& range, std::int64_t window_ns) {
  const std::int64_t at_ns = range.start_ns != 0 ? range.start_ns : window_ns;
  const Name name = name_of(range.name, range.name_bytes);
  range.name = nullptr;
  range.name_bytes = 0;
  if (range.gone || range.inherited) return;
  const char* kept = nullptr;
  const std::uint32_t id = intern(name, kept);
  DomainState& state = domains_[range.domain];
  const bool scoped = range.domain != 0;
  if ((scoped && !state.defined && !define_domain(range.domain)) || (id == 0 && name.bytes != 0))
    return;
  const std::size_t bytes = scoped ? 24 : 16;
  unsigned char* const at = room(bytes);
  if (at == nullptr) return;
  std::memcpy(at + 8, &at_ns, 8);
  const native::Scope scope{range.domain, 0};
  if (scoped) std::memcpy(at + 16, &scope, sizeof scope);
  commit(at,
         {native::Type::kPush,
          static_cast<std::uint8_t>(scoped ? native::kBefore | native::kHasScope : native::kBefore),
          static_cast<std::uint16_t>(bytes / 8), id});
  range.recorded = true;
  range.start_ns = at_ns;
  ++state.recorded;
  range.chunk = chunk();
  range.name = kept;
  range.name_bytes = name.bytes;
}

}  // namespace rangescope::inject
