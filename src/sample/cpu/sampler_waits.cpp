// What threads wait for: in which system call, at which place of the program, and who holds the
// lock.
#include <algorithm>

#include "sample/cpu/dump/holders.hpp"
#include "sample/cpu/sampler.hpp"

namespace rangescope::sample::cpu {
namespace {

using wire::cpu::WaitKind;

/// A wait that is shorter is not looked at while it lasts.
constexpr std::int64_t kLongWait_ns = 2'000'000;
/// Where registers do not say in which call, /proc is asked as soon as this.
constexpr std::int64_t kUnknownCall_ns = 200'000;
constexpr std::size_t kWaitingStack = 32 << 10;

}  // namespace

/// Asks /proc what a thread waits for. False where it runs again.
bool Sampler::ask(Thread& waiting, std::uint32_t tid) {
  const auto call = system_call_of(waiting.pid, tid);
  if (!call)
    return false;
  if (waiting.path != 0 && call->place == waiting.registers[kRip] &&
      call->stack_pointer == waiting.registers[kRsp])
    calls_.learn(waiting.path, call->number);
  waiting.path = 0;
  waiting.call = call;
  waiting.kind = kind_of(process(waiting.pid), call);
  return true;
}

void Sampler::ask_for_calls() {
  for (const std::uint32_t tid : ask_) {
    const auto entry = threads_.find(tid);
    if (entry == threads_.end() || entry->second.out_since_ns < 0)
      continue;
    Thread& waiting = entry->second;
    if (waiting.path != 0)
      (void)ask(waiting, tid);
    find_holder(waiting);
  }
  read_chain_of_short_wait();
  ask_.clear();
}

/// The stack of a wait for a lock at the same place with the same stack pointer, for the same lock.
/// Python's functions do not follow from these.
std::uint32_t Sampler::known_stack_of_wait(const Thread& waiting) {
  if (process(waiting.pid).python)
    return kNone;
  const auto entry = stacks_of_waits_.find(place_of_wait(waiting));
  return entry == stacks_of_waits_.end() ? kNone : entry->second;
}

std::uint64_t Sampler::place_of_wait(const Thread& waiting) {
  std::uint64_t lock = 0;
  if (waiting.call)
    lock = waiting.call->first;
  std::uint64_t place = waiting.pid;
  for (const std::uint64_t part : {waiting.registers[kRip], waiting.registers[kRsp], lock})
    place = (place ^ part) * 0x9e3779b97f4a7c15u;
  return place;
}

/// Of one wait for a lock at a place that is not known yet: a wait that is too short to be looked
/// at mostly comes again there.
void Sampler::read_chain_of_short_wait() {
  for (const std::uint32_t tid : ask_) {
    const auto entry = threads_.find(tid);
    if (entry == threads_.end() || entry->second.out_since_ns < 0)
      continue;
    Thread& waiting = entry->second;
    const bool is_lock = waiting.kind == WaitKind::kLock || waiting.kind == WaitKind::kGil;
    if (!is_lock || !waiting.by_registers || waiting.stack != kNone)
      continue;
    if (short_chains_read_++ < kMostShortChains)
      chain_of_wait(waiting, tid, now_ns());
    return;
  }
}

// A mutex of pthreads notes the thread that has it behind its futex, the GIL its last holder before
// its own.
void Sampler::find_holder(Thread& waiting) {
  if (!waiting.call || waiting.holder != kNone)
    return;
  const Process& owner = process(waiting.pid);
  std::uint32_t own_tid = 0;
  if (waiting.kind == WaitKind::kGil && owner.python)
    own_tid = owner.python->gil_holder(waiting.call->first);
  else if (waiting.kind == WaitKind::kLock)
    own_tid = mutex_owner(waiting.pid, waiting.call->first);
  if (own_tid == 0 || own_tid == waiting.own_tid)
    return;
  const bool has_our_numbers = owner.own_pid == waiting.pid;
  for (auto& [tid, thread] : threads_) {
    const std::uint32_t number = has_our_numbers ? tid : thread.own_tid;
    if (thread.pid == waiting.pid && number == own_tid) {
      waiting.holder = number_of(thread, tid);
      return;
    }
  }
}

bool Sampler::look_at_waits(std::int64_t now_ns) {
  std::size_t left = kMostAsked;
  bool awake = false;
  for (auto& [tid, waiting] : threads_) {
    awake |= waiting.out_since_ns < 0 || !waiting.looked;
    if (waiting.out_since_ns < 0 || waiting.preempted || waiting.looked)
      continue;
    const bool is_call_known = waiting.by_registers && waiting.path == 0;
    const std::int64_t least_ns = is_call_known ? kLongWait_ns : kUnknownCall_ns;
    if (now_ns - waiting.out_since_ns < least_ns)
      continue;
    if (left-- == 0)
      break;
    if (!is_call_known && !ask(waiting, tid)) {
      waiting.looked = true;
      continue;
    }
    if (!is_call_known)
      find_holder(waiting);
    if (now_ns - waiting.out_since_ns < kLongWait_ns)
      continue;
    waiting.looked = true;
    chain_of_wait(waiting, tid, now_ns);
  }
  return awake;
}

// The thread sleeps: its stack stays as it is.
void Sampler::chain_of_wait(Thread& waiting, std::uint32_t tid, std::int64_t now_ns) {
  Sample sample;
  sample.pid = waiting.pid;
  sample.tid = tid;
  sample.registers = has_tables();
  if (waiting.by_registers) {
    std::copy(std::begin(waiting.registers), std::end(waiting.registers), sample.values);
  } else {
    std::fill(std::begin(sample.values), std::end(sample.values), kUnknownRegister);
    sample.values[kRdi] = waiting.call->first;
    sample.values[kRsi] = waiting.call->second;
    sample.values[kRsp] = waiting.call->stack_pointer;
    sample.values[kRip] = waiting.call->place;
  }
  stack_.clear();
  read_stack(tid, sample.values[kRsp], kWaitingStack);
  sample.stack = stack_;
  sample.chain = {&sample.values[kRip], 1};
  Process& owner = process(waiting.pid);
  read_python(owner, waiting.pid, waiting, tid, now_ns);
  unwind(owner.space, sample, unwound_);
  waiting.stack = stack_of(owner);
  const bool is_kept =
      waiting.by_registers && !owner.python && stacks_of_waits_.size() < kMostShortChains;
  if (is_kept)
    stacks_of_waits_[place_of_wait(waiting)] = waiting.stack;
}

}  // namespace rangescope::sample::cpu
