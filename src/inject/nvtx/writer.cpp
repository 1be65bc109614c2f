#include "inject/nvtx/writer.hpp"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/capture.hpp"
#include "inject/nvtx/control.hpp"
#include "inject/nvtx/guard.hpp"
#include "inject/nvtx/payloads.hpp"
#include "inject/nvtx/process.hpp"
#include "inject/nvtx/quiet.hpp"
#include "inject/nvtx/thread_stream.hpp"

namespace rangescope::inject {
namespace {

namespace native = wire::native;
using native::Drop;
using native::Type;

// A known value in the frame of a hook, as long as that is on the stack.
struct FrameMark {
  volatile std::uint32_t value;
};
constexpr std::uint32_t kFrameMark = 0x72616e67;

// State of a thread: its stream, and the mark of the hook that is running.
__attribute__((tls_model("initial-exec"))) thread_local ThreadStream* my_stream = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local FrameMark* volatile running_hook = nullptr;

std::atomic<bool> started{false};
std::atomic<const RangeObserver*> observer{nullptr};

std::uint32_t thread_id() {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

bool has_ended(std::uint32_t thread) {
  return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

// Takes over a stream whose thread has ended; null if none was found. Only four are checked: even
// with many long-lived threads, one of four streams is free in the long run. Asking the kernel for
// the thread avoids a destructor of thread-local data, whose order is not defined and whose
// registration may allocate.
ThreadStream* take_over(std::uint32_t tid) {
  ThreadStream* stream = process.candidate.load(std::memory_order_acquire);
  for (int checked = 0; checked < 4; ++checked) {
    if (stream == nullptr)
      stream = process.streams.load(std::memory_order_acquire);
    if (stream == nullptr)
      return nullptr;
    ThreadStream* const next = stream->made_before;
    process.candidate.store(next, std::memory_order_release);
    std::uint32_t owner = stream->owner.load(std::memory_order_acquire);
    if (has_ended(owner) && stream->owner.compare_exchange_strong(owner, tid))
      return stream;
    stream = next;
  }
  return nullptr;
}

void enlist(ThreadStream& stream, std::uint32_t tid) {
  stream.owner.store(tid, std::memory_order_relaxed);
  stream.made_before = process.streams.load(std::memory_order_relaxed);
  while (!process.streams.compare_exchange_weak(
      stream.made_before, &stream, std::memory_order_release)) {
  }
}

ThreadStream* new_stream(std::uint32_t tid, std::uint32_t generation) {
  if (ThreadStream* reused = take_over(tid); reused != nullptr)
    return reused;
  void* memory = arena_allocate(sizeof(ThreadStream));
  if (memory == nullptr)
    return nullptr;
  auto* stream = new (memory) ThreadStream;
  const std::uint32_t ordinal = process.next_stream.fetch_add(1, std::memory_order_relaxed);
  stream->assign_to(generation, ordinal, control::window());
  enlist(*stream, tid);
  return stream;
}

// The stream of this thread in this process: a new one for a new thread; the same one, restarted,
// for the thread that called fork. Streams of the parent's other threads are abandoned.
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
    my_stream->after_fork(
        tid, process.next_stream.fetch_add(1, std::memory_order_relaxed), generation);
    enlist(*my_stream, tid);
  }
  if (const std::uint32_t window = control::window();
      my_stream != nullptr && my_stream->window() != window)
    my_stream->begin_window(window, control::page.since, control::page.start_ns);
  return my_stream;
}

// The mark may be on a stack that is unmapped by now.
bool is_overwritten(const FrameMark& mark) {
  std::uint32_t value = 0;
  const iovec local{&value, sizeof value};
  const iovec remote{const_cast<FrameMark*>(&mark), sizeof value};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0)
    return errno == EFAULT;
  return value != kFrameMark;
}

// Whether the frame with the earlier mark is gone, as seen from the frame of `now`. A signal
// handler that interrupted the earlier frame runs on an alternate stack, or below it on the same
// stack with the kernel's signal frame between. So a caller from above, or from close below, has
// left it. From further below the mark decides: calls in between have most likely overwritten it.
bool is_left_behind(const FrameMark& earlier, const FrameMark& now) {
  constexpr std::uintptr_t kSmallestSignalFrame = 1024;
  const KeepErrno keep_errno;
  const auto now_address = reinterpret_cast<std::uintptr_t>(&now);
  const auto earlier_address = reinterpret_cast<std::uintptr_t>(&earlier);
  stack_t alternate{};
  const bool is_above_or_close = now_address + kSmallestSignalFrame > earlier_address;
  if (!is_above_or_close || sigaltstack(nullptr, &alternate) != 0)
    return is_overwritten(earlier);
  const bool is_on_alternate_stack = (alternate.ss_flags & SS_ONSTACK) != 0;
  if (!is_on_alternate_stack)
    return true;
  const auto begin = reinterpret_cast<std::uintptr_t>(alternate.ss_sp);
  return earlier_address >= begin && earlier_address < begin + alternate.ss_size;
}

// Called when this thread is in a hook already. True if that hook was left behind: the stream has
// been recovered. False for a call of a signal handler, which is dropped.
__attribute__((noinline, cold)) bool recover_left_behind(const FrameMark& earlier,
                                                         const FrameMark& now) {
  if (!is_left_behind(earlier, now)) {
    capture_count(Drop::kReentrant);
    return false;
  }
  const Quiet quiet;
  running_hook = nullptr;
  capture_count(Drop::kAbandoned);
  if (my_stream != nullptr)
    my_stream->recover();
  return true;
}

// One hook of one thread. Refuses calls from a signal handler in the meantime, and repairs what a
// hook left behind that never returned (siglongjmp). stream() is null if nothing can be recorded.
// The mark is a separate object so that the rest of the hook can stay in registers.
class Hook {
 public:
  explicit Hook(FrameMark& mark) : mark_(&mark) {
    FrameMark* const earlier = running_hook;
    if (earlier != nullptr && !recover_left_behind(*earlier, mark)) [[unlikely]]
      return;
    mark.value = kFrameMark;
    running_hook = &mark;
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
    if (entered_)
      running_hook = nullptr;
    entered_ = false;
  }
  void enter_again() {
    running_hook = mark_;
    entered_ = true;
  }

 private:
  FrameMark* mark_;
  ThreadStream* stream_ = nullptr;
  bool entered_ = false;
};

struct Layout {
  std::uint8_t flags;
  std::size_t bytes;
};

Layout layout_of(const Event& event, std::size_t fixed) {
  Layout layout{event.name.registered ? native::kRegistered : std::uint8_t{0}, fixed};
  if (event.domain != 0 || event.category != 0) {
    layout.flags |= native::kHasScope;
    layout.bytes += 8;
  }
  if (event.has_color) {
    layout.flags |= native::kHasColor;
    layout.bytes += 8;
  }
  if (event.payload.type != 0) {
    layout.flags |= native::kHasPayload;
    layout.bytes += 16;
  }
  return layout;
}

void store_attributes(unsigned char* out, const Event& event, std::uint8_t flags) {
  if ((flags & native::kHasScope) != 0) {
    const native::Scope scope{event.domain, event.category};
    std::memcpy(out, &scope, 8);
    out += 8;
  }
  if ((flags & native::kHasColor) != 0) {
    const std::uint64_t color = event.color;
    std::memcpy(out, &color, 8);
    out += 8;
  }
  if ((flags & native::kHasPayload) != 0) {
    const std::uint64_t type = event.payload.type;
    std::memcpy(out, &type, 8);
    std::memcpy(out + 8, &event.payload.bits, 8);
  }
}

// Defines name and domain of an event, and returns memory for its record; null if there is no room.
// `name` becomes its string id.
unsigned char* prepare(ThreadStream& stream,
                       const Event& event,
                       std::size_t bytes,
                       std::uint32_t& name,
                       const char*& kept) {
  if (event.name.cut)
    capture_count(Drop::kNameCut);
  name = stream.intern(event.name, kept);
  if (name == 0 && event.name.bytes != 0)
    return nullptr;
  if (event.domain != 0) {
    const ThreadStream::DomainState* state = stream.domain_state(event.domain);
    if (state == nullptr || (!state->defined && !stream.define_domain(event.domain)))
      return nullptr;
  }
  return stream.room(bytes);
}

// Writes the record of an event; false, and counted, if there is no room. `kept` becomes the
// stream's copy of its name.
template <Type type>
bool write_event(ThreadStream& stream, const Event& event, std::uint64_t id, const char*& kept) {
  const std::size_t fixed = type == Type::kStart ? 24 : 16;
  const Layout layout = layout_of(event, fixed);
  std::uint32_t name = 0;
  unsigned char* record = prepare(stream, event, layout.bytes, name, kept);
  if (record == nullptr) {
    stream.dropped();
    return false;
  }
  if (type == Type::kStart)
    std::memcpy(record + 16, &id, 8);
  if (layout.bytes != fixed)
    store_attributes(record + fixed, event, layout.flags);
  const std::int64_t now = now_ns();
  const std::uint64_t since = stream.since(now);
  constexpr bool kIsPush = type == Type::kPush;
  if (kIsPush && layout.bytes == fixed && native::ShortPush::fits(since, name)) {
    const native::ShortPush value{static_cast<std::uint32_t>(since), name};
    stream.commit(record, {Type::kShortPush, layout.flags, 1, value.value()});
  } else {
    const auto words = static_cast<std::uint16_t>(layout.bytes / 8);
    std::memcpy(record + 8, &now, 8);
    stream.commit(record, {type, layout.flags, words, name});
  }
  if (kIsPush)
    stream.set_latest_ns(now);
  return true;
}

// Writes the name of a category, a thread or a resource.
template <typename Record>
void write_named(Type type, std::uint32_t value, const Name& text, Record contents) {
  FrameMark mark;
  const Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr)
    return;
  Event event;
  event.name = text;
  event.domain = contents.domain;
  const char* kept = nullptr;
  unsigned char* record = prepare(*stream, event, sizeof contents, contents.string, kept);
  if (record == nullptr)
    return stream->dropped();
  constexpr std::size_t kHead = sizeof contents.head;  // commit() writes it
  std::memcpy(record + kHead,
              reinterpret_cast<const unsigned char*>(&contents) + kHead,
              sizeof contents - kHead);
  stream->commit(record, {type, 0, sizeof contents / 8, value});
}

#if __GLIBC_PREREQ(2, 35)
// This library, or null if it is not in the namespace.
const link_map* find_us(const r_debug_extended* space) {
  const link_map* map = space->base.r_map;
  while (map != nullptr && map->l_ld != _DYNAMIC)
    map = map->l_next;
  return map;
}

const link_map* find_by_name(const r_debug_extended* space, const char* name) {
  const link_map* map = space->base.r_map;
  while (map != nullptr && std::strcmp(map->l_name, name) != 0)
    map = map->l_next;
  return map;
}

// For dl_iterate_phdr, which holds the linker's lock during the call. `count` is a std::uint64_t.
int count_namespaces_without_us(dl_phdr_info*, std::size_t, void* count) {
  constexpr int kStop = 1;
  if (_r_debug.r_version < 2)
    return kStop;  // the program's namespace only
  const auto* first = reinterpret_cast<const r_debug_extended*>(&_r_debug);
  const link_map* us = nullptr;
  for (const auto* space = first; space != nullptr && us == nullptr; space = space->r_next)
    us = find_us(space);
  if (us == nullptr)
    return kStop;
  const link_map* first_copy = nullptr;
  std::uint64_t without_us = 0;
  for (const auto* space = first; space != nullptr; space = space->r_next) {
    const link_map* copy = find_by_name(space, us->l_name);
    if (first_copy == nullptr)
      first_copy = copy;
    if (copy == nullptr && space != first && space->base.r_map != nullptr)
      ++without_us;
  }
  if (first_copy == us)
    *static_cast<std::uint64_t*>(count) = without_us;
  return kStop;
}
#endif

// Namespaces made by dlmopen in which NVTX could not load this library, because each copy needs
// part of the small space that the linker reserves for thread-local data. Only the copy in the
// first namespace that has one counts them.
std::uint64_t namespaces_without_us() {
  std::uint64_t count = 0;
#if __GLIBC_PREREQ(2, 35)
  dl_iterate_phdr(count_namespaces_without_us, &count);
#endif
  return count;
}

// Observers may wait and open files, so cancellation is off there as well. Not inlined, to keep the
// path without an observer short.
__attribute__((noinline)) void notify_push(const RangeObserver& watcher,
                                           const Event& event,
                                           int level) {
  const NoCancel no_cancel;
  watcher.push(event, level);
}
__attribute__((noinline)) void notify_pop(const RangeObserver& watcher,
                                          std::uint32_t domain,
                                          int level) {
  const NoCancel no_cancel;
  watcher.pop(domain, level);
}

}  // namespace

void set_range_observer(const RangeObserver* new_observer) {
  observer.store(new_observer, std::memory_order_release);
}

const OpenRange* open_ranges(std::size_t& count) {
  ThreadStream* stream = my_stream;
  const bool is_of_this_process =
      stream != nullptr &&
      stream->generation() == process.generation.load(std::memory_order_relaxed);
  count = 0;
  if (is_of_this_process)
    count = stream->stack_size();
  if (count == 0)
    return nullptr;
  return stream->stack();
}

bool writer_holds(const void* address) {
  return (my_stream != nullptr && my_stream->holds(address)) || capture_header_holds(address);
}

namespace {

constexpr std::size_t kRehearsedPairs = 16;

struct BatchTimes {
  std::int64_t inside_ns = 0;      // from each push to its pop, summed
  std::int64_t first_push_ns = 0;  // when
  std::int64_t last_push_ns = 0;
};

// The times in the records of a batch of empty ranges.
BatchTimes times_of_batch(const unsigned char* records) {
  BatchTimes times;
  std::int64_t now = 0;
  for (std::size_t i = 0; i < 2 * kRehearsedPairs; ++i) {
    native::RecordHeader head;
    std::memcpy(&head, records, sizeof head);
    const std::int64_t previous = now;
    switch (head.type) {
      case Type::kShortPush: now += native::ShortPush::of(head.value).since_ns; break;
      case Type::kShortPop: now += head.value; break;
      default: std::memcpy(&now, records + 8, sizeof now);
    }
    records += std::size_t{head.words} * 8;
    const bool is_push = i % 2 == 0;
    if (i == 0)
      times.first_push_ns = now;
    if (is_push)
      times.last_push_ns = now;
    else
      times.inside_ns += now - previous;
  }
  return times;
}

// Measures the shortest time that recording an empty range takes, within the range and in total:
// the best of some batches on a stream whose records are thrown away. Takes about 25 us, once a
// process image. Children of a fork use their parent's values.
void rehearse() {
  constexpr std::size_t kBatches = 24;
  constexpr std::size_t kPairBytes = 32;
  alignas(8) unsigned char records[kRehearsedPairs * kPairBytes] = {};
  ThreadStream* const previous_stream = my_stream;
  ThreadStream rehearsal;
  rehearsal.assign_to(process_generation(), 0, control::window());
  const bool has_memory = rehearsal.domain_state(0) != nullptr && rehearsal.push_entry() != nullptr;
  if (!has_memory)
    return;
  my_stream = &rehearsal;
  std::int64_t shortest_inside_ns = INT64_MAX;
  std::int64_t shortest_pairs_ns = INT64_MAX;
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    rehearsal.write_to(records, sizeof records);
    for (std::size_t i = 0; i < kRehearsedPairs; ++i) {
      (void)record_push(Event{});
      (void)record_pop(0);
    }
    const BatchTimes times = times_of_batch(records);
    shortest_inside_ns = std::min(shortest_inside_ns, times.inside_ns);
    shortest_pairs_ns = std::min(shortest_pairs_ns, times.last_push_ns - times.first_push_ns);
  }
  my_stream = previous_stream;
  const std::int64_t own_ps = shortest_inside_ns * 1000 / std::int64_t{kRehearsedPairs};
  const std::int64_t pair_ps = shortest_pairs_ns * 1000 / std::int64_t{kRehearsedPairs - 1};
  if (own_ps > 0 && pair_ps > own_ps)
    capture_range_cost(static_cast<std::uint64_t>(own_ps), static_cast<std::uint64_t>(pair_ps));
}

}  // namespace

bool writer_start() {
  if (started.load(std::memory_order_acquire))
    return true;
  const Quiet quiet;
  if (!capture_prepare())
    return false;
  process_watch_forks();
  [[maybe_unused]] const std::uint32_t generation = process_generation();
  if (observer.load(std::memory_order_acquire) == nullptr && running_hook == nullptr)
    rehearse();
  if (!control::join(capture_folder()) || !capture_open())
    return false;
  guard_maps();
  started.store(true, std::memory_order_release);
  return true;
}

namespace {

// The range that is open in the domain of an entry or state; null if there is none.
const OpenRange* range_at(ThreadStream& stream, std::uint32_t index_plus_1) {
  if (index_plus_1 == 0)
    return nullptr;
  return stream.stack() + index_plus_1 - 1;
}

}  // namespace

int record_push(const Event& event) {
  const RangeObserver* watcher = observer.load(std::memory_order_acquire);
  FrameMark mark;
  Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr)
    return kNotTracked;
  ThreadStream::DomainState* state = stream->domain_state(event.domain);
  OpenRange* entry = state == nullptr ? nullptr : stream->push_entry();
  if (entry == nullptr) {
    capture_count(Drop::kTooDeep);
    return kNotTracked;
  }
  *entry = {
      nullptr, 0, event.domain, state->top, false, false, false, stream->chunk(), event.payload};
  stream->pushed();
  const auto level = static_cast<int>(state->depth);
  state->top = static_cast<std::uint32_t>(stream->stack_size());
  ++state->depth;
  if (watcher != nullptr && watcher->push != nullptr) [[unlikely]] {
    hook.leave();
    notify_push(*watcher, event, level);
    hook.enter_again();
    // The observer may have pushed ranges, and stack and states may have moved.
    state = stream->domain_state(event.domain);
    entry = stream->stack() + (state->top - 1);
  }
  const char* kept = nullptr;
  if (stream->is_thinning() && !stream->chooses(range_at(*stream, entry->below))) [[unlikely]] {
    if (watcher != nullptr)
      (void)stream->intern(event.name, kept);
  } else if (write_event<Type::kPush>(*stream, event, 0, kept)) {
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

namespace {

// Writes a pop; counts it if there is no room.
void write_pop(ThreadStream& stream,
               std::uint32_t domain,
               std::int64_t now,
               ThreadStream::DomainState& state) {
  unsigned char* record = stream.room(sizeof(native::Timed));
  --state.recorded;  // after room(), which may write a gap that counts this range as open
  if (record == nullptr)
    return stream.dropped();
  const std::uint64_t since = stream.since(now);
  if (since >> 32 == 0 && domain <= UINT8_MAX) {
    const auto short_domain = static_cast<std::uint8_t>(domain);
    stream.commit(record, {Type::kShortPop, short_domain, 1, static_cast<std::uint32_t>(since)});
  } else {
    std::memcpy(record + 8, &now, 8);
    stream.commit(record, {Type::kPop, 0, 2, domain});
  }
  stream.set_latest_ns(now);
}

}  // namespace

int record_pop(std::uint32_t domain) {
  const std::int64_t now = now_ns();
  FrameMark mark;
  Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr)
    return kNotTracked;
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
  if (recorded)
    write_pop(*stream, domain, now, *state);
  else if (inherited)
    capture_count(Drop::kInheritedPop);
  stream->settle();
  hook.leave();
  const RangeObserver* watcher = observer.load(std::memory_order_acquire);
  if (watcher != nullptr && watcher->pop != nullptr) [[unlikely]]
    notify_pop(*watcher, domain, level);
  return level;
}

std::uint64_t record_start(const Event& event, std::uint64_t wanted_id) {
  if (process.generation.load(std::memory_order_relaxed) == 0) [[unlikely]]
    (void)process_generation();  // the child of a fork: earlier ids are its parent's
  const std::uint64_t id =
      wanted_id != 0 ? wanted_id : next_range_id.fetch_add(1, std::memory_order_relaxed);
  const RangeObserver* watcher = observer.load(std::memory_order_acquire);
  if (watcher != nullptr && watcher->start != nullptr) [[unlikely]] {
    const NoCancel no_cancel;
    watcher->start(event, id);
  }
  FrameMark mark;
  const Hook hook(mark);
  if (ThreadStream* stream = hook.stream(); stream != nullptr) {
    const char* kept = nullptr;
    write_event<Type::kStart>(*stream, event, id, kept);
  }
  return id;
}

void record_end(std::uint64_t id) {
  if (id == 0 && control::window() != 0)
    return capture_count(Drop::kOpenBefore);  // it started outside the window
  const std::int64_t now = now_ns();
  FrameMark mark;
  Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr)
    return;
  unsigned char* record = stream->room(24);
  if (record != nullptr) {
    std::memcpy(record + 8, &now, 8);
    std::memcpy(record + 16, &id, 8);
    stream->commit(record, {Type::kEnd, 0, 3, 0});
  } else {
    stream->dropped();
  }
  hook.leave();
  const RangeObserver* watcher = observer.load(std::memory_order_acquire);
  if (watcher != nullptr && watcher->end != nullptr) [[unlikely]] {
    const NoCancel no_cancel;
    watcher->end(id);
  }
}

void record_mark(const Event& event) {
  FrameMark mark;
  const Hook hook(mark);
  const char* kept = nullptr;
  ThreadStream* stream = hook.stream();
  if (stream == nullptr)
    return;
  if (stream->is_thinning()) [[unlikely]] {
    const ThreadStream::DomainState* state = stream->domain_state(event.domain);
    if (state != nullptr && !stream->chooses(range_at(*stream, state->top)))
      return;
  }
  write_event<Type::kMark>(*stream, event, 0, kept);
}

void record_payload(std::uint32_t domain,
                    const PayloadLayout& layout,
                    std::uint32_t layout_id,
                    const void* bytes) {
  FrameMark mark;
  const Hook hook(mark);
  ThreadStream* stream = hook.stream();
  if (stream == nullptr)
    return;
  const ThreadStream::DomainState* state = stream->domain_state(domain);
  if (state == nullptr)
    return;
  const OpenRange* innermost = range_at(*stream, state->top);
  if (innermost == nullptr || !innermost->recorded)
    return;
  if (!stream->knows_layout(layout_id) && !stream->define_layout(layout, layout_id))
    return stream->dropped();
  const std::size_t size = sizeof(native::StructuredPayload) + (layout.bytes + 7) / 8 * 8;
  unsigned char* record = stream->room(size);
  if (record == nullptr)
    return stream->dropped();
  std::memcpy(record + 8, &domain, 4);
  std::memcpy(record + 12, &layout.bytes, 4);
  std::memcpy(record + sizeof(native::StructuredPayload), bytes, layout.bytes);
  stream->commit(record, {Type::kPayload, 0, static_cast<std::uint16_t>(size / 8), layout_id});
}

void record_category(std::uint32_t domain, std::uint32_t category, const Name& name) {
  write_named(Type::kCategory, category, name, native::Named{{}, domain, 0});
}

void record_thread_name(std::uint32_t tid, const Name& name) {
  write_named(Type::kThreadName, tid, name, native::Named{});
}

void record_resource(std::uint32_t domain,
                     std::uint32_t type,
                     std::uint64_t identifier,
                     const Name& text) {
  write_named(Type::kResource, type, text, native::Resource{{}, domain, 0, identifier});
}

// The orderly end. Everything stays usable: atexit handlers and other libraries' destructors may
// still call NVTX.
__attribute__((destructor)) void process_ends() {
  const std::uint32_t generation = process.generation.load(std::memory_order_relaxed);
  const bool is_fork_child = generation != 1;  // there the linker's lock may be held forever
  if (!is_fork_child) {
    if (const std::uint64_t count = namespaces_without_us(); count > 0)
      capture_count(Drop::kNamespace, count);
  }
  if (my_stream != nullptr && my_stream->generation() == generation)
    my_stream->count_left_out();
  capture_end();
}

}  // namespace rangescope::inject
