#include "sample/cpu/dump/dump.hpp"

#include <elf.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/fs.hpp"
#include "base/process_tree.hpp"
#include "base/text.hpp"
#include "sample/blocks.hpp"
#include "sample/cpu/dump/holders.hpp"
#include "sample/cpu/dump/stopped.hpp"
#include "sample/cpu/names.hpp"
#include "sample/cpu/python.hpp"
#include "sample/cpu/space.hpp"
#include "sample/cpu/system_calls.hpp"
#include "sample/cpu/unwind.hpp"

namespace rangescope::sample::cpu {
namespace {

using wire::cpu::WaitKind;

constexpr std::size_t kDumpedStack = 256 << 10;
constexpr std::int64_t kMostStopped_ns = 4'000'000;

struct NamedCall {
  long number;
  const char* name;
  bool has_file;  ///< its first argument is a descriptor
};

/// Calls that threads wait in for long.
constexpr NamedCall kCalls[] = {
    {SYS_futex, "futex", false},
    {SYS_read, "read", true},
    {SYS_write, "write", true},
    {SYS_recvfrom, "recvfrom", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_sendto, "sendto", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_accept, "accept", true},
    {SYS_accept4, "accept4", true},
    {SYS_connect, "connect", true},
    {SYS_ppoll, "ppoll", false},
    {SYS_pselect6, "pselect6", false},
    {SYS_epoll_pwait, "epoll_pwait", false},
    {SYS_flock, "flock", true},
    {SYS_fsync, "fsync", true},
    {SYS_fdatasync, "fdatasync", true},
    {SYS_ioctl, "ioctl", true},
    {SYS_nanosleep, "nanosleep", false},
    {SYS_clock_nanosleep, "clock_nanosleep", false},
    {SYS_wait4, "wait4", false},
    {SYS_waitid, "waitid", false},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", false},
    {SYS_rt_sigsuspend, "rt_sigsuspend", false},
#if defined(__x86_64__)
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_epoll_wait, "epoll_wait", false},
    {SYS_pause, "pause", false},
#endif
};

std::string folder_of_thread(std::uint32_t pid, std::uint32_t tid) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
}

/// The clock of its core when a thread ran last ("se.exec_start : 44888165.413583", ms), where the
/// kernel tells.
std::optional<std::int64_t> last_ran_ns(const std::string& folder) {
  const auto text = base::read_file(folder + "/sched");
  if (!text)
    return std::nullopt;
  const auto key = text->find("se.exec_start");
  if (key == std::string::npos)
    return std::nullopt;
  const auto colon = text->find(':', key);
  if (colon == std::string::npos)
    return std::nullopt;
  return static_cast<std::int64_t>(std::strtod(text->c_str() + colon + 1, nullptr) * 1e6);
}

/// The core that a thread ran on last: field 39 of its stat, the 37th behind its name.
std::optional<int> last_core(const std::string& folder) {
  const auto text = base::read_file(folder + "/stat");
  if (!text)
    return std::nullopt;
  const auto name_end = text->rfind(')');
  if (name_end == std::string::npos)
    return std::nullopt;
  const auto fields = base::split(std::string_view(*text).substr(name_end + 2), ' ');
  constexpr std::size_t kCore = 36;
  if (fields.size() <= kCore)
    return std::nullopt;
  const auto core = base::to_uint(fields[kCore]);
  if (!core)
    return std::nullopt;
  return static_cast<int>(*core);
}

/// Clocks of cores differ by what was stolen from each, so we go to a thread's core to read the
/// same one.
class CoreClocks {
 public:
  CoreClocks() { known_ = ::sched_getaffinity(0, sizeof before_, &before_) == 0; }
  CoreClocks(const CoreClocks&) = delete;
  CoreClocks& operator=(const CoreClocks&) = delete;
  ~CoreClocks() {
    if (known_)
      ::sched_setaffinity(0, sizeof before_, &before_);
  }
  std::optional<std::int64_t> now_ns(int core) {
    if (!known_ || core >= CPU_SETSIZE)
      return std::nullopt;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    if (::sched_setaffinity(0, sizeof only, &only) != 0)
      return std::nullopt;
    return last_ran_ns("/proc/thread-self");
  }

 private:
  cpu_set_t before_{};
  bool known_ = false;
};

std::vector<std::byte> read_memory(std::uint32_t pid, std::uint64_t from, std::size_t max_bytes) {
  constexpr std::size_t kPage = 4096;
  std::vector<iovec> pages;  // a page that is not there ends the reading
  for (std::size_t bytes = 0; bytes < max_bytes; bytes += pages.back().iov_len)
    pages.push_back({reinterpret_cast<void*>(from + bytes),
                     std::min(kPage - ((from + bytes) & (kPage - 1)), max_bytes - bytes)});
  std::vector<std::byte> out(max_bytes);
  const iovec local{out.data(), max_bytes};
  const ssize_t read =
      ::process_vm_readv(static_cast<pid_t>(pid), &local, 1, pages.data(), pages.size(), 0);
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
  return out;
}

#if defined(__x86_64__)
/// Of a thread that ptrace has stopped, in the order of Sample::values.
bool read_registers(std::uint32_t tid, std::uint64_t (&values)[kRegisters]) {
  user_regs_struct registers{};
  iovec part{&registers, sizeof registers};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &part) != 0)
    return false;
  const std::uint64_t ordered[kRegisters] = {registers.rax,
                                             registers.rdx,
                                             registers.rcx,
                                             registers.rbx,
                                             registers.rsi,
                                             registers.rdi,
                                             registers.rbp,
                                             registers.rsp,
                                             registers.r8,
                                             registers.r9,
                                             registers.r10,
                                             registers.r11,
                                             registers.r12,
                                             registers.r13,
                                             registers.r14,
                                             registers.r15,
                                             registers.rip};
  std::copy(std::begin(ordered), std::end(ordered), std::begin(values));
  return true;
}
#else
bool read_registers(std::uint32_t /*tid*/, std::uint64_t (&/*values*/)[kRegisters]) {
  return false;
}
#endif

class Dumper {
 public:
  Dumper(Target target, const std::filesystem::path& cache)
      : pid_(target.pid), living_(base::living_thread(pid_)), cache_(cache) {
    out_.target = std::move(target);
    own_pid_ = own_number("/proc/" + std::to_string(pid_) + "/status", pid_);
  }

  Dump run() {
    const std::int64_t begun = sample::now_ns();
    std::error_code error;
    out_.executable =
        std::filesystem::read_symlink("/proc/" + std::to_string(living_) + "/exe", error).string();
    maps_of(pid_, [&](const Mapped& mapped) {
      space_.map({mapped.start,
                  mapped.start + mapped.length,
                  mapped.offset,
                  &modules_.find(mapped.path, mapped.pid)});
    });
    Python::Unread unread;
    if (out_.target.unread.empty())
      python_ = Python::find(space_, pid_, unread);
    if (!unread.why.empty())
      out_.notes.push_back(unread.why);
    if (!out_.target.unread.empty())
      out_.notes.push_back(out_.target.unread);
    if (python_) {
      out_.python = python_->version();
      python_->ask_for_all_lines();
      python_->be_patient();
    }
    for (const std::uint32_t tid : threads_of(pid_))
      read_thread(tid);
    find_python_holders();
    read_times();
    out_.read_ns = sample::now_ns() - begun;
    name_frames();
    out_.cycles = cycles_of(out_.threads);
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::uint32_t own_tid(std::uint32_t tid) const {
    if (own_pid_ == pid_)
      return tid;
    return own_number(folder_of_thread(pid_, tid) + "/status", tid);
  }
  /// The line where a function is, else the one where it begins.
  static std::uint32_t line_or(std::uint32_t line, std::uint32_t first_line) {
    return line == 0 ? first_line : line;
  }

  /// The thread that its own container calls so; 0 for none.
  [[nodiscard]] std::uint32_t thread_called(std::uint32_t own_tid) const {
    for (const auto& [tid, number] : own_tids_)
      if (number == own_tid)
        return tid;
    return 0;
  }

  void read_thread(std::uint32_t tid) {
    const auto task = base::thread_at(static_cast<pid_t>(pid_), static_cast<pid_t>(tid));
    if (!task || task->thread_has_ended())
      return;
    DumpedThread& thread = out_.threads.emplace_back();
    thread.tid = tid;
    thread.name = name_of_thread(pid_, tid);
    thread.state = task->state;
    own_tids_[tid] = own_tid(tid);
    std::optional<SystemCall> call;
    if (task->state != 'R')
      call = system_call_of(pid_, tid);
    if (call)
      read_waiting(thread, *call);
    else
      read_running(thread);
  }

  void read_waiting(DumpedThread& thread, const SystemCall& call) {
    DumpedWait& wait = thread.wait.emplace();
    wait.kind = kind_of_call(call);
    const auto named = std::ranges::find(kCalls, call.number, &NamedCall::number);
    if (named != std::end(kCalls)) {
      wait.call = named->name;
      if (named->has_file)
        wait.on = file_of(call.first);
    }
    if (wait.kind == WaitKind::kLock && call.number == SYS_futex)
      wait.lock = call.first;
    if (wait.lock != 0 && python_ && python_->holds(wait.lock))
      wait.kind = WaitKind::kGil;
    Sample sample;
    sample.registers = has_tables();
    std::fill(std::begin(sample.values), std::end(sample.values), kUnknownRegister);
    sample.values[kRdi] = call.first;
    sample.values[kRsi] = call.second;
    sample.values[kRsp] = call.stack_pointer;
    sample.values[kRip] = call.place;
    read_stacks(thread, sample);
    if (wait.kind == WaitKind::kGil)
      own_holders_[thread.tid] = python_->gil_holder(wait.lock);
    if (wait.kind == WaitKind::kLock && wait.lock != 0)
      own_holders_[thread.tid] = mutex_owner(living_, wait.lock);
  }

  void read_running(DumpedThread& thread) {
    if (out_.stopped_ns >= kMostStopped_ns) {
      out_.notes.push_back(
          "thread " + std::to_string(thread.tid) +
          " runs: its stacks were not read, since threads were stopped for long enough");
      return;
    }
    Sample sample;
    std::int64_t stopped_at = 0;
    const bool was_stopped = while_stopped(static_cast<pid_t>(thread.tid), [&] {
      stopped_at = sample::now_ns();
      sample.registers = has_tables() && read_registers(thread.tid, sample.values);
      if (sample.registers)
        copy_ = read_memory(living_, sample.values[kRsp], kRunningStack);
      read_python(thread);
      return true;
    });
    if (was_stopped)
      out_.stopped_ns +=
          sample::now_ns() - stopped_at + std::chrono::nanoseconds(kStopPolled).count();
    else
      out_.notes.push_back("thread " + std::to_string(thread.tid) +
                           " runs, and could not be stopped (ptrace)");
    if (sample.registers)
      unwind_copy(thread, sample);
  }

  void read_stacks(DumpedThread& thread, Sample& sample) {
    copy_ = read_memory(living_, sample.values[kRsp], kDumpedStack);
    read_python(thread);
    unwind_copy(thread, sample);
  }

  void unwind_copy(DumpedThread& thread, Sample& sample) {
    sample.pid = pid_;
    sample.tid = thread.tid;
    sample.stack = copy_;
    sample.chain = {&sample.values[kRip], 1};
    Unwound unwound;
    unwind(space_, sample, unwound);
    thread.native_cut = unwound.cut;
    std::vector<Place>& places = places_[thread.tid];
    for (const std::uint64_t address : unwound.addresses) {
      const Place place = place_of(space_, named_address(python_.get(), address));
      if (place.module != nullptr)
        places.push_back(place);
    }
  }

  void read_python(DumpedThread& thread) {
    if (!python_)
      return;
    std::vector<PythonFrame> frames;
    if (python_->frames(own_tids_[thread.tid], frames) != Python::Reading::kRead)
      return;
    for (const PythonFrame& frame : frames) {
      const std::uint32_t line = line_or(frame.line, frame.code->line);
      thread.python.push_back({frame.code->name, frame.code->file, "", line, frame.code->line});
    }
  }

  [[nodiscard]] std::string file_of(std::uint64_t descriptor) const {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(
        "/proc/" + std::to_string(living_) + "/fd/" + std::to_string(descriptor), error);
    if (error)
      return {};
    return target.string();
  }

  /// Locks without an owner: each is looked for in the frames of all threads that do not wait for
  /// it themselves.
  void find_python_holders() {
    for (DumpedThread& thread : out_.threads) {
      const auto holder = own_holders_.find(thread.tid);
      if (holder == own_holders_.end() || holder->second == own_tids_[thread.tid])
        continue;
      thread.wait->holder = holder->second == 0 ? 0 : thread_called(holder->second);
    }
    if (!python_)
      return;
    std::vector<std::uint64_t> locks;
    for (const DumpedThread& thread : out_.threads)
      if (thread.wait && thread.wait->holder == 0 && thread.wait->lock != 0)
        locks.push_back(thread.wait->lock);
    if (locks.empty())
      return;
    std::map<std::uint64_t, std::set<std::uint32_t>> holders;
    std::vector<PythonFrame> frames;
    for (const DumpedThread& thread : out_.threads) {
      if (python_->frames(own_tids_[thread.tid], frames) != Python::Reading::kRead)
        continue;
      for (const std::uint64_t lock : python_->locks_in_frames(locks))
        if (!thread.wait || thread.wait->lock != lock)
          holders[lock].insert(thread.tid);
    }
    for (DumpedThread& thread : out_.threads) {
      if (!thread.wait || thread.wait->holder != 0)
        continue;
      const auto found = holders.find(thread.wait->lock);
      if (found != holders.end() && found->second.size() == 1)
        thread.wait->holder = *found->second.begin();
    }
  }

  void read_times() {
    CoreClocks clocks;
    for (DumpedThread& thread : out_.threads) {
      if (!thread.wait)
        continue;
      const std::string folder = folder_of_thread(pid_, thread.tid);
      const auto core = last_core(folder);
      const auto ran_ns = last_ran_ns(folder);
      const auto now = core && ran_ns ? clocks.now_ns(*core) : std::nullopt;
      if (now && *now >= *ran_ns)
        thread.wait->since_ns = *now - *ran_ns;
    }
  }

  /// Functions of each file in one go.
  void name_frames() {
    std::map<Module*, std::vector<std::uint64_t>> addresses;
    for (const auto& [tid, places] : places_)
      for (const Place& place : places)
        addresses[place.module].push_back(place.address);
    std::map<std::pair<Module*, std::uint64_t>, std::vector<Function>> functions;
    for (auto& [module, list] : addresses) {
      std::ranges::sort(list);
      list.erase(std::unique(list.begin(), list.end()), list.end());
      std::size_t unnamed = 0;
      for (Named& named : names_of_module(*module, list, cache_, unnamed))
        functions[{module, named.address}] = std::move(named.functions);
    }
    for (DumpedThread& thread : out_.threads)
      for (const Place& place : places_[thread.tid]) {
        const auto& named = functions[{place.module, place.address}];
        for (auto function = named.rbegin(); function != named.rend(); ++function) {
          const std::uint32_t line = line_or(function->line_of_address, function->line);
          thread.native.push_back({function->name, function->file, place.module->path, line, 0});
        }
        if (named.empty())
          thread.native.push_back({"", "", place.module->path, 0, 0});
      }
  }

  static constexpr std::size_t kRunningStack = 64 << 10;  // is copied while it is stopped
  std::uint32_t pid_, own_pid_ = 0;
  std::uint32_t living_;  ///< of its threads, for what belongs to all of them
  std::filesystem::path cache_;
  Modules modules_;
  Space space_;
  std::unique_ptr<Python> python_;
  std::map<std::uint32_t, std::uint32_t> own_tids_;  ///< in the process's own namespace
  std::map<std::uint32_t, std::uint32_t>
      own_holders_;  ///< of what threads wait for, likewise; 0: unknown
  std::map<std::uint32_t, std::vector<Place>> places_;  ///< of native frames, the innermost first
  std::vector<std::byte> copy_;                         ///< of a stack
  Dump out_;
};

}  // namespace

Dump dump(Target target, const std::filesystem::path& cache) {
  return Dumper(std::move(target), cache).run();
}

std::vector<std::vector<std::size_t>> cycles_of(const std::vector<DumpedThread>& threads) {
  std::map<std::uint32_t, std::size_t> index_of;
  for (std::size_t i = 0; i < threads.size(); ++i)
    index_of[threads[i].tid] = i;
  constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  const auto next_of = [&](std::size_t thread) {
    const auto& wait = threads[thread].wait;
    const bool is_lock = wait && wait->kind == WaitKind::kLock && wait->holder != 0;
    if (!is_lock)
      return kNobody;
    const auto holder = index_of.find(wait->holder);
    return holder == index_of.end() ? kNobody : holder->second;
  };
  std::vector<std::vector<std::size_t>> cycles;
  std::vector<std::size_t> visited_from(threads.size(), kNobody);
  for (std::size_t start = 0; start < threads.size(); ++start) {
    std::vector<std::size_t> path;
    std::size_t thread = start;
    for (; thread != kNobody && visited_from[thread] == kNobody; thread = next_of(thread)) {
      visited_from[thread] = start;
      path.push_back(thread);
    }
    if (thread == kNobody || visited_from[thread] != start)
      continue;  // ends, or leads to what was seen before
    cycles.emplace_back(std::ranges::find(path, thread), path.end());
  }
  return cycles;
}

}  // namespace rangescope::sample::cpu
