#include "inject/nvtx/writer.hpp"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/capture.hpp"
#include "inject/nvtx/control.hpp"
#include "inject/nvtx/payloads.hpp"
#include "inject/nvtx/process.hpp"
#include "inject/nvtx/quiet.hpp"
#include "inject/nvtx/thread_stream.hpp"

namespace rangescope::inject {
namespace {

namespace native = wire::native;
using native::Drop;
using native::Type;

// Stands in the frame of a hook for as long as that is on the stack.
struct Mark {
  volatile std::uint32_t value;
};
constexpr std::uint32_t kMark = 0x72616e67;

// What a thread holds: its stream, and the hook that it is in.
__attribute__((tls_model("initial-exec"))) thread_local ThreadStream* my_stream = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local Mark* volatile inside = nullptr;

std::atomic<bool> started{false};
std::atomic<const RangeObserver*> observer{nullptr};

std::uint32_t thread_id() {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

bool has_ended(std::uint32_t thread) {
  return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

// A stream whose thread has ended, or null. Looks at a few only: with many threads that live on,
// one of four streams is free in the long run. Asking for the thread spares a hook on its end
// (destructors of thread-local data run in an order of their own, and registering one may
// allocate).
ThreadStream* take_over(std::uint32_t tid) {
  ThreadStream* at = process.candidate.load(std::memory_order_acquire);
  for (int looked = 0; looked < 4; ++looked) {
    if (at == nullptr) at = process.streams.load(std::memory_order_acquire);
    if (at == nullptr) return nullptr;
    ThreadStream* const next = at->made_before;
    process.candidate.store(next, std::memory_order_release);
    std::uint32_t owner = at->owner.load(std::memory_order_acquire);
    if (has_ended(owner) && at->owner.compare_exchange_strong(owner, tid)) return at;
    at = next;
  }
  return nullptr;
}

void enlist(ThreadStream& stream, std::uint32_t tid) {
  stream.owner.store(tid, std::memory_order_relaxed);
  stream.made_before = process.streams.load(std::memory_order_relaxed);
  while (!process.streams.compare_exchange_weak(stream.made_before, &stream,
                                                std::memory_order_release)) {
  }
}

ThreadStream* new_stream(std::uint32_t tid, std::uint32_t generation) {
  if (ThreadStream* reused = take_over(tid); reused != nullptr) return reused;
  void* memory = arena_allocate(sizeof(ThreadStream));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) ThreadStream;
  made->belongs_to(generation, process.next_stream.fetch_add(1, std::memory_order_relaxed),
                   control::window());
  enlist(*made, tid);
  return made;
}

// The stream of this thread in this process: a new one for a new thread, the same one, begun anew,
// for the thread that called fork. What the other threads of the parent held is abandoned.
ThreadStream* attach() {
  const Quiet quiet;
  const std::uint32_t generation = process_generation();
  const std::uint32_t tid = thread_id();
  if (my_stream == nullptr) {
    my_stream = new_stream(tid, generation);
    if (my_stream != nullptr)
      my_stream->begin_thread(tid);
    else
      capture_count(Drop::kNoMemory);
  } else if (my_stream->generation() != generation) {
    my_stream->after_fork(tid, process.next_stream.fetch_add(1, std::memory_order_relaxed),
                          generation);
    enlist(*my_stream, tid);
  }
  if (const std::uint32_t window = control::window();
      my_stream != nullptr && my_stream->window() != window)
    my_stream->begin_window(window, control::page.since, control::page.start_ns);
  return my_stream;
}

// Whether the frame with this mark is gone, as seen from another mark. A handler that interrupted
// it runs on a stack of its own, or below it on the same one with the kernel's signal frame between
// them; so who calls from above, or from close by, has left it. From further below the mark tells:
// calls in between have most likely written over it.
bool is_left_behind(const Mark& before, const Mark& now) {
  constexpr std::uintptr_t kLeastSignalFrame = 1024;
  const KeepErrno keep_errno;
  const auto here = reinterpret_cast<std::uintptr_t>(&now),
             there = reinterpret_cast<std::uintptr_t>(&before);
  stack_t other{};
  if (here + kLeastSignalFrame > there && sigaltstack(nullptr, &other) == 0) {
    const auto begin = reinterpret_cast<std::uintptr_t>(other.ss_sp);
    return (other.ss_flags & SS_ONSTACK) == 0 || (there >= begin && there < begin + other.ss_size);
  }
  std::uint32_t found = 0;
  const iovec to{&found, sizeof found}, from{const_cast<Mark*>(&before), sizeof found};
  const ssize_t got =
      process_vm_readv(getpid(), &to, 1, &from, 1, 0);  // the stack may be unmapped by now
  return got < 0 ? errno == EFAULT : found != kMark;
}

// This thread is in a hook already: true when that one was left behind, and is mended now.
__attribute__((noinline, cold)) bool mend(const Mark& before, const Mark& now) {
  if (!is_left_behind(before, now)) {
    capture_count(Drop::kReentrant);
    return false;
  }
  const Quiet quiet;
  inside = nullptr;
  capture_count(Drop::kAbandoned);
  if (my_stream != nullptr) my_stream->recover();
  return true;
}

// One hook of one thread. Turns away what a signal handler calls meanwhile, and mends what one left
// behind that never came back (siglongjmp). stream() is null when nothing can be recorded. The mark
// is an object of its own so that the rest of the hook can stay in registers.
class Hook {
 public:
  explicit Hook(Mark& mark) : mark_(&mark) {
    if (Mark* const before = inside; before != nullptr && !mend(*before, mark)) [[unlikely]]
      return;
    mark.value = kMark;
    inside = &mark;
    entered_ = true;
    stream_ = my_stream;
    if (stream_ == nullptr || !stream_->is_of(process.generation.load(std::memory_order_relaxed),
                                              control::window())) [[unlikely]]
      stream_ = attach();
  }
  ~Hook() { leave(); }
  Hook& operator=(Hook&&) = delete;
  [[nodiscard]] ThreadStream* stream() const { return stream_; }
  void leave() {
    if (entered_) inside = nullptr;
    entered_ = false;
  }
  void enter_again() {
    inside = mark_;
    entered_ = true;
  }

 private:
  Mark* mark_;
  ThreadStream* stream_ = nullptr;
  bool entered_ = false;
};

struct Layout {
  std::uint8_t flags;
  std::size_t bytes;
};

Layout layout_of(const Event& event, std::size_t fixed) {
  Layout layout{event.name.registered ? native::kRegistered : std::uint8_t{0}, fixed};
  if (event.domain != 0 || event.category != 0)
    layout.flags |= native::kHasScope, layout.bytes += 8;
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

// Defines what an event refers to and finds room for it; null when it must be dropped (done).
// `name` is its string id.
unsigned char* prepare(ThreadStream& stream, const Event& event, std::size_t bytes,
                       std::uint32_t& name, const char*& kept) {
  if (event.name.cut) capture_count(Drop::kNameCut);
  name = stream.intern(event.name, kept);
  if (name == 0 && event.name.bytes != 0) return nullptr;
  if (event.domain != 0) {
    const ThreadStream::DomainState* state = stream.domain_state(event.domain);
    if (state == nullptr || (!state->defined && !stream.define_domain(event.domain)))
      return nullptr;
  }
  return stream.room(bytes);
}

template <Type type>
bool put_event(ThreadStream& stream, const Event& event, std::uint64_t id, const char*& kept) {
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
  const bool push = type == Type::kPush;
  if (const std::uint64_t since = stream.since(now);
      push && layout.bytes == fixed && native::ShortPush::fits(since, name)) {
    const native::ShortPush value{static_cast<std::uint32_t>(since), name};
    stream.commit(at, {Type::kShortPush, layout.flags, 1, value.value()});
  } else {
    std::memcpy(at + 8, &now, 8);
    stream.commit(at, {type, layout.flags, static_cast<std::uint16_t>(layout.bytes / 8), name});
  }
  if (push) stream.timed(now);
  return true;
}

// A record that gives something a name: of a category, a thread, a resource.
template <typename Record>
void put_named(Type type, std::uint32_t value, const Name& text, Record record) {
  Mark mark;
  const Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr) return;
  Event event;
  event.name = text;
  event.domain = record.domain;
  const char* kept = nullptr;
  unsigned char* at = prepare(*stream, event, sizeof record, record.string, kept);
  if (at == nullptr) return stream->dropped();
  constexpr std::size_t kHead = sizeof record.head;  // commit() writes it
  std::memcpy(at + kHead, reinterpret_cast<const unsigned char*>(&record) + kHead,
              sizeof record - kHead);
  stream->commit(at, {type, 0, sizeof record / 8, value});
}

// Namespaces that dlmopen made and in which NVTX could not load us: each copy of the library needs
// some of the little room that the linker keeps for thread-local data. Counted by the copy in the
// first namespace that has one.
std::uint64_t namespaces_without_us() {
#if __GLIBC_PREREQ(2, 35)
  const auto under_lock = [](dl_phdr_info*, std::size_t, void* out) {
    const auto find = [](const r_debug_extended* space, const char* name) {
      const link_map* map = space->base.r_map;
      while (map != nullptr &&
             (name == nullptr ? map->l_ld != _DYNAMIC : std::strcmp(map->l_name, name) != 0))
        map = map->l_next;
      return map;
    };
    if (_r_debug.r_version < 2) return 1;  // no namespace but the program's
    const auto* first = reinterpret_cast<const r_debug_extended*>(&_r_debug);
    const link_map* us = nullptr;
    for (const auto* space = first; space != nullptr && us == nullptr; space = space->r_next)
      us = find(space, nullptr);
    if (us == nullptr) return 1;
    const link_map* counts = nullptr;
    for (const auto* space = first; space != nullptr; space = space->r_next) {
      const link_map* copy = find(space, us->l_name);
      if (counts == nullptr) counts = copy;
      if (copy == nullptr && space != first && space->base.r_map != nullptr)
        ++*static_cast<std::uint64_t*>(out);
    }
    if (counts != us) *static_cast<std::uint64_t*>(out) = 0;
    return 1;
  };
  std::uint64_t count = 0;
  dl_iterate_phdr(under_lock, &count);
  return count;
#else
  return 0;
#endif
}

// Observers may wait and open files: no cancellation there either. Not inlined, for the sake of the
// way without one.
__attribute__((noinline)) void tell_push(const RangeObserver& watch, const Event& event,
                                         int level) {
  const NoCancel no_cancel;
  watch.push(event, level);
}
__attribute__((noinline)) void tell_pop(const RangeObserver& watch, std::uint32_t domain,
                                        int level) {
  const NoCancel no_cancel;
  watch.pop(domain, level);
}

}  // namespace

void set_range_observer(const RangeObserver* wanted) {
  observer.store(wanted, std::memory_order_release);
}

const OpenRange* open_ranges(std::size_t& count) {
  ThreadStream* stream = my_stream;
  const bool ours = stream != nullptr &&
                    stream->generation() == process.generation.load(std::memory_order_relaxed);
  count = ours ? stream->stack_size() : 0;
  return count == 0 ? nullptr : stream->stack();
}

bool writer_holds(const void* address) {
  return (my_stream != nullptr && my_stream->holds(address)) || capture_header_holds(address);
}

namespace {

// The least that recording an empty range takes, inside it and in all: the best of some batches on
// a stream that nobody reads. It takes some 25 us, once a process image; children of a fork have it
// from their parent.
void rehearse() {
  constexpr std::size_t kBatches = 24, kPairs = 16, kPairBytes = 32;
  alignas(8) unsigned char scrap[kPairs * kPairBytes] = {};
  ThreadStream* const mine = my_stream;
  ThreadStream nobodys;
  nobodys.belongs_to(process_generation(), 0, control::window());
  if (nobodys.domain_state(0) == nullptr || nobodys.push_entry() == nullptr) return;  // no memory
  my_stream = &nobodys;
  std::int64_t own = INT64_MAX, pair = INT64_MAX;
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    nobodys.write_to(scrap, sizeof scrap);
    for (std::size_t i = 0; i < kPairs; ++i) {
      (void)record_push(Event{});
      (void)record_pop(0);
    }
    std::int64_t inside_ns = 0, first = 0, last = 0, now = 0;
    const unsigned char* at = scrap;
    for (std::size_t i = 0; i < 2 * kPairs; ++i) {
      native::RecordHeader head;
      std::memcpy(&head, at, sizeof head);
      const std::int64_t before = now;
      switch (head.type) {
        case Type::kShortPush: now += native::ShortPush::of(head.value).since_ns; break;
        case Type::kShortPop: now += head.value; break;
        default: std::memcpy(&now, at + 8, sizeof now);
      }
      at += std::size_t{head.words} * 8;
      if (i == 0) first = now;
      if (i % 2 == 0) last = now;
      if (i % 2 == 1) inside_ns += now - before;
    }
    if (inside_ns < own) own = inside_ns;
    if (last - first < pair) pair = last - first;
  }
  my_stream = mine;
  const std::int64_t own_ps = own * 1000 / std::int64_t{kPairs},
                     pair_ps = pair * 1000 / std::int64_t{kPairs - 1};
  if (own_ps > 0 && pair_ps > own_ps)
    capture_range_cost(static_cast<std::uint64_t>(own_ps), static_cast<std::uint64_t>(pair_ps));
}

}  // namespace

bool writer_start() {
  if (started.load(std::memory_order_acquire)) return true;
  const Quiet quiet;
  if (!capture_prepare()) return false;
  process_watch_forks();
  [[maybe_unused]] const std::uint32_t generation = process_generation();
  if (observer.load(std::memory_order_acquire) == nullptr && inside == nullptr) rehearse();
  if (!control::join(capture_folder()) || !capture_open()) return false;
  guard_maps();
  started.store(true, std::memory_order_release);
  return true;
}

int record_push(const Event& event) {
  const RangeObserver* watch = observer.load(std::memory_order_acquire);
  Mark mark;
  Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr) return kNotTracked;
  ThreadStream::DomainState* state = stream->domain_state(event.domain);
  OpenRange* entry = state == nullptr ? nullptr : stream->push_entry();
  if (entry == nullptr) {
    capture_count(Drop::kTooDeep);
    return kNotTracked;
  }
  *entry = {nullptr, 0,     event.domain,    state->top,   false,
            false,   false, stream->chunk(), event.payload};
  stream->pushed();
  const auto level = static_cast<int>(state->depth);
  state->top = static_cast<std::uint32_t>(stream->stack_size());
  ++state->depth;
  if (watch != nullptr && watch->push != nullptr) [[unlikely]] {
    hook.leave();
    tell_push(*watch, event, level);
    hook.enter_again();
    entry = stream->stack() + (stream->domain_state(event.domain)->top - 1);
    state = stream->domain_state(event.domain);
  }
  const char* kept = nullptr;
  if (stream->thins() &&
      !stream->takes(entry->below == 0 ? nullptr : stream->stack() + entry->below - 1))
      [[unlikely]] {
    if (watch != nullptr) (void)stream->intern(event.name, kept);
  } else if (put_event<Type::kPush>(*stream, event, 0, kept)) {
    entry->recorded = true;
    entry->start_ns = stream->latest_ns();
    ++state->recorded;
  }
  if (kept != nullptr) {
    entry->name = kept;
    entry->name_bytes = event.name.bytes;
  }
  stream->settle();
  return level;
}

int record_pop(std::uint32_t domain) {
  const std::int64_t now = now_ns();
  Mark mark;
  Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr) return kNotTracked;
  ThreadStream::DomainState* state = stream->domain_state(domain);
  if (state == nullptr || state->depth == 0) {
    capture_count(control::window() != 0 ? Drop::kOpenBefore : Drop::kEmptyPop);
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
    unsigned char* at =
        stream->room(sizeof(native::Timed));  // a gap written here still counts this range as open
    --state->recorded;
    if (at != nullptr) {
      if (const std::uint64_t since = stream->since(now); since >> 32 == 0 && domain <= UINT8_MAX) {
        stream->commit(at, {Type::kShortPop, static_cast<std::uint8_t>(domain), 1,
                            static_cast<std::uint32_t>(since)});
      } else {
        std::memcpy(at + 8, &now, 8);
        stream->commit(at, {Type::kPop, 0, 2, domain});
      }
      stream->timed(now);
    } else {
      stream->dropped();
    }
  } else if (inherited) {
    capture_count(Drop::kInheritedPop);
  }
  stream->settle();
  hook.leave();
  const RangeObserver* watch = observer.load(std::memory_order_acquire);
  if (watch != nullptr && watch->pop != nullptr) [[unlikely]]
    tell_pop(*watch, domain, level);
  return level;
}

std::uint64_t record_start(const Event& event, std::uint64_t wanted_id) {
  if (process.generation.load(std::memory_order_relaxed) == 0) [[unlikely]]
    (void)process_generation();  // the child of a fork: the ids before this one are its parent's
  const std::uint64_t id =
      wanted_id != 0 ? wanted_id : next_range_id.fetch_add(1, std::memory_order_relaxed);
  const RangeObserver* watch = observer.load(std::memory_order_acquire);
  if (watch != nullptr && watch->start != nullptr) [[unlikely]] {
    const NoCancel no_cancel;
    watch->start(event, id);
  }
  Mark mark;
  const Hook hook(mark);
  if (ThreadStream* stream = hook.stream(); stream != nullptr) {
    const char* kept = nullptr;
    put_event<Type::kStart>(*stream, event, id, kept);
  }
  return id;
}

void record_end(std::uint64_t id) {
  if (id == 0 && control::window() != 0)
    return capture_count(Drop::kOpenBefore);  // its start came outside
  const std::int64_t now = now_ns();
  Mark mark;
  Hook hook(mark);
  ThreadStream* stream = hook.stream();
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
  if (watch != nullptr && watch->end != nullptr) [[unlikely]] {
    const NoCancel no_cancel;
    watch->end(id);
  }
}

void record_mark(const Event& event) {
  Mark mark;
  const Hook hook(mark);
  const char* kept = nullptr;
  ThreadStream* stream = hook.stream();
  if (stream == nullptr) return;
  if (stream->thins()) [[unlikely]] {
    const ThreadStream::DomainState* state = stream->domain_state(event.domain);
    if (state != nullptr &&
        !stream->takes(state->top == 0 ? nullptr : stream->stack() + state->top - 1))
      return;
  }
  put_event<Type::kMark>(*stream, event, 0, kept);
}

void record_payload(std::uint32_t domain, const PayloadLayout& layout, std::uint32_t layout_id,
                    const void* bytes) {
  Mark mark;
  const Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr) return;
  const ThreadStream::DomainState* state = stream->domain_state(domain);
  if (state == nullptr || state->top == 0 || !stream->stack()[state->top - 1].recorded) return;
  if (!stream->knows_layout(layout_id) && !stream->define_layout(layout, layout_id))
    return stream->dropped();
  const std::size_t size = sizeof(native::StructuredPayload) + (layout.bytes + 7) / 8 * 8;
  unsigned char* at = stream->room(size);
  if (at == nullptr) return stream->dropped();
  std::memcpy(at + 8, &domain, 4);
  std::memcpy(at + 12, &layout.bytes, 4);
  std::memcpy(at + sizeof(native::StructuredPayload), bytes, layout.bytes);
  stream->commit(at, {Type::kPayload, 0, static_cast<std::uint16_t>(size / 8), layout_id});
}

void record_category(std::uint32_t domain, std::uint32_t category, const Name& name) {
  put_named(Type::kCategory, category, name, native::Named{{}, domain, 0});
}

void record_thread_name(std::uint32_t tid, const Name& name) {
  put_named(Type::kThreadName, tid, name, native::Named{});
}

void record_resource(std::uint32_t domain, std::uint32_t type, std::uint64_t identifier,
                     const Name& text) {
  put_named(Type::kResource, type, text, native::Resource{{}, domain, 0, identifier});
}

// The orderly end. Nothing is taken down: atexit handlers and other libraries' destructors may
// still use NVTX.
__attribute__((destructor)) void process_ends() {
  if (process.generation.load(std::memory_order_relaxed) ==
      1) {  // no child of a fork: the linker's lock is as it was
    if (const std::uint64_t count = namespaces_without_us(); count > 0)
      capture_count(Drop::kNamespace, count);
  }
  if (my_stream != nullptr &&
      my_stream->generation() == process.generation.load(std::memory_order_relaxed))
    my_stream->tell_thinned();
  capture_end();
}

}  // namespace rangescope::inject
