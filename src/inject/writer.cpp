#include "inject/writer.hpp"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "inject/arena.hpp"
#include "inject/handles.hpp"
#include "inject/stream.hpp"

namespace rangescope::inject {
namespace {

namespace native = wire::native;
using native::Drop;
using native::Type;

// What a thread holds: its stream, and whether it is inside a hook (a signal handler finds it set).
__attribute__((tls_model("initial-exec"))) thread_local Stream* my_stream = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local volatile int inside = 0;

std::atomic<bool> started{false};
std::atomic<int> starting{0};
std::atomic<const RangeObserver*> observer{nullptr};
std::atomic<std::uint64_t> next_range_id{1};
std::atomic<std::uint32_t> next_stream{0};
std::atomic<int> free_lock{0};
Stream* free_streams = nullptr;
pthread_key_t exit_key;
bool have_exit_key = false;

// A word that the kernel clears in the child of every fork, also one made with a raw clone(2), which no atfork handler
// sees.
std::atomic<std::uint32_t> no_wipe{1};
std::atomic<std::uint32_t>* alive = &no_wipe;

std::uint32_t thread_id() {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

// Held for a few instructions, never while anything of the program runs. Signal handlers of the holder do not come here
// (they are turned away at `inside`).
class FreeLock {
 public:
  FreeLock() {
    int open = 0;
    while (!free_lock.compare_exchange_weak(open, 1, std::memory_order_acquire)) {
      open = 0;
      sched_yield();
    }
  }
  ~FreeLock() { free_lock.store(0, std::memory_order_release); }
  FreeLock(const FreeLock&) = delete;
  FreeLock& operator=(const FreeLock&) = delete;
};

void thread_ends(void* stream) {
  inside = 1;
  if (my_stream == stream && alive->load(std::memory_order_relaxed) != 0) {
    my_stream = nullptr;
    const FreeLock lock;
    static_cast<Stream*>(stream)->next_free = free_streams;
    free_streams = static_cast<Stream*>(stream);
  }
  inside = 0;
}

Stream* new_stream() {
  {
    const FreeLock lock;
    if (Stream* reused = free_streams; reused != nullptr) {
      free_streams = reused->next_free;
      return reused;
    }
  }
  void* memory = arena_allocate(sizeof(Stream));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) Stream;
  made->set_ordinal(next_stream.fetch_add(1, std::memory_order_relaxed));
  return made;
}

// The child of a fork has one thread; what the others held is abandoned, and the file is the parent's.
void after_fork() {
  capture_after_fork(next_range_id.load(std::memory_order_relaxed));
  handles_after_fork();
  free_lock.store(0, std::memory_order_relaxed);
  free_streams = nullptr;
  next_stream.store(1, std::memory_order_relaxed);
  if (my_stream != nullptr) {
    my_stream->after_fork(thread_id(), 0);
  }
  alive->store(1, std::memory_order_release);
}

Stream* attach() {
  const int saved = errno;
  if (alive->load(std::memory_order_acquire) == 0) after_fork();
  if (my_stream == nullptr) {
    my_stream = new_stream();
    if (my_stream != nullptr) {
      my_stream->begin_thread(thread_id());
      if (have_exit_key) pthread_setspecific(exit_key, my_stream);
    } else {
      capture_count(Drop::kNoMemory);
    }
  }
  errno = saved;
  return my_stream;
}

// One hook of one thread: turns away what a signal handler calls meanwhile. stream() is null when nothing can be
// recorded.
class Hook {
 public:
  Hook() {
    if (inside != 0) [[unlikely]] {
      capture_count(Drop::kReentrant);
      return;
    }
    inside = 1;
    entered_ = true;
    stream_ = my_stream;
    if (stream_ == nullptr || alive->load(std::memory_order_relaxed) == 0) [[unlikely]]
      stream_ = attach();
  }
  ~Hook() { leave(); }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  [[nodiscard]] Stream* stream() const { return stream_; }
  void leave() {
    if (entered_) inside = 0;
    entered_ = false;
  }

 private:
  Stream* stream_ = nullptr;
  bool entered_ = false;
};

struct Layout {
  std::uint8_t flags;
  std::size_t bytes;
};

Layout layout_of(const Event& event, std::size_t fixed) {
  Layout layout{event.name.registered ? native::kRegistered : std::uint8_t{0}, fixed};
  if (event.domain != 0 || event.category != 0) layout.flags |= native::kHasScope, layout.bytes += 8;
  if (event.has_color) layout.flags |= native::kHasColor, layout.bytes += 8;
  if (event.payload.type != 0) layout.flags |= native::kHasPayload, layout.bytes += 16;
  return layout;
}

void put_attributes(unsigned char* at, const Event& event, std::uint8_t flags) {
  if ((flags & native::kHasScope) != 0) {
    const native::Scope scope{event.domain, event.category};
    std::memcpy(at, &scope, 8);
    at += 8;
  }
  if ((flags & native::kHasColor) != 0) {
    const std::uint64_t color = event.color;
    std::memcpy(at, &color, 8);
    at += 8;
  }
  if ((flags & native::kHasPayload) != 0) {
    const std::uint64_t type = event.payload.type;
    std::memcpy(at, &type, 8);
    std::memcpy(at + 8, &event.payload.bits, 8);
  }
}

// Defines what an event refers to and finds room for it; null when it must be dropped (done). `name` is its string id.
unsigned char* prepare(Stream& stream, const Event& event, std::size_t bytes, std::uint32_t& name, const char*& kept) {
  if (event.name.cut) capture_count(Drop::kNameCut);
  name = stream.intern(event.name, kept);
  if (name == 0 && event.name.bytes != 0) return nullptr;
  if (event.domain != 0) {
    const Stream::DomainState* state = stream.domain_state(event.domain);
    if (state == nullptr || (!state->defined && !stream.define_domain(event.domain))) return nullptr;
  }
  return stream.room(bytes);
}

bool put_event(Stream& stream, Type type, const Event& event, std::uint64_t id, const char*& kept) {
  const std::size_t fixed = type == Type::kStart ? 24 : 16;
  const Layout layout = layout_of(event, fixed);
  std::uint32_t name = 0;
  unsigned char* at = prepare(stream, event, layout.bytes, name, kept);
  if (at == nullptr) {
    stream.dropped();
    return false;
  }
  if (type == Type::kStart) std::memcpy(at + 16, &id, 8);
  if (layout.bytes != fixed) put_attributes(at + fixed, event, layout.flags);
  const std::int64_t now = now_ns();
  std::memcpy(at + 8, &now, 8);
  stream.commit(at, {type, layout.flags, static_cast<std::uint16_t>(layout.bytes / 8), name});
  return true;
}

// A record that gives something a name: of a category, a thread, a resource.
template <typename Record>
void put_named(Type type, std::uint32_t value, const Name& text, Record record) {
  const Hook hook;
  Stream* stream = hook.stream();
  if (stream == nullptr) return;
  Event event;
  event.name = text;
  event.domain = record.domain;
  const char* kept = nullptr;
  unsigned char* at = prepare(*stream, event, sizeof record, record.string, kept);
  if (at == nullptr) return stream->dropped();
  constexpr std::size_t kHead = sizeof record.head;  // commit() writes it
  std::memcpy(at + kHead, reinterpret_cast<const unsigned char*>(&record) + kHead, sizeof record - kHead);
  stream->commit(at, {type, 0, sizeof record / 8, value});
}

}  // namespace

void set_range_observer(const RangeObserver* wanted) {
  observer.store(wanted, std::memory_order_release);
}

const OpenRange* open_ranges(std::size_t& count) {
  Stream* stream = my_stream;
  count = stream == nullptr || alive->load(std::memory_order_relaxed) == 0 ? 0 : stream->stack_size();
  return count == 0 ? nullptr : stream->stack();
}

bool writer_start() {
  if (started.load(std::memory_order_acquire)) return true;
  int free = 0;
  while (!starting.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
    free = 0;
    sched_yield();
  }
  const int saved = errno;
  bool good = started.load(std::memory_order_relaxed);
  if (!good && capture_prepare() && capture_open()) {
    void* page = pages_allocate(4096);
    if (page != nullptr && madvise(page, 4096, MADV_WIPEONFORK) == 0) {
      alive = static_cast<std::atomic<std::uint32_t>*>(page);
      alive->store(1, std::memory_order_relaxed);
    } else {  // Linux before 4.14: fork(3) only
      pthread_atfork(nullptr, nullptr, [] { no_wipe.store(0, std::memory_order_relaxed); });
    }
    have_exit_key = pthread_key_create(&exit_key, thread_ends) == 0;
    started.store(true, std::memory_order_release);
    good = true;
  }
  errno = saved;
  starting.store(0, std::memory_order_release);
  return good;
}

int record_push(const Event& event) {
  const RangeObserver* watch = observer.load(std::memory_order_acquire);
  Hook hook;
  Stream* stream = hook.stream();
  if (stream == nullptr) return kNotTracked;
  Stream::DomainState* state = stream->domain_state(event.domain);
  OpenRange* entry = state == nullptr ? nullptr : stream->push_entry();
  if (entry == nullptr) {
    capture_count(Drop::kTooDeep);
    return kNotTracked;
  }
  const auto level = static_cast<int>(state->depth);
  *entry = {nullptr, 0, event.domain, state->top, false, false, false, event.payload};
  state->top = static_cast<std::uint32_t>(stream->stack_size());
  ++state->depth;
  if (watch != nullptr && watch->push != nullptr) [[unlikely]] {
    inside = 0;
    watch->push(event, level);
    inside = 1;
    entry = stream->stack() + (stream->domain_state(event.domain)->top - 1);
    state = stream->domain_state(event.domain);
  }
  const char* kept = nullptr;
  if (put_event(*stream, Type::kPush, event, 0, kept)) {
    entry->recorded = true;
    ++state->recorded;
  }
  if (kept != nullptr) {
    entry->name = kept;
    entry->name_bytes = event.name.bytes;
  }
  return level;
}

int record_pop(std::uint32_t domain) {
  const std::int64_t now = now_ns();
  Hook hook;
  Stream* stream = hook.stream();
  if (stream == nullptr) return kNotTracked;
  Stream::DomainState* state = stream->domain_state(domain);
  if (state == nullptr || state->depth == 0) {
    capture_count(Drop::kEmptyPop);
    return kNotTracked;
  }
  OpenRange& entry = stream->stack()[state->top - 1];
  const auto level = static_cast<int>(--state->depth);
  state->top = entry.below;
  entry.gone = true;
  const bool recorded = entry.recorded;
  const bool inherited = entry.inherited;
  stream->trim_stack();
  if (recorded) {
    unsigned char* at = stream->room(sizeof(native::Timed));  // a gap written here still counts this range as open
    --state->recorded;
    if (at != nullptr) {
      std::memcpy(at + 8, &now, 8);
      stream->commit(at, {Type::kPop, 0, 2, domain});
    } else {
      stream->dropped();
    }
  } else if (inherited) {
    capture_count(Drop::kInheritedPop);
  }
  hook.leave();
  const RangeObserver* watch = observer.load(std::memory_order_acquire);
  if (watch != nullptr && watch->pop != nullptr) [[unlikely]]
    watch->pop(domain, level);
  return level;
}

std::uint64_t record_start(const Event& event, std::uint64_t wanted_id) {
  const std::uint64_t id = wanted_id != 0 ? wanted_id : next_range_id.fetch_add(1, std::memory_order_relaxed);
  const RangeObserver* watch = observer.load(std::memory_order_acquire);
  if (watch != nullptr && watch->start != nullptr) [[unlikely]]
    watch->start(event, id);
  const Hook hook;
  if (Stream* stream = hook.stream(); stream != nullptr) {
    const char* kept = nullptr;
    put_event(*stream, Type::kStart, event, id, kept);
  }
  return id;
}

void record_end(std::uint64_t id) {
  const std::int64_t now = now_ns();
  Hook hook;
  Stream* stream = hook.stream();
  if (stream == nullptr) return;
  unsigned char* at = stream->room(24);
  if (at != nullptr) {
    std::memcpy(at + 8, &now, 8);
    std::memcpy(at + 16, &id, 8);
    stream->commit(at, {Type::kEnd, 0, 3, 0});
  } else {
    stream->dropped();
  }
  hook.leave();
  const RangeObserver* watch = observer.load(std::memory_order_acquire);
  if (watch != nullptr && watch->end != nullptr) [[unlikely]]
    watch->end(id);
}

void record_mark(const Event& event) {
  const Hook hook;
  const char* kept = nullptr;
  if (Stream* stream = hook.stream(); stream != nullptr) put_event(*stream, Type::kMark, event, 0, kept);
}

void record_category(std::uint32_t domain, std::uint32_t category, const Name& name) {
  put_named(Type::kCategory, category, name, native::Named{{}, domain, 0});
}

void record_thread_name(std::uint32_t tid, const Name& name) {
  put_named(Type::kThreadName, tid, name, native::Named{});
}

void record_resource(std::uint32_t domain, std::uint32_t type, std::uint64_t identifier, const Name& text) {
  put_named(Type::kResource, type, text, native::Resource{{}, domain, 0, identifier});
}

// The orderly end. Nothing is taken down: atexit handlers and other libraries' destructors may still use NVTX.
__attribute__((destructor)) void process_ends() {
  if (started.load(std::memory_order_acquire) && alive->load(std::memory_order_relaxed) != 0) capture_end();
}

}  // namespace rangescope::inject
