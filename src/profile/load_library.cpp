#include "profile/load_library.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>
#include <vector>

#include "base/elf_file.hpp"
#include "base/fs.hpp"
#include "base/process_memory.hpp"
#include "base/process_tree.hpp"
#include "base/text.hpp"
#include "profile/allocator_code.hpp"
#include "profile/stack_room.hpp"
#include "sample/cpu/dump/stopped.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;
using sample::cpu::Target;
using Clock = std::chrono::steady_clock;

fs::path proc(std::uint32_t pid, const std::string& file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

bool is_named(std::string_view path, std::string_view name) {
  return path.substr(path.rfind('/') + 1).starts_with(name);
}

/// A library as it lies in a process.
struct Image {
  std::string path;                  ///< as the process sees it
  fs::path file;                     ///< as we see it
  std::uint64_t begin = 0, end = 0;  ///< of its code
  std::uint64_t bias = 0;            ///< added to addresses in the file
  Elf64_Phdr code{};                 ///< where that lies in the file

  [[nodiscard]] bool holds(std::uint64_t address) const {
    return address >= begin && address < end;
  }
  /// 0: it has none of that name.
  [[nodiscard]] std::uint64_t address_of(std::string_view name) const {
    const auto value = base::ElfFile(file).symbol_value(name);
    if (!value)
      return 0;
    return bias + *value;
  }
};

Image image_at(std::uint32_t pid, const sample::cpu::Mapped& map) {
  Image image;
  image.path = std::string(map.path);
  image.file = proc(pid, "root" + image.path);
  image.begin = map.start;
  image.end = map.start + map.length;
  if (const auto segment = base::ElfFile(image.file).code_segment()) {
    image.code = *segment;
    image.bias = map.start - map.offset + segment->p_offset - segment->p_vaddr;
  }
  return image;
}

/// The first library with one of the names whose code is mapped.
std::optional<Image> find_image(std::uint32_t pid, std::initializer_list<std::string_view> names) {
  std::optional<Image> found;
  sample::cpu::maps_of(pid, [&](const sample::cpu::Mapped& map) {
    const auto is_map_of = [&](std::string_view name) { return is_named(map.path, name); };
    if (!found && std::ranges::any_of(names, is_map_of))
      found = image_at(pid, map);
  });
  return found;
}

std::string status_of(std::uint32_t pid, std::string_view key) {
  const std::string status = base::read_file(proc(pid, "status")).value_or("");
  for (const std::string_view line : base::split(status, '\n'))
    if (line.starts_with(key))
      return std::string(base::trim(line.substr(key.size())));
  return {};
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

base::Result<void> refused(const std::string& why,
                           const std::string& hint = {},
                           base::Code code = base::Code::kPermission) {
  return base::fail(code, "its GPU work cannot be recorded: " + why, {}, hint);
}

#if defined(__x86_64__)

/// A library of which we also read what it executes.
struct ImageWithCode : Image {
  std::string bytes;  ///< of its code; "" where the file cannot be read

  explicit ImageWithCode(Image image) : Image(std::move(image)) {
    constexpr std::uint64_t kMostCode = 256u << 20;
    bytes = base::ElfFile(file).read(code.p_offset, code.p_filesz, kMostCode);
  }
};

/// Where a signal's frame returns to: mov $15,%rax; syscall.
std::uint64_t restorer_of(const ImageWithCode& libc) {
  constexpr std::string_view kCode("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
  const std::size_t found = libc.bytes.find(kCode);
  if (found == std::string::npos)
    return 0;
  return libc.bias + libc.code.p_vaddr + found;
}

/// A system call that a thread waits in: /proc/N/task/N/syscall.
struct Waiting {
  std::uint64_t number = 0;
  std::uint64_t arguments[6] = {};
  std::uint64_t stack = 0;  ///< its pointer
  std::uint64_t at = 0;     ///< the next instruction
};
std::optional<Waiting> waiting(std::uint32_t pid, std::uint32_t tid) {
  const auto text = base::read_file(proc(pid, "task/" + std::to_string(tid) + "/syscall"));
  Waiting found;
  auto& a = found.arguments;
  if (!text || std::sscanf(text->c_str(),
                           "%lu %lx %lx %lx %lx %lx %lx %lx %lx",
                           &found.number,
                           &a[0],
                           &a[1],
                           &a[2],
                           &a[3],
                           &a[4],
                           &a[5],
                           &found.stack,
                           &found.at) != 9)
    return std::nullopt;
  return found;
}

/// A call may start over with such a time: any program can be late by that much.
bool is_short(std::uint32_t pid, std::uint64_t time) {
  timespec wanted{};
  return base::read_memory(pid, time, &wanted, sizeof wanted) && wanted.tv_sec == 0 &&
         wanted.tv_nsec <= 100'000'000;
}

/// The call begins again as if it had not been left: it has no limit of time, a short one, or one
/// that is a point in time.
bool begins_again(std::uint32_t pid, const Waiting& call) {
  const auto& a = call.arguments;
  switch (call.number) {
    case SYS_futex:
      return (a[1] & 0x7f) == 9;  // FUTEX_WAIT_BITSET: not the locks of malloc and the like
    case SYS_poll: return static_cast<int>(a[2]) <= 100;  // ms; -1: none
    case SYS_ppoll: return a[2] == 0;
    case SYS_select:
    case SYS_pselect6: return a[4] == 0;
    case SYS_clock_nanosleep: return (a[1] & TIMER_ABSTIME) != 0 || is_short(pid, a[2]);
    case SYS_nanosleep: return is_short(pid, a[0]);
    case SYS_wait4: return true;
    case SYS_read: {
      std::error_code error;
      const std::string file =
          fs::read_symlink(proc(pid, "fd/" + std::to_string(static_cast<int>(a[0]))), error);
      return file.starts_with("pipe:") || file.starts_with("/dev/pts/") ||
             file.starts_with("/dev/tty");
    }
    default: return false;
  }
}

/// The address is one that a call returns to, by the bytes before it.
bool follows_call(const ImageWithCode& image, std::uint64_t address) {
  const std::uint64_t in_code = address - image.bias - image.code.p_vaddr;
  if (in_code < 8 || in_code > image.bytes.size())
    return true;
  const auto byte = [&](std::size_t before) {
    return static_cast<unsigned char>(image.bytes[in_code - before]);
  };
  const auto indirect = [&](std::size_t before) {
    return byte(before) == 0xff && (byte(before - 1) >> 3 & 7) == 2;
  };
  return byte(5) == 0xe8 || indirect(2) || indirect(3) || indirect(4) || indirect(6) || indirect(7);
}

constexpr std::size_t kRoom = 128 * 1024;    ///< of stack, for dlopen
constexpr std::uint64_t kRawCallBytes = 64;  ///< of libc's syscall(), at most

struct Places {
  ImageWithCode libc, linker;
  std::uint64_t restorer = 0;
  std::vector<CodeRange> allocator;  ///< that the program has in place of libc's
  CodeRange raw_call;                ///< syscall()
};

/// In the program's own allocator, as far as the nearest frames show, or in a lock that the program
/// made itself and that its allocator may use: a wait by syscall().
bool may_hold_allocator(std::uint32_t pid, const Waiting& call, const Places& places) {
  if (places.allocator.empty())
    return false;
  if (is_in({places.raw_call}, call.at))
    return true;
  constexpr std::uint64_t kNearest = 16 * 1024;
  std::array<std::uint64_t, 512> words;
  for (std::uint64_t address = call.stack & ~7ull, end = address + kNearest; address < end;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(4096 - address % 4096, end - address);
    if (!base::read_memory(pid, address, words.data(), bytes))
      return false;
    for (std::size_t index = 0; index < bytes / 8; ++index)
      if (is_in(places.allocator, words[index]))
        return true;
    address += bytes;
  }
  return false;
}

/// Neither in the dynamic linker, nor in the allocator, nor in a handler of a signal.
bool is_free(std::uint32_t pid, const Waiting& call, const Places& places) {
  if (!places.libc.holds(call.at) || may_hold_allocator(pid, call, places))
    return false;
  std::array<std::uint64_t, 512> words;
  for (std::uint64_t address = call.stack & ~7ull, left = 1u << 20; left > 0;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(4096 - address % 4096, left);
    if (!base::read_memory(pid, address, words.data(), bytes))
      break;
    for (std::size_t i = 0; i < bytes / 8; ++i)
      if (words[i] == places.restorer ||
          (places.linker.holds(words[i]) && follows_call(places.linker, words[i])))
        return false;
    address += bytes;
    left -= bytes;
  }
  return true;
}

/// On its own stack, with room there for a call.
bool has_room(std::uint32_t pid,
              std::uint32_t tid,
              const std::vector<base::MemoryArea>& areas,
              const user_regs_struct& registers) {
  if (room_of_thread(areas, registers.rsp, registers.fs_base) >= kRoom)
    return true;
  if (pid != tid)
    return false;
  const auto limits = base::read_file(proc(pid, "limits"));
  const std::optional<rlim_t> limit = stack_limit_of(limits.value_or(""));
  return limit && room_of_first_thread(areas, registers.rsp, *limit) >= kRoom;
}

/// The registers of vectors as a signal's frame has them. Empty where they cannot be.
std::string vectors_of(pid_t tid) {
  std::string state(64 * 1024, '\0');
  iovec part{state.data(), state.size()};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &part) != 0 || part.iov_len < 576)
    return {};
  constexpr std::size_t kSoftware =
      464;  // of the bytes that are software's: first the parts that there are
  constexpr std::uint64_t kTileData = 1ull << 18;
  std::uint64_t parts = 0, used = 0;
  std::memcpy(&parts, state.data() + kSoftware, 8);
  std::memcpy(&used, state.data() + 512, 8);
  if ((used & kTileData) == 0)
    parts &= ~kTileData;  // a thread has room for it when it may use it
  std::uint32_t bytes = 576;
  for (unsigned part_of = 2; part_of < 63; ++part_of) {
    if ((parts >> part_of & 1) == 0)
      continue;
    std::uint32_t size = 0, offset = 0, c = 0, d = 0;
    __cpuid_count(0xd, part_of, size, offset, c, d);
    bytes = std::max(bytes, size + offset);
  }
  if (bytes > part.iov_len)
    return {};
  const std::uint32_t head[] = {0x46505853,
                                bytes + 4,
                                static_cast<std::uint32_t>(parts),
                                static_cast<std::uint32_t>(parts >> 32),
                                bytes};  // FP_XSTATE_MAGIC1 and struct _fpx_sw_bytes
  std::memset(state.data() + kSoftware, 0, 48);
  std::memcpy(state.data() + kSoftware, head, sizeof head);
  const std::uint32_t end = 0x46505845;  // FP_XSTATE_MAGIC2
  std::memcpy(state.data() + bytes, &end, sizeof end);
  state.resize(bytes + sizeof end);
  return state;
}

/// Sets the registers so that the interrupted call starts over, as the kernel itself would do.
/// False where it was interrupted for good.
bool mend_call(user_regs_struct& registers, std::uint64_t number) {
  constexpr std::int64_t kErestartsys = 512, kErestartnointr = 513, kErestartnohand = 514,
                         kRestartBlock = 516;
  const auto answer = -static_cast<std::int64_t>(registers.rax);
  const bool starts_over = answer == kErestartsys || answer == kErestartnointr ||
                           answer == kErestartnohand || answer == kRestartBlock;
  if (starts_over) {
    registers.rax = number;
    registers.rip -= 2;  // syscall
  }
  return starts_over || answer != EINTR;
}

/// The thread is where it was when it was chosen, in the program's own code.
bool is_still_at(const Waiting& call, const user_regs_struct& registers) {
  constexpr std::uint64_t kCodeOf64Bits = 0x33;
  return registers.rip == call.at && registers.rsp == call.stack &&
         registers.orig_rax == call.number && registers.cs == kCodeOf64Bits;
}

/// What a handler of a signal returns to: the thread with these registers. `vectors_at`: where its
/// vector registers are.
ucontext_t context_of(const user_regs_struct& registers,
                      std::uint64_t blocked_signals,
                      std::uint64_t vectors_at) {
  ucontext_t context{};
  context.uc_flags = 1 | 2 | 4;  // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
  // None that there is: the other stack of signals stays as it is.
  context.uc_stack.ss_flags = 1 << 6;
  auto& saved = context.uc_mcontext.gregs;
  const auto keep = [&](int place, unsigned long long value) {
    saved[place] = static_cast<greg_t>(value);
  };
  keep(REG_R8, registers.r8);
  keep(REG_R9, registers.r9);
  keep(REG_R10, registers.r10);
  keep(REG_R11, registers.r11);
  keep(REG_R12, registers.r12);
  keep(REG_R13, registers.r13);
  keep(REG_R14, registers.r14);
  keep(REG_R15, registers.r15);
  keep(REG_RDI, registers.rdi);
  keep(REG_RSI, registers.rsi);
  keep(REG_RBP, registers.rbp);
  keep(REG_RBX, registers.rbx);
  keep(REG_RDX, registers.rdx);
  keep(REG_RAX, registers.rax);
  keep(REG_RCX, registers.rcx);
  keep(REG_RSP, registers.rsp);
  keep(REG_RIP, registers.rip);
  keep(REG_EFL, registers.eflags);
  keep(REG_CSGSFS, registers.cs | registers.ss << 48);
  context.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(vectors_at);
  std::memcpy(&context.uc_sigmask, &blocked_signals, sizeof blocked_signals);
  return context;
}

bool write_memory(std::uint32_t pid, std::uint64_t address, std::string& bytes) {
  const iovec local{bytes.data(), bytes.size()};
  const iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  const ssize_t written = ::process_vm_writev(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0);
  return written == static_cast<ssize_t>(bytes.size());
}

/// Every signal but those of faults: meanwhile no handler of the program runs.
void block_signals(pid_t tid) {
  std::uint64_t blocked = ~0ull;
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS})
    blocked &= ~(1ull << (fault - 1));
  ::ptrace(PTRACE_SETSIGMASK, tid, sizeof blocked, &blocked);
}

/// The thread, which is stopped, calls `function(text, second)` when it is let go, and comes back.
/// False: it is as it was. `areas`: the memory of the process.
bool divert(std::uint32_t pid,
            pid_t tid,
            const Waiting& call,
            const Places& places,
            const std::vector<base::MemoryArea>& areas,
            std::uint64_t function,
            const std::string& text,
            std::uint64_t second) {
  user_regs_struct registers{};
  std::uint64_t blocked = 0;
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) != 0)
    return false;
  if (!is_still_at(call, registers))
    return false;
  if (::ptrace(PTRACE_GETSIGMASK, tid, sizeof blocked, &blocked) != 0)
    return false;
  if (!has_room(pid, static_cast<std::uint32_t>(tid), areas, registers))
    return false;
  if (!mend_call(registers, call.number))
    return false;
  const std::string vectors = vectors_of(tid);
  if (vectors.empty())
    return false;
  // From the top of the stack down: the text, the vector registers, the frame of a signal.
  constexpr std::uint64_t kRedZone = 128;
  const std::uint64_t top = (registers.rsp - kRedZone) & ~63ull;
  const std::uint64_t text_at = top - (text.size() + 63) / 64 * 64;
  const std::uint64_t vectors_at = text_at - (vectors.size() + 63) / 64 * 64;
  const std::uint64_t frame_at = ((vectors_at - 8 - sizeof(ucontext_t)) & ~15ull) - 8;
  const ucontext_t context = context_of(registers, blocked, vectors_at);
  std::string frame(top - frame_at, '\0');
  const auto copy_to = [&](std::uint64_t address, const void* from, std::size_t bytes) {
    std::memcpy(frame.data() + (address - frame_at), from, bytes);
  };
  copy_to(frame_at, &places.restorer, 8);
  copy_to(frame_at + 8, &context, sizeof context);
  copy_to(vectors_at, vectors.data(), vectors.size());
  copy_to(text_at, text.data(), text.size());
  if (!write_memory(pid, frame_at, frame))
    return false;
  constexpr std::uint64_t kDirection = 1 << 10;
  registers.rip = function;
  registers.rsp = frame_at;
  registers.rdi = text_at;
  registers.rsi = second;
  registers.rax = 0;
  registers.orig_rax = ~0ull;  // in no call: the kernel begins none again
  registers.eflags &= ~kDirection;
  if (::ptrace(PTRACE_SETREGS, tid, nullptr, &registers) != 0)
    return false;
  block_signals(tid);  // the frame has those that were blocked
  return true;
}

/// Some thread calls `function(text, second)`, within some seconds.
base::Result<void> call_in(std::uint32_t pid,
                           const Places& places,
                           std::uint64_t function,
                           const std::string& text,
                           std::uint64_t second) {
  constexpr auto kPatience = std::chrono::seconds(10);  // on a busy machine threads run, or could
  for (const auto until = Clock::now() + kPatience; Clock::now() < until;) {
    for (const std::uint32_t tid : sample::cpu::threads_of(pid)) {
      const auto call = waiting(pid, tid);
      if (!call || !begins_again(pid, *call) || !is_free(pid, *call, places))
        continue;
      // Of the thread: those of a process whose first thread has ended are empty.
      const auto maps = base::read_file(proc(pid, "task/" + std::to_string(tid) + "/maps"));
      const std::vector<base::MemoryArea> areas = base::areas_of(maps.value_or(""));
      const auto thread = static_cast<pid_t>(tid);
      const auto divert_if_free = [&] {
        return is_free(pid, *call, places) &&
               divert(pid, thread, *call, places, areas, function, text, second);
      };
      if (sample::cpu::while_stopped(thread, divert_if_free))
        return {};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return refused("no thread waited in a system call that can be restarted",
                 "Start it with: rangescope profile --stopped -- PROGRAM");
}

base::Result<Places> places_of(std::uint32_t pid) {
  auto libc = find_image(pid, {"libc.so.6", "libc-2."});
  auto linker = find_image(pid, {"ld-linux-x86-64.so.2", "ld-2."});
  if (!libc || !linker)
    return base::fail(
        refused("it runs without glibc (static, or another libc)", {}, base::Code::kToolMissing));
  Places places{ImageWithCode(std::move(*libc)),
                ImageWithCode(std::move(*linker)),
                0,
                allocator_code_of(pid),
                {}};
  places.restorer = restorer_of(places.libc);
  if (const std::uint64_t raw_call = places.libc.address_of("syscall"); raw_call != 0)
    places.raw_call = {raw_call, raw_call + kRawCallBytes};
  if (places.restorer == 0 || places.linker.bytes.empty())
    return base::fail(refused("its libc was replaced on disk since it started, or is unknown here",
                              "Restart it",
                              base::Code::kToolMissing));
  return places;
}

#endif

}  // namespace

bool uses_cuda(std::uint32_t pid) {
  return find_image(base::living_thread(pid), {"libcuda.so"}).has_value();
}

#if defined(__x86_64__)

namespace {

/// The process is in the same PID and user namespace as this one.
bool shares_namespaces(std::uint32_t pid) {
  std::error_code error;
  for (const char* space : {"ns/pid", "ns/user"}) {
    const fs::path ours = fs::path("/proc/self") / space;
    if (fs::read_symlink(proc(pid, space), error) != fs::read_symlink(ours, error))
      return false;
  }
  return true;
}

std::uint64_t seccomp_filters(std::uint32_t pid) {
  return base::to_uint(status_of(pid, "Seccomp_filters:")).value_or(0);
}

/// No protection of the kernel or the CPU would kill a thread that is diverted.
base::Result<void> may_divert(std::uint32_t pid) {
  const auto own_pid = static_cast<std::uint32_t>(::getpid());
  if (seccomp_filters(pid) > seccomp_filters(own_pid))
    return refused("it runs under a seccomp filter, which might kill it");
  if (status_of(pid, "Seccomp:") == "1")
    return refused("it runs under strict seccomp, which would kill it");
  if (status_of(pid, "x86_Thread_features:").find("shstk") != std::string::npos)
    return refused("it uses a shadow stack");
  return {};
}

/// It was started by `rangescope profile`.
bool is_recorded(const Target& target) {
  const std::string variable = std::string(wire::kDir) + "=";
  return std::ranges::any_of(target.environment,
                             [&](const std::string& entry) { return entry.starts_with(variable); });
}

/// dlopen of the process, or what does the same; 0 if it has none.
std::uint64_t dlopen_of(std::uint32_t pid, const Places& places) {
  const std::uint64_t in_libc = places.libc.address_of("dlopen");
  if (in_libc != 0)
    return in_libc;
  const auto libdl = find_image(pid, {"libdl.so.2", "libdl-2."});  // glibc before 2.34
  if (libdl) {
    const std::uint64_t in_libdl = libdl->address_of("dlopen");
    if (in_libdl != 0)
      return in_libdl;
  }
  return places.libc.address_of("__libc_dlopen_mode");
}

}  // namespace

base::Result<void> may_load(const Target& target, const fs::path& library) {
  const std::uint32_t pid = base::living_thread(target.pid);
  if (!target.unread.empty())
    return refused(target.unread);
  if (!shares_namespaces(pid))
    return refused("it runs in another namespace (a container)",
                   "Attach from inside of it: docker exec");
  if (!same_file(proc(pid, "root" + library.string()), library))
    return refused("it does not see " + library.string() + " (another root)",
                   "Attach from inside of its container");
  TRY(may_divert(pid));
  const std::string state = status_of(pid, "State:");
  if (state.starts_with("T") || state.starts_with("t"))
    return refused("it is stopped", "Continue it: kill -CONT " + std::to_string(target.pid));
  const std::string tracer = status_of(pid, "TracerPid:");
  if (tracer != "0" && !tracer.empty())
    return refused("process " + tracer + " traces it (a debugger, strace)");
  if (is_recorded(target))
    return refused("rangescope profile already records it",
                   "Ask that run: rangescope ctl " + std::to_string(target.pid));
  const auto image = find_image(pid, {library.filename().string()});
  if (image && !same_file(proc(pid, "root" + image->path), library))
    return refused("another rangescope's library is in it: " + image->path);
  auto places = places_of(pid);
  if (!places)
    return base::fail(std::move(places));
  return {};
}

base::Result<void> begin_in(const Target& target,
                            const fs::path& library,
                            const std::string& settings) {
  constexpr auto kPatience = std::chrono::seconds(10);
  const std::uint32_t pid = base::living_thread(target.pid);
  const std::string name = library.filename().string();
  const auto places = TRY(places_of(pid));
  if (settings.size() >= wire::kMostSettings)
    return refused("its settings are longer than " + std::to_string(wire::kMostSettings) +
                   " bytes");
  if (!find_image(pid, {name})) {
    const std::uint64_t load = dlopen_of(pid, places);
    if (load == 0)
      return refused("its libc has no dlopen", {}, base::Code::kToolMissing);
    constexpr std::uint64_t kNow = 2;  // RTLD_NOW
    TRY(call_in(pid, places, load, library.string() + '\0', kNow));
  }
  for (const auto until = Clock::now() + kPatience; Clock::now() < until;) {
    if (const auto ours = find_image(pid, {name})) {
      const std::uint64_t attach = ours->address_of("rangescope_attach");
      if (attach == 0)
        return refused(
            "this rangescope was built without CUPTI's headers", {}, base::Code::kToolMissing);
      int loaded = 0;
      const std::uint64_t flag = ours->address_of("rangescope_loaded");
      if (base::read_memory(pid, flag, &loaded, sizeof loaded) && loaded != 0)
        return call_in(pid, places, attach, settings + '\0', 0);
    }
    if (!sample::cpu::still_runs(target))
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return refused("it did not load " + library.string());
}

#else

base::Result<void> may_load(const Target&, const fs::path&) {
  return refused("this works only on x86-64", {}, base::Code::kToolMissing);
}
base::Result<void> begin_in(const Target& target, const fs::path& library, const std::string&) {
  return may_load(target, library);
}

#endif

}  // namespace rangescope::profile
