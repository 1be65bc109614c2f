#include "sample/cpu/sampler.hpp"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "base/text.hpp"
#include "sample/cpu/dump/holders.hpp"
#include "sample/cpu/names.hpp"
#include "sample/cpu/running_code.hpp"

namespace rangescope::sample::cpu {
namespace {

using wire::cpu::At;
using wire::cpu::FrameKind;
using wire::cpu::Packer;
using wire::cpu::WaitKind;

/// A sample that waited longer for us is of another moment than the one that we could read Python's
/// frames at: on a busy machine the thread is in a system call then, more often than it was.
constexpr std::int64_t kLate_ns = 100'000;
/// A thread that only ran on is at as typical a place then: as long as it takes a virtual machine
/// to wake a core. Its native frames are of the sample, so not longer.
constexpr std::int64_t kLateOnCore_ns = 500'000;
/// A thread whose last switch is older sleeps, and is not one of those that switch too fast.
constexpr std::int64_t kRecent_ns = 10'000'000;
/// A copy of a stack from this size on may be one that the kernel cut; what is read behind it at
/// most.
constexpr std::size_t kWholeCopy = 30 << 10, kBeyond = 192 << 10;
constexpr std::size_t kFlushItems = 8192;

/// Of a kind, in a block.
template <class Kind>
std::uint64_t as_number(Kind kind) {
  return static_cast<std::uint64_t>(kind);
}

void note(std::vector<std::string>& list, const std::string& text) {
  if (list.size() < 16 && std::ranges::find(list, text) == list.end())
    list.push_back(text);
}

/// Why the kernel refused a counter with this errno.
std::string why_not_counted(int error) {
  if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP)
    return "this machine does not provide this counter (few virtual machines do); --cpu-counters "
           "software works anywhere";
  if (base::is_permission_error(error))
    return "it counts in the kernel, which kernel.perf_event_paranoid forbids (set it to 1)";
  return std::strerror(error);
}

}  // namespace

bool is_in_time(const Sample& sample, std::int64_t now_ns) {
  const std::int64_t limit_ns = sample.stayed ? kLateOnCore_ns : kLate_ns;
  const bool has_left = sample.stayed && sample.preempted_ns >= 0;
  const std::int64_t moment_ns = has_left ? sample.preempted_ns : now_ns;
  return moment_ns - sample.at_ns < limit_ns;
}

Sampler::Sampler(BlockFile file,
                 std::string description,
                 std::uint64_t most_bytes,
                 std::size_t most_stacks)
    : file_(std::move(file)), most_bytes_(most_bytes), most_stacks_(most_stacks) {
  file_.put(wire::cpu::Type::kDescription, description, 0);
  // The one frame for what lies beyond a cut.
  frames_out_.item(as_number(FrameKind::kCut));
  frame_count_ = 1;
}

Sampler::~Sampler() = default;

Sampler::Process& Sampler::process(std::uint32_t pid) {
  const auto [entry, added] = processes_.try_emplace(pid);
  if (added)
    entry->second.own_pid = own_number("/proc/" + std::to_string(pid) + "/status", pid);
  return entry->second;
}

Sampler::Thread& Sampler::thread(std::uint32_t pid, std::uint32_t tid) {
  Thread& thread = threads_[tid];
  thread.pid = pid;
  return thread;
}

std::uint32_t Sampler::number_of(Thread& thread, std::uint32_t tid) {
  if (thread.number != kNone)
    return thread.number;
  thread.number = ++thread_count_;
  const Process& owner = process(thread.pid);
  thread.own_tid = tid;
  if (owner.own_pid != thread.pid) {
    const std::string task = std::to_string(thread.pid) + "/task/" + std::to_string(tid);
    thread.own_tid = own_number("/proc/" + task + "/status", tid);
  }
  const std::string& name = thread.name.empty() ? owner.name : thread.name;
  threads_out_.item(thread.pid, tid, owner.own_pid, thread.own_tid, name);
  // One that was not seen yet comes with no more than its number: chains of creators are of no use.
  const auto creator = threads_.find(thread.creator);
  if (thread.creator == 0 || creator == threads_.end())
    return thread.number;
  const std::uint32_t number = thread.number;
  if (creator->second.number == kNone)
    creator->second.creator = 0;
  creators_out_.item(number - 1, number_of(creator->second, thread.creator) - 1);
  return number;
}

void Sampler::mapped(const Mapped& mapped) {
  if (!mapped.executable)
    return;
  Space& space = process(mapped.pid).space;
  space.map({mapped.start,
             mapped.start + mapped.length,
             mapped.offset,
             &modules_.find(mapped.path, mapped.pid)});
  forgot_code_ |= space.forgot();
}

void Sampler::named(const Task& task, std::string_view name, bool exec) {
  Process& owner = process(task.pid);
  if (exec) {
    exec_ns_ = now_ns();
    owner.python.reset();
    owner.unread_python = {};
    owner.look_again_ns = 0;
    owner.space.clear();
    owner.name = name;
    if (on_exec_)
      on_exec_(task.pid);
  }
  Thread& renamed = thread(task.pid, task.tid);
  renamed.name = name;
  if (exec)
    renamed.number = kNone;  // another program: another thread
}

void Sampler::forked(const Task& task, std::int64_t at_ns) {
  Thread& born = threads_[task.tid];
  born = {};
  born.pid = task.pid;
  if (task.pid == task.parent_pid)
    born.creator = task.parent_tid;
  born.out_since_ns = at_ns;
  born.kind = WaitKind::kPreempted;
  born.preempted = born.born = true;
  if (task.pid == task.parent_pid)
    return;
  processes_.erase(task.pid);
  Process& child = process(task.pid);
  child.parent_pid = task.parent_pid;
  child.start_ns = at_ns;
  if (const auto parent = processes_.find(task.parent_pid); parent != processes_.end()) {
    child.space = parent->second.space;
    child.name = parent->second.name;
  }
}

void Sampler::found(std::uint32_t pid, std::uint32_t parent_pid, std::string_view name) {
  Process& owner = process(pid);
  owner.parent_pid = parent_pid;
  if (owner.name.empty())
    owner.name = name;
}

void Sampler::window_begins(std::int64_t at_ns, const std::function<bool(const Task&)>& asleep) {
  begun_ns_ = from_ns_ = at_ns;
  for (auto& [tid, thread] : threads_)
    if (thread.out_since_ns < 0 && asleep({thread.pid, tid}))
      thread.out_since_ns = at_ns;
}

void Sampler::ended(const Task& task, std::int64_t at_ns) {
  if (const auto entry = threads_.find(task.tid); entry != threads_.end()) {
    Thread& gone = entry->second;
    wait_ended(gone, task.tid, at_ns);
    if (gone.born)
      ++short_lives_;
    if (gone.on_since_ns >= 0)
      gone.ran_ns += at_ns - gone.on_since_ns;
    if (gone.born && !gone.sampled && at_ns >= from_ns_)
      ++short_threads_, short_threads_ns_ += gone.ran_ns;
    threads_.erase(entry);
  }
  const auto owner = processes_.find(task.pid);
  if (owner == processes_.end())
    return;
  owner->second.main_ended |= task.tid == task.pid;  // others may run on
  if (!owner->second.main_ended)
    return;
  const bool has_threads = std::ranges::any_of(
      threads_, [&](const auto& entry) { return entry.second.pid == task.pid; });
  if (!has_threads) {
    put_process(task.pid, owner->second, at_ns);
    processes_.erase(owner);
  }
}

// The program's own first process was forked before its events were on: it begins with the file.
void Sampler::put_process(std::uint32_t pid, const Process& process, std::int64_t at_ns) {
  const bool has_ended_before =
      process.name.empty() && process.start_ns < 0;  // its last thread leaves the CPU after its end
  if (full_ || pid == 0 || has_ended_before || at_ns < from_ns_)
    return;
  std::int64_t start_ns = begun_ns_;
  if (process.start_ns >= 0)
    start_ns = std::max(process.start_ns, from_ns_);
  processes_out_.item(pid,
                      process.parent_pid,
                      static_cast<std::uint64_t>(start_ns),
                      static_cast<std::uint64_t>(std::max<std::int64_t>(0, at_ns - start_ns)),
                      process.name);
}

void Sampler::leaves(const Sample& sample) {
  if (sample.tid == 0 || full_)
    return;
  Thread& leaving = thread(sample.pid, sample.tid);
  Process& owner = process(sample.pid);
  leaving.path = 0;
  leaving.left_with_registers = sample.registers;
  leaving.call = calls_.at(owner.space, sample, leaving.path);
  std::copy(std::begin(sample.values), std::end(sample.values), leaving.registers);
}

/// What a thread waits for that was in this call; in none it waits for a page of memory.
WaitKind Sampler::kind_of(const Process& process, const std::optional<SystemCall>& call) {
  if (!call)
    return WaitKind::kIo;
  const WaitKind kind = kind_of_call(*call);
  const bool is_gil =
      kind == WaitKind::kLock && process.python && process.python->holds(call->first);
  return is_gil ? WaitKind::kGil : kind;
}

void Sampler::switched(const Task& task, std::int64_t at_ns, bool out, bool preempted) {
  if (task.tid == 0)
    return;
  Thread& switching = thread(task.pid, task.tid);
  const bool first = switching.switched_ns < window_ns_;
  switching.switched_ns = at_ns;
  if (out && switching.on_since_ns >= 0)
    switching.ran_ns += at_ns - switching.on_since_ns;
  switching.on_since_ns = out ? -1 : at_ns;
  if (!out) {
    // It left its core while switches were not watched, for what it leaves it for mostly.
    if (thinned_ && first && switching.out_since_ns < 0)
      switching.out_since_ns = window_ns_;
    return wait_ended(switching, task.tid, at_ns);
  }
  switching.out_since_ns = at_ns;
  switching.looked = false;
  switching.stack = switching.holder = kNone;
  switching.kind = WaitKind::kOther;
  if (preempted) {
    switching.kind = WaitKind::kPreempted;
  } else if (switching.left_with_registers) {
    switching.kind = kind_of(process(task.pid), switching.call);
    const bool is_lock = switching.kind == WaitKind::kLock || switching.kind == WaitKind::kGil;
    if (is_lock)
      switching.stack = known_stack_of_wait(switching);
    if ((switching.path != 0 || is_lock) && ask_.size() < kMostAsked)
      ask_.push_back(task.tid);
  }
  switching.preempted = preempted;
  switching.by_registers = std::exchange(switching.left_with_registers, false);
}

void Sampler::wait_ended(Thread& thread, std::uint32_t tid, std::int64_t at_ns) {
  if (thread.out_since_ns < 0)
    return;
  const std::int64_t since = std::max(thread.out_since_ns, from_ns_);
  thread.out_since_ns = -1;
  if (full_ || at_ns <= since)
    return;
  const std::uint32_t number = number_of(thread, tid);
  // One that began before the window in which it ended was seen whole, or is as long as it seems.
  const bool is_one_of_many = thinned_ && since >= window_ns_;
  const std::uint64_t stands_for_more = is_one_of_many ? wire::cpu::kStandsForMore : 0;
  waits_out_.item(At{since},
                  static_cast<std::uint64_t>(at_ns - since),
                  number - 1,
                  as_number(thread.kind) | stands_for_more,
                  thread.stack);
  if (thread.holder != kNone)
    holders_out_.item(At{since}, number - 1, thread.holder - 1);
  if (waits_out_.items() >= kFlushItems)
    flush();
}

// Switches come too fast to record them all: they are recorded for short windows. A thread that
// switched within the window that ends here is taken to go on as it did, at a scale; one that only
// slept goes on sleeping, until a switch or a sample shows otherwise.
void Sampler::watching_ends(std::int64_t at_ns) {
  blind_since_ns_ = at_ns;
  for (auto& [tid, thread] : threads_) {
    thread.on_since_ns = -1;
    thread.left_out =
        thread.out_since_ns >= 0 && thread.switched_ns >= std::max(window_ns_, at_ns - kRecent_ns);
    if (thread.left_out)
      wait_ended(thread, tid, at_ns);
  }
}

void Sampler::watching_begins(std::int64_t at_ns) {
  thinned_ = true;
  window_ns_ = at_ns;
  for (auto& [tid, thread] : threads_)
    if (std::exchange(thread.left_out, false))
      thread.out_since_ns = at_ns;
  blind_out_.item(At{blind_since_ns_}, static_cast<std::uint64_t>(at_ns - blind_since_ns_));
  blind_since_ns_ = -1;
}

std::uint32_t Sampler::native_frame(const Place& place) {
  const auto [entry, added] =
      frames_.try_emplace({place.module->number + 1u, place.address}, frame_count_);
  if (!added)
    return entry->second;
  frames_out_.item(as_number(FrameKind::kNative), place.module->number + 1u, place.address);
  return frame_count_++;
}

std::uint32_t Sampler::below(std::uint32_t parent, std::uint32_t frame) {
  const auto [entry, added] =
      stacks_.try_emplace(std::uint64_t{parent} << 32 | frame, stack_count_ + 1);
  if (!added)
    return entry->second;
  stacks_out_.item(parent, frame);
  return ++stack_count_;
}

std::uint32_t Sampler::python_frame(const PythonCode& code, std::uint32_t line) {
  std::uint32_t& number = code.frames[line];
  if (number != 0)
    return number;
  const auto [entry, added] = python_frames_.try_emplace(
      fmt::format("{}\n{}\n{}\n{}", code.name, code.file, code.line, line), frame_count_);
  number = entry->second;
  if (!added)
    return entry->second;
  if (line > 0)
    lines_out_.item(frame_count_, line);
  python_text_ += entry->first.size();
  frames_out_.item(as_number(FrameKind::kPython), code.name, redactor_.text(code.file), code.line);
  return frame_count_++;
}

void Sampler::find_python(Process& process, std::uint32_t pid, std::int64_t now_ns) {
  if (process.python || now_ns < process.look_again_ns)
    return;
  const bool is_new = now_ns - exec_ns_ < 2'000'000'000;  // it may not have begun
  process.look_again_ns = now_ns + (is_new ? 20'000'000 : 200'000'000);
  process.python = Python::find(process.space, pid, process.unread_python);
  if (!process.unread_python.why.empty())
    process.look_again_ns = INT64_MAX;
  prompt_ |= process.python != nullptr;
  if (process.python)
    note(python_versions_, process.python->version());
}

void Sampler::note_unread_python(Process& process, const Sample& sample) {
  const Python::Unread& unread = process.unread_python;
  if (unread.module == nullptr)
    return;
  const bool has_chain = sample.registers || !sample.chain.empty();  // not where /proc is read
  const bool runs_it = std::ranges::any_of(unwound_.addresses, [&](std::uint64_t address) {
    const Area* area = process.space.find(address);
    return area != nullptr && area->module == unread.module;
  });
  if (has_chain && !runs_it)
    return;
  note(python_unread_, unread.why);
  process.unread_python.module = nullptr;
}

void Sampler::read_python(
    Process& process, std::uint32_t pid, Thread& thread, std::uint32_t tid, std::int64_t now_ns) {
  python_.clear();
  unread_ = false;
  find_python(process, pid, now_ns);
  if (!process.python)
    return;
  number_of(thread, tid);
  // Also one that Python does not know (yet): stack_of() asks whether it is in the interpreter's
  // loop.
  unread_ = process.python->frames(thread.own_tid, python_) != Python::Reading::kRead;
}

// Python frames come in groups, each of one call of the interpreter's loop, and take its place in
// the native chain. The outermost belong together: what changed between the sample and the reading
// is the inner end. Other frames of the interpreter say nothing, but for those behind the innermost
// loop: what it is busy with. Where the Python frames were not read the loops are in the chain all
// the same, so that its other frames are at the same places as in other chains.
std::uint32_t Sampler::stack_of(const Process& process) {
  if (crowded())
    return below(kNone, 0);
  const Python* python = python_.empty() && !unread_ ? nullptr : process.python.get();
  std::size_t loops = 0, groups = 0, inner_native = 0;
  if (python != nullptr) {
    for (std::size_t i = unwound_.addresses.size(); i-- > 0;)
      if (python->is_loop(unwound_.addresses[i]) && ++loops > 0)
        inner_native = i;
    for (const PythonFrame& frame : python_)
      if (frame.entry)
        ++groups;
    unread_ = unread_ && loops > 0;
  }
  // Where code of a JIT compiler was passed, frames of the loop may be among those that were: it is
  // cut, and does not say so.
  const bool cut = unwound_.cut || (unwound_.guessed && !unread_ && groups > loops);
  std::uint32_t stack = cut ? below(kNone, 0) : kNone;
  std::uint32_t last = kNone;  // the frame that was put last, of those that were not read
  std::size_t next =
      unread_ ? loops : python_.size();  // Python frames from here on are in the chain
  const auto group = [&] {
    if (unread_) {
      if (const std::uint32_t frame = python_frame(not_read_, 0); frame != last)
        stack = below(stack, last = frame);
      return;
    }
    for (bool first = true; next > 0 && (first || !python_[next - 1].entry) && next-- > 0;
         first = false)
      stack = below(stack, python_frame(*python_[next].code, python_[next].line));
  };
  // A chain that was cut lacks the outer loops.
  for (; python != nullptr && cut && groups > loops; --groups)
    group();
  for (std::size_t i = unwound_.addresses.size(); i-- > 0;) {
    const std::uint64_t address = unwound_.addresses[i];
    if (python != nullptr && python->is_loop(address) && next > 0) {
      group();
      continue;
    }
    const Place place = place_of(process.space, named_address(process.python.get(), address));
    if (place.module == nullptr)
      continue;
    const bool outer = python != nullptr && loops > 0 && i > inner_native;
    if (outer && (place.module == python->module() || !place.module->file()))
      continue;
    stack = below(stack, native_frame(place));
    last = kNone;
  }
  while (python != nullptr && loops == 0 && next > 0)
    group();
  return stack;
}

void Sampler::go_back_to_sample(const Sample& sample, Python& python, bool in_time) {
  python.note_callers(python_);
  const RunningCode running = running_code(python, unwound_, sample);
  if (running.code == python_.front().code)
    return;
  bool is_of_sample = in_time;
  if (running.code != nullptr)
    is_of_sample = python.go_back(*running.code, running.calls, python_);
  if (is_of_sample)
    return;
  python_.clear();
  unread_ = true;
}

std::uint32_t Sampler::below_kernel(std::uint32_t stack, std::span<const std::uint64_t> chain) {
  Module& kernel = modules_.find(kKernel, 0);
  const std::size_t depth = crowded() ? 0 : chain.size();
  for (std::size_t i = depth; i-- > 0;)
    stack = below(stack, native_frame({&kernel, address_in(chain, i)}));
  if (depth == 0)
    stack = below(stack, native_frame({&kernel, 0}));
  return stack;
}

void Sampler::sample(const Sample& sample) {
  if (full_ || sample.at_ns < from_ns_)
    return;
  Process& owner = process(sample.pid);
  Thread& running = thread(sample.pid, sample.tid);
  if (blind_since_ns_ >= 0) {  // it runs, whatever it did when it was seen last
    running.left_out = false;
    wait_ended(running, sample.tid, blind_since_ns_);
  }
  const bool has_never_switched = running.born && running.switched_ns < 0;
  if (has_never_switched)  // its switches are not recorded, so neither is how long it waited
    running.out_since_ns = -1;
  running.sampled = true;
  const std::int64_t now = now_ns();
  const bool in_time = is_in_time(sample, now);
  if (in_time || now - sample.at_ns < kLateOnCore_ns) {
    read_python(owner, sample.pid, running, sample.tid, now);
  } else {
    find_python(owner, sample.pid, now);
    python_.clear();
    unread_ = owner.python != nullptr;
  }
  unwind(owner.space, sample, unwound_);
  if (!sample.registers && sample.chain.empty())
    unwound_ = {};  // of Polls
  if (unwound_.cut && sample.stack.size() >= kWholeCopy) {
    prompt_ = true;
    if (in_time)
      unwind_further(owner.space, sample);
  }
  note_unread_python(owner, sample);
  if (owner.python && !python_.empty())
    go_back_to_sample(sample, *owner.python, in_time);
  std::uint32_t stack = stack_of(owner);
  if (unread_ || !python_.empty())
    ++python_due_;
  if (unread_)
    ++python_lost_;
  if (sample.kernel)
    stack = below_kernel(stack, sample.in_kernel);
  samples_out_.item(At{sample.at_ns}, number_of(running, sample.tid) - 1, stack);
  ++samples_;
  if (samples_out_.items() >= kFlushItems)
    flush();
}

void Sampler::counted(const Task& task, std::int64_t at_ns, std::uint32_t counter) {
  if (full_)
    return;
  counts_out_.item(At{at_ns}, number_of(thread(task.pid, task.tid), task.tid) - 1, counter);
  if (counts_out_.items() >= kFlushItems)
    flush();
}

void Sampler::describe(std::span<const CounterEvent> counters, std::span<const int> refused) {
  Packer out;
  std::map<int, std::vector<std::string>> missing;
  for (std::size_t c = 0; c < counters.size(); ++c) {
    out.item(counters[c].name, counters[c].period, refused[c] == 0 ? 1u : 0u);
    if (refused[c] != 0)
      missing[refused[c]].push_back(counters[c].name);
  }
  put(wire::cpu::kCounters, out);
  std::string why;
  std::uint32_t count = 0;
  for (const auto& [error, names] : missing) {
    count += static_cast<std::uint32_t>(names.size());
    if (!why.empty())
      why += "; ";
    why += base::join(names, ", ") + ": " + why_not_counted(error);
  }
  if (count > 0)
    file_.event(wire::cpu::kNotCounted, why, count);
}

// Appends what lies at an address to the copied stack, as far as there is memory.
void Sampler::read_stack(std::uint32_t tid, std::uint64_t from, std::size_t max_bytes) {
  constexpr std::size_t kPage = 4096;
  std::vector<iovec> pages;  // a page that is not there ends the reading
  for (std::size_t bytes = 0; bytes < max_bytes; bytes += pages.back().iov_len)
    pages.push_back({reinterpret_cast<void*>(from + bytes),
                     std::min(kPage - ((from + bytes) & (kPage - 1)), max_bytes - bytes)});
  const std::size_t before = stack_.size();
  stack_.resize(before + max_bytes);
  const iovec local{stack_.data() + before, max_bytes};
  const ssize_t read =
      ::process_vm_readv(static_cast<pid_t>(tid), &local, 1, pages.data(), pages.size(), 0);
  stack_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
}

// Frames that the kernel's copy of the stack does not reach (64 KiB at most; a call of cuBLASLt
// takes more) are far from what runs, and are read as Python's are.
void Sampler::unwind_further(const Space& space, const Sample& sample) {
  stack_.assign(sample.stack.begin(), sample.stack.end());
  read_stack(sample.tid, sample.values[kRsp] + stack_.size(), kBeyond);
  Sample longer = sample;
  longer.stack = stack_;
  unwind(space, longer, longer_);
  if (!longer_.cut)
    std::swap(longer_, unwound_);
}

void Sampler::put(wire::samples::Type type, Packer& packer) {
  if (packer.items() > 0)
    file_.put(type, packer.bytes(), packer.items());
  packer.clear();
}

void Sampler::flush() {
  Packer modules;
  for (; modules_written_ < modules_.all().size(); ++modules_written_) {
    const Module& module = *modules_.all()[modules_written_];
    std::string build_id;
    if (module.opened() != nullptr)
      build_id = module.opened()->build_id();
    modules.item(redactor_.text(module.path), build_id);
  }
  put(wire::cpu::kThreads, threads_out_);
  put(wire::cpu::kCreators, creators_out_);
  put(wire::cpu::kModules, modules);
  put(wire::cpu::kFrames, frames_out_);
  put(wire::cpu::kLines, lines_out_);
  put(wire::cpu::kStacks, stacks_out_);
  // Each block can be read by itself, so that one that is torn takes no other with it.
  put(wire::cpu::kSamples, samples_out_);
  put(wire::cpu::kWaits, waits_out_);
  put(wire::cpu::kCounts, counts_out_);
  for (auto& [pid, process] : processes_) {
    if (process.written)
      continue;
    process.written = true;
    put_process(pid, process, now_ns());
  }
  put(wire::cpu::kProcesses, processes_out_);
  put(wire::cpu::kBlind, blind_out_);
  put(wire::cpu::kHolders, holders_out_);
  if (!full_ && file_.bytes() > most_bytes_) {
    full_ = true;
    file_.event(wire::cpu::kBounded, "the file of CPU samples reached its size limit", 1);
  }
}

void Sampler::finish(std::int64_t now_ns,
                     const std::filesystem::path& cache,
                     std::int64_t own_cpu_ns,
                     std::span<const CounterTotal> totals) {
  if (blind_since_ns_ >= 0)
    watching_begins(now_ns);
  for (auto& [tid, waiting] : threads_)
    wait_ended(waiting, tid, now_ns);
  for (const auto& [pid, process] : processes_)
    put_process(pid, process, now_ns);
  flush();
  Packer sums;
  for (const CounterTotal& total : totals)
    sums.item(total.count, total.running_ns, total.possible_ns);
  put(wire::cpu::kTotals, sums);
  if (crowded())
    file_.event(wire::cpu::kBounded, "too many distinct stacks", 1);
  if (forgot_code_ || modules_.crowded())
    file_.event(wire::cpu::kBounded, "too many distinct code addresses", 1);
  if (python_lost_ > 0)
    file_.event(wire::cpu::kPythonLate,
                std::to_string(python_due_),
                static_cast<std::uint32_t>(python_lost_));
  if (short_threads_ > 0)
    file_.event(wire::cpu::kShortThreads,
                std::to_string(short_threads_ns_),
                static_cast<std::uint32_t>(short_threads_));
  if (throttled_ > 0)
    file_.event(wire::cpu::kThrottled, "", static_cast<std::uint32_t>(throttled_));
  for (const std::string& why : python_unread_)
    file_.event(wire::cpu::kPythonUnread, redactor_.text(why), 1);
  name_frames(cache);
  std::string python;
  for (const std::string& version : python_versions_)
    python += "python " + version + " structures\n";
  file_.put(wire::samples::Type::kEnd,
            "cpu_ns " + std::to_string(own_cpu_ns) + "\nlost " + std::to_string(lost_) +
                "\nsamples " + std::to_string(samples_) + "\npython_late " +
                std::to_string(python_lost_) + "\n" + python,
            0);
}

void Sampler::name_frames(const std::filesystem::path& cache) {
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint32_t>>> by_module;
  for (const auto& [key, frame] : frames_)
    if (key.module != 0)
      by_module[key.module - 1].emplace_back(key.address, frame);
  for (auto& [number, frames] : by_module) {
    std::ranges::sort(frames);
    std::vector<std::uint64_t> addresses;
    for (const auto& [address, frame] : frames)
      addresses.push_back(address);
    const Module& module = *modules_.all()[number];
    std::size_t unnamed = 0;
    const auto named = names_of_module(module, addresses, cache, unnamed);
    if (unnamed > 0)
      file_.event(wire::cpu::kBounded,
                  "naming functions of " + redactor_.text(module.path) +
                      " exceeds its memory or time limit",
                  1);
    Packer out;
    const auto write = [&] {
      put(wire::cpu::kSymbols, out);
      put(wire::cpu::kLines, lines_out_);
    };
    std::size_t next = 0;
    for (const Named& name : named) {
      while (next < frames.size() && frames[next].first < name.address)
        ++next;
      if (next == frames.size() || frames[next].first != name.address)
        continue;
      const std::uint32_t frame = frames[next].second;
      out.number(frame);
      out.number(name.functions.size());
      for (const Function& function : name.functions) {
        out.text(function.name);
        out.text(redactor_.text(function.file));
        out.number(function.line);
      }
      out.item();
      lines_out_.number(frame);
      for (const Function& function : name.functions)
        lines_out_.number(function.line_of_address);
      lines_out_.item();
      if (out.bytes().size() > (1u << 20))
        write();
    }
    write();
  }
}

}  // namespace rangescope::sample::cpu
