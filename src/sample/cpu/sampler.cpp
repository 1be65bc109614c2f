#include "sample/cpu/sampler.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "base/text.hpp"
#include "sample/cpu/names.hpp"

namespace rangescope::sample::cpu {
namespace {

using wire::cpu::FrameKind;
using wire::cpu::Packer;
using wire::cpu::WaitKind;

/// A wait shorter than this is not looked at: nobody asks what it was.
constexpr std::int64_t kLongWait_ns = 2'000'000;
/// A sample that waited longer for us is of another moment than the one that we could read Python's frames at: on a
/// busy machine the thread stands in a system call then, more often than it did.
constexpr std::int64_t kLate_ns = 100'000;
constexpr std::size_t kWaitingStack = 32 << 10;
/// A copy of a stack from this size on may be one that the kernel cut; what is read behind it at most.
constexpr std::size_t kWholeCopy = 30 << 10, kBeyond = 192 << 10;
constexpr std::size_t kFlushItems = 8192;

/// The innermost number of a line "NSpid: 4711 12"; `pid` itself where there is none.
std::uint32_t own_number(const std::string& status, std::uint32_t pid) {
  std::ifstream file(status);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("NSpid:")) continue;
    const auto words = base::split(line, '\t');
    return static_cast<std::uint32_t>(base::to_uint(words.back()).value_or(pid));
  }
  return pid;
}

/// By the system call; one that waits for no file sleeps.
WaitKind kind_of_call(long number, std::uint64_t first, std::uint64_t second) {
  switch (number) {
    case SYS_pselect6:
#if defined(SYS_select)
    case SYS_select:
#endif
      return first == 0 ? WaitKind::kSleep : WaitKind::kIo;
    case SYS_ppoll:
#if defined(SYS_poll)
    case SYS_poll:
#endif
      return second == 0 ? WaitKind::kSleep : WaitKind::kIo;
    case SYS_futex:
#if defined(SYS_futex_waitv)
    case SYS_futex_waitv:
#endif
    case SYS_flock:
    case SYS_semop:
    case SYS_semtimedop: return WaitKind::kLock;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
#if defined(SYS_pause)
    case SYS_pause:
#endif
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait: return WaitKind::kSleep;
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_copy_file_range:
    case SYS_msync:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_sendmsg:
    case SYS_recvmsg:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_openat:
    case SYS_ioctl:
    case SYS_io_getevents:
    case SYS_io_uring_enter:
    case SYS_epoll_pwait:
#if defined(SYS_epoll_wait)
    case SYS_epoll_wait:
#endif
      return WaitKind::kIo;
    default: return WaitKind::kOther;
  }
}

}  // namespace

Sampler::Sampler(BlockFile file, std::string description, std::uint64_t most_bytes, std::size_t most_stacks)
    : file_(std::move(file)), most_bytes_(most_bytes), most_stacks_(most_stacks) {
  file_.put(wire::cpu::Type::kDescription, description, 0);
  // The one frame for what lies beyond a cut.
  frames_out_.number(static_cast<std::uint64_t>(FrameKind::kCut));
  frames_out_.item();
  frame_count_ = 1;
}

Sampler::~Sampler() = default;

Sampler::Process& Sampler::process(std::uint32_t pid) {
  const auto [at, added] = processes_.try_emplace(pid);
  if (added) at->second.own_pid = own_number("/proc/" + std::to_string(pid) + "/status", pid);
  return at->second;
}

Sampler::Thread& Sampler::thread(std::uint32_t pid, std::uint32_t tid) {
  Thread& thread = threads_[tid];
  thread.pid = pid;
  return thread;
}

std::uint32_t Sampler::number_of(Thread& thread, std::uint32_t tid) {
  if (thread.number != kNone) return thread.number;
  thread.number = ++thread_count_;
  const Process& owner = process(thread.pid);
  const std::uint32_t own_tid =
      owner.own_pid == thread.pid
          ? tid
          : own_number("/proc/" + std::to_string(thread.pid) + "/task/" + std::to_string(tid) + "/status", tid);
  thread.own_tid = own_tid;
  for (const std::uint32_t number : {thread.pid, tid, owner.own_pid, own_tid}) threads_out_.number(number);
  threads_out_.text(thread.name.empty() ? owner.name : thread.name);
  threads_out_.item();
  return thread.number;
}

void Sampler::mapped(const Mapped& mapped) {
  if (!mapped.executable) return;
  process(mapped.pid)
      .space.map({mapped.start, mapped.start + mapped.length, mapped.offset, &modules_.find(mapped.path, mapped.pid)});
}

void Sampler::named(const Task& task, std::string_view name, bool exec) {
  Process& owner = process(task.pid);
  if (exec) {
    owner.python.reset();
    owner.look_again_ns = 0;
    owner.space.clear();
    owner.name = name;
  }
  Thread& known = thread(task.pid, task.tid);
  known.name = name;
  if (exec) known.number = kNone;  // another program: another thread
}

void Sampler::forked(const Task& task, std::int64_t at_ns) {
  Thread& born = threads_[task.tid];
  born = {};
  born.pid = task.pid;
  born.out_since_ns = at_ns;
  born.preempted = true;
  if (task.pid == task.parent_pid) return;
  processes_.erase(task.pid);
  Process& child = process(task.pid);
  if (const auto parent = processes_.find(task.parent_pid); parent != processes_.end()) {
    child.space = parent->second.space;
    child.name = parent->second.name;
  }
}

void Sampler::ended(const Task& task, std::int64_t at_ns) {
  if (const auto at = threads_.find(task.tid); at != threads_.end()) {
    wait_ended(at->second, task.tid, at_ns);
    threads_.erase(at);
  }
  const auto owner = processes_.find(task.pid);
  if (owner == processes_.end()) return;
  owner->second.main_ended |= task.tid == task.pid;  // others may run on
  if (owner->second.main_ended &&
      std::none_of(threads_.begin(), threads_.end(), [&](const auto& each) { return each.second.pid == task.pid; }))
    processes_.erase(owner);
}

void Sampler::switched(const Task& task, std::int64_t at_ns, bool out, bool preempted) {
  if (task.tid == 0) return;
  Thread& known = thread(task.pid, task.tid);
  if (!out) return wait_ended(known, task.tid, at_ns);
  known.out_since_ns = at_ns;
  known.preempted = preempted;
  known.looked = false;
  known.kind = preempted ? WaitKind::kPreempted : WaitKind::kOther;
  known.stack = kNone;
}

void Sampler::wait_ended(Thread& thread, std::uint32_t tid, std::int64_t at_ns) {
  if (thread.out_since_ns < 0) return;
  const std::int64_t since = thread.out_since_ns;
  thread.out_since_ns = -1;
  if (full_ || at_ns <= since) return;
  const std::uint32_t number = number_of(thread, tid);
  waits_out_.difference(since - last_wait_ns_);
  last_wait_ns_ = since;
  waits_out_.number(static_cast<std::uint64_t>(at_ns - since));
  waits_out_.number(number - 1);
  waits_out_.number(static_cast<std::uint64_t>(thread.preempted ? WaitKind::kPreempted : thread.kind));
  waits_out_.number(thread.stack);
  waits_out_.item();
  if (waits_out_.items() >= kFlushItems) flush();
}

std::uint32_t Sampler::native_frame(const Place& place) {
  const auto [at, added] = frames_.try_emplace({place.module->number + 1u, place.address}, frame_count_);
  if (!added) return at->second;
  frames_out_.number(static_cast<std::uint64_t>(FrameKind::kNative));
  frames_out_.number(place.module->number + 1u);
  frames_out_.number(place.address);
  frames_out_.item();
  return frame_count_++;
}

std::uint32_t Sampler::below(std::uint32_t parent, std::uint32_t frame) {
  const auto [at, added] = stacks_.try_emplace(std::uint64_t{parent} << 32 | frame, stack_count_ + 1);
  if (!added) return at->second;
  stacks_out_.number(parent);
  stacks_out_.number(frame);
  stacks_out_.item();
  return ++stack_count_;
}

std::uint32_t Sampler::python_frame(const PythonCode& code) {
  if (code.frame != 0) return code.frame;
  const auto [at, added] =
      python_frames_.try_emplace(code.name + '\n' + code.file + '\n' + std::to_string(code.line), frame_count_);
  code.frame = at->second;
  if (!added) return at->second;
  frames_out_.number(static_cast<std::uint64_t>(FrameKind::kPython));
  frames_out_.text(code.name);
  frames_out_.text(code.file);
  frames_out_.number(code.line);
  frames_out_.item();
  return frame_count_++;
}

void Sampler::read_python(Process& process, std::uint32_t pid, Thread& thread, std::uint32_t tid, std::int64_t now_ns) {
  python_.clear();
  if (!process.python && now_ns >= process.look_again_ns) {
    process.look_again_ns = now_ns + 200'000'000;  // it may not have begun
    std::string why;
    process.python = Python::find(process.space, pid, why);
    const auto note = [](std::vector<std::string>& list, const std::string& text) {
      if (list.size() < 16 && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
    };
    if (!why.empty()) {
      note(python_unread_, why);
      process.look_again_ns = INT64_MAX;
    }
    if (process.python) note(python_versions_, process.python->version());
  }
  if (!process.python) return;
  number_of(thread, tid);
  if (!process.python->frames(thread.own_tid, python_)) python_.clear();
}

// Python frames come in groups, each of one call of the interpreter's loop, and take its place in the native chain. The
// outermost belong together: what changed between the sample and the reading is the inner end. Other frames of the
// interpreter say nothing, but for those behind the innermost loop: what it is busy with.
std::uint32_t Sampler::stack_of(const Process& process) {
  std::uint32_t stack = kNone;
  if (unwound_.cut || crowded()) stack = below(kNone, 0);
  if (crowded()) return stack;
  const Python* python = python_.empty() ? nullptr : process.python.get();
  std::size_t loops = 0, groups = 0, inner_native = 0;
  if (python != nullptr) {
    for (std::size_t i = unwound_.addresses.size(); i-- > 0;)
      if (python->is_loop(unwound_.addresses[i]) && ++loops > 0) inner_native = i;
    for (const PythonFrame& frame : python_) groups += frame.entry ? 1 : 0;
  }
  std::size_t next = python_.size();  // Python frames from here on are in the chain
  const auto group = [&] {
    for (bool first = true; next > 0 && (first || !python_[next - 1].entry); first = false)
      stack = below(stack, python_frame(*python_[--next].code));
  };
  // A chain that was cut lacks the outer loops.
  for (; python != nullptr && unwound_.cut && groups > loops; --groups) group();
  for (std::size_t i = unwound_.addresses.size(); i-- > 0;) {
    const std::uint64_t address = unwound_.addresses[i];
    if (python != nullptr && python->is_loop(address) && next > 0) {
      group();
      continue;
    }
    const Place place = place_of(process.space, process.python ? process.python->named(address) : address);
    if (place.module == nullptr) continue;
    const bool outer = python != nullptr && loops > 0 && i > inner_native;
    if (outer && (place.module == python->module() || !place.module->file())) continue;
    stack = below(stack, native_frame(place));
  }
  while (python != nullptr && loops == 0 && next > 0) group();
  return stack;
}

void Sampler::sample(const Sample& sample) {
  if (full_) return;
  Process& owner = process(sample.pid);
  Thread& of = thread(sample.pid, sample.tid);
  const std::int64_t now = now_ns();
  python_.clear();
  const bool in_time = now - sample.at_ns < kLate_ns;
  if (in_time)
    read_python(owner, sample.pid, of, sample.tid, now);
  else if (owner.python)
    ++late_;
  unwind(owner.space, sample, unwound_);
  if (unwound_.cut && in_time && sample.stack.size() >= kWholeCopy) unwind_further(owner.space, sample);
  std::uint32_t stack = stack_of(owner);
  if (sample.kernel) stack = below(stack, native_frame({&modules_.find("[kernel]", 0), 0}));
  samples_out_.difference(sample.at_ns - last_sample_ns_);
  last_sample_ns_ = sample.at_ns;
  samples_out_.number(number_of(of, sample.tid) - 1);
  samples_out_.number(stack);
  samples_out_.item();
  ++samples_;
  if (samples_out_.items() >= kFlushItems) flush();
}

void Sampler::counted(const Task& task, std::int64_t at_ns, std::uint32_t counter) {
  if (full_) return;
  counts_out_.difference(at_ns - last_count_ns_);
  last_count_ns_ = at_ns;
  counts_out_.number(number_of(thread(task.pid, task.tid), task.tid) - 1);
  counts_out_.number(counter);
  counts_out_.item();
  if (counts_out_.items() >= kFlushItems) flush();
}

void Sampler::describe(std::span<const CounterEvent> counters, std::span<const int> refused) {
  Packer out;
  std::map<int, std::vector<std::string>> missing;
  for (std::size_t c = 0; c < counters.size(); ++c) {
    out.text(counters[c].name);
    out.number(counters[c].period);
    out.number(refused[c] == 0 ? 1 : 0);
    out.item();
    if (refused[c] != 0) missing[refused[c]].push_back(counters[c].name);
  }
  put(wire::cpu::kCounters, out);
  std::string why;
  std::uint32_t count = 0;
  for (const auto& [error, names] : missing) {
    count += static_cast<std::uint32_t>(names.size());
    why += (why.empty() ? "" : "; ") + base::join(names, ", ") + ": ";
    if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP)
      why +=
          "this machine gives no such counter to programs, as most virtual machines do; --cpu-counters software counts "
          "anywhere";
    else if (error == EACCES || error == EPERM)
      why += "counted in the kernel, which kernel.perf_event_paranoid forbids (set it to 1)";
    else
      why += std::strerror(error);
  }
  if (count > 0) event(wire::cpu::kNotCounted, why, count);
}

// Appends what lies at an address to the copied stack, as far as there is memory.
void Sampler::read_stack(std::uint32_t pid, std::uint64_t from, std::size_t most) {
  constexpr std::size_t kPage = 4096;
  std::vector<iovec> pages;  // a page that is not there ends the reading
  for (std::size_t bytes = 0; bytes < most; bytes += pages.back().iov_len)
    pages.push_back(
        {reinterpret_cast<void*>(from + bytes), std::min(kPage - ((from + bytes) & (kPage - 1)), most - bytes)});
  const std::size_t before = stack_.size();
  stack_.resize(before + most);
  const iovec local{stack_.data() + before, most};
  const ssize_t read = ::process_vm_readv(static_cast<pid_t>(pid), &local, 1, pages.data(), pages.size(), 0);
  stack_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
}

// Frames that the kernel's copy of the stack does not reach (64 KiB at most; a call of cuBLASLt takes more) are far
// from what runs, and are read as Python's are.
void Sampler::unwind_further(const Space& space, const Sample& sample) {
  stack_.assign(sample.stack.begin(), sample.stack.end());
  read_stack(sample.pid, sample.values[kRsp] + stack_.size(), kBeyond);
  Sample longer = sample;
  longer.stack = stack_;
  unwind(space, longer, longer_);
  if (!longer_.cut) std::swap(longer_, unwound_);
}

void Sampler::look_at_waits(std::int64_t now_ns) {
  int most = 16;  // each costs some microseconds
  for (auto& [tid, waiting] : threads_) {
    if (waiting.out_since_ns < 0 || waiting.preempted || waiting.looked || now_ns - waiting.out_since_ns < kLongWait_ns)
      continue;
    if (most-- == 0) break;
    waiting.looked = true;
    const std::string place = "/proc/" + std::to_string(waiting.pid) + "/task/" + std::to_string(tid) + "/syscall";
    std::FILE* file = std::fopen(place.c_str(), "re");
    if (file == nullptr) continue;
    char line[256];
    const bool read = std::fgets(line, sizeof line, file) != nullptr;
    std::fclose(file);
    long number = -1;
    std::uint64_t first = 0, second = 0, stack = 0, at = 0;
    // number, six arguments, stack pointer, address; "running" where it runs again
    if (!read || std::sscanf(line, "%ld %" SCNx64 " %" SCNx64 " %*s %*s %*s %*s %" SCNx64 " %" SCNx64, &number, &first,
                             &second, &stack, &at) != 5)
      continue;
    waiting.kind = kind_of_call(number, first, second);
    stack_.clear();
    read_stack(waiting.pid, stack, kWaitingStack);
    Sample sample;
    sample.pid = waiting.pid;
    sample.tid = tid;
    sample.registers = has_tables();
    std::fill(std::begin(sample.values), std::end(sample.values), kUnknownRegister);
    sample.values[kRdi] = first;
    sample.values[kRsi] = second;
    sample.values[kRsp] = stack;
    sample.values[kRip] = at;
    sample.stack = stack_;
    sample.chain = {&at, 1};
    Process& owner = process(waiting.pid);
    read_python(owner, waiting.pid, waiting, tid, now_ns);
    unwind(owner.space, sample, unwound_);
    waiting.stack = stack_of(owner);
  }
}

void Sampler::put(wire::samples::Type type, Packer& packer) {
  if (packer.items() > 0) file_.put(type, packer.bytes(), packer.items());
  packer.clear();
}

void put_event(BlockFile& file, wire::samples::EventKind kind, std::string_view text, std::uint32_t count) {
  const wire::samples::Event event{kind, count, now_ns()};
  std::string raw(sizeof event, '\0');
  std::memcpy(raw.data(), &event, sizeof event);
  raw += text;
  file.put(wire::samples::Type::kEvent, raw, 1);
}

void Sampler::event(wire::samples::EventKind kind, std::string_view text, std::uint32_t count) {
  put_event(file_, kind, text, count);
}

void Sampler::flush() {
  Packer modules;
  for (; modules_written_ < modules_.all().size(); ++modules_written_) {
    const Module& module = *modules_.all()[modules_written_];
    modules.text(module.path);
    modules.text(module.opened() != nullptr ? module.opened()->build_id() : "");
    modules.item();
  }
  put(wire::cpu::kThreads, threads_out_);
  put(wire::cpu::kModules, modules);
  put(wire::cpu::kFrames, frames_out_);
  put(wire::cpu::kStacks, stacks_out_);
  // Each block can be read by itself, so that one that is torn takes no other with it.
  put(wire::cpu::kSamples, samples_out_);
  put(wire::cpu::kWaits, waits_out_);
  put(wire::cpu::kCounts, counts_out_);
  last_sample_ns_ = last_wait_ns_ = last_count_ns_ = 0;
  if (!full_ && file_.bytes() > most_bytes_) {
    full_ = true;
    event(wire::cpu::kBounded, "the file of CPU samples came to its bound", 1);
  }
}

void Sampler::finish(std::int64_t now_ns, const std::filesystem::path& cache, std::int64_t own_cpu_ns,
                     std::span<const CounterTotal> totals) {
  for (auto& [tid, waiting] : threads_) wait_ended(waiting, tid, now_ns);
  flush();
  Packer sums;
  for (const CounterTotal& total : totals) {
    for (const std::uint64_t number : {total.count, total.running_ns, total.possible_ns}) sums.number(number);
    sums.item();
  }
  put(wire::cpu::kTotals, sums);
  if (crowded()) event(wire::cpu::kBounded, "more stacks than are kept apart", 1);
  if (late_ > 0)
    event(wire::cpu::kPythonLate, "of " + std::to_string(samples_) + " samples", static_cast<std::uint32_t>(late_));
  if (throttled_ > 0) event(wire::cpu::kThrottled, "", static_cast<std::uint32_t>(throttled_));
  for (const std::string& why : python_unread_) event(wire::cpu::kPythonUnread, why, 1);
  name_frames(cache);
  std::string python;
  for (const std::string& version : python_versions_) python += "python " + version + " structures\n";
  file_.put(wire::samples::Type::kEnd,
            "cpu_ns " + std::to_string(own_cpu_ns) + "\nlost " + std::to_string(lost_) + "\nsamples " +
                std::to_string(samples_) + "\npython_late " + std::to_string(late_) + "\n" + python,
            0);
}

void Sampler::name_frames(const std::filesystem::path& cache) {
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint32_t>>> by_module;
  for (const auto& [key, frame] : frames_)
    if (key.module != 0) by_module[key.module - 1].emplace_back(key.address, frame);
  for (auto& [number, frames] : by_module) {
    std::sort(frames.begin(), frames.end());
    std::vector<std::uint64_t> addresses;
    for (const auto& [address, frame] : frames) addresses.push_back(address);
    const Module& module = *modules_.all()[number];
    const auto named = names_of_module(module, addresses, cache);
    Packer out;
    std::size_t at = 0;
    for (const Named& name : named) {
      while (at < frames.size() && frames[at].first < name.address) ++at;
      if (at == frames.size() || frames[at].first != name.address) continue;
      out.number(frames[at].second);
      out.number(name.functions.size());
      for (const Function& function : name.functions) {
        out.text(function.name);
        out.text(function.file);
        out.number(function.line);
      }
      out.item();
      if (out.bytes().size() > (1u << 20)) put(wire::cpu::kSymbols, out);
    }
    put(wire::cpu::kSymbols, out);
  }
}

}  // namespace rangescope::sample::cpu
