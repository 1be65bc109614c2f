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
/// Where registers do not tell what it is, /proc is asked as soon as this.
constexpr std::int64_t kUntold_ns = 200'000;
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
    const auto at = threads_.find(tid);
    if (at == threads_.end() || at->second.out_since_ns < 0)
      continue;
    if (at->second.path != 0)
      (void)ask(at->second, tid);
    find_holder(at->second);
  }
  read_chain_of_short_wait();
  ask_.clear();
}

/// The stack of a wait for a lock at the same place with the same stack pointer, for the same lock.
/// Python's functions do not follow from these.
std::uint32_t Sampler::known_stack_of_wait(const Thread& waiting) {
  if (process(waiting.pid).python)
    return kNone;
  const auto known = stacks_of_waits_.find(place_of_wait(waiting));
  return known == stacks_of_waits_.end() ? kNone : known->second;
}

std::uint64_t Sampler::place_of_wait(const Thread& waiting) {
  std::uint64_t place = waiting.pid;
  for (const std::uint64_t part :
       {waiting.registers[kRip], waiting.registers[kRsp], waiting.call ? waiting.call->first : 0})
    place = (place ^ part) * 0x9e3779b97f4a7c15u;
  return place;
}

/// Of one wait for a lock at a place that is not known yet: a wait that is too short to be looked
/// at mostly comes again there.
void Sampler::read_chain_of_short_wait() {
  for (const std::uint32_t tid : ask_) {
    const auto at = threads_.find(tid);
    if (at == threads_.end() || at->second.out_since_ns < 0)
      continue;
    Thread& waiting = at->second;
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
  for (auto& [tid, each] : threads_)
    if (each.pid == waiting.pid && (owner.own_pid == waiting.pid ? tid : each.own_tid) == own_tid) {
      waiting.holder = number_of(each, tid);
      return;
    }
}

bool Sampler::look_at_waits(std::int64_t now_ns) {
  std::size_t most = kMostAsked;
  bool awake = false;
  for (auto& [tid, waiting] : threads_) {
    awake |= waiting.out_since_ns < 0 || !waiting.looked;
    if (waiting.out_since_ns < 0 || waiting.preempted || waiting.looked)
      continue;
    const bool told = waiting.by_registers && waiting.path == 0;
    if (now_ns - waiting.out_since_ns < (told ? kLongWait_ns : kUntold_ns))
      continue;
    if (most-- == 0)
      break;
    if (!told && !ask(waiting, tid)) {
      waiting.looked = true;
      continue;
    }
    if (!told)
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
