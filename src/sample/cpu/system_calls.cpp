#include "sample/cpu/system_calls.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/process_memory.hpp"
#include "sample/cpu/unwind.hpp"

namespace rangescope::sample::cpu {
namespace {

using wire::cpu::WaitKind;

/// Of a return address: what comes before it and its call is looked through.
constexpr std::size_t kCode = 24;
/// As deep as paths must be known to distinguish system calls: Go's Syscall6 has two callers
/// between it and read().
constexpr std::size_t kPath = 4;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

}  // namespace

WaitKind kind_of_call(const SystemCall& call) {
  switch (call.number) {
    case SystemCall::kPage: return WaitKind::kIo;
    case SYS_pselect6:
#if defined(SYS_select)
    case SYS_select:
#endif
      return call.first == 0 ? WaitKind::kSleep : WaitKind::kIo;
    case SYS_ppoll:
#if defined(SYS_poll)
    case SYS_poll:
#endif
      return call.second == 0 ? WaitKind::kSleep : WaitKind::kIo;
    case SYS_futex:
#if defined(SYS_futex_waitv)
    case SYS_futex_waitv:
#endif
    case SYS_flock:
    case SYS_semop:
    case SYS_semtimedop: return WaitKind::kLock;
    case SYS_wait4:
    case SYS_waitid: return WaitKind::kChild;
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
    case SYS_sync:
    case SYS_syncfs:
    case SYS_sync_file_range:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_fallocate:
    case SYS_ftruncate:
    case SYS_readahead:
    case SYS_getdents64:
    case SYS_close:
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_sendmsg:
    case SYS_recvmsg:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_openat:
    case SYS_unlinkat:
    case SYS_ioctl:
    case SYS_io_getevents:
    case SYS_io_uring_enter:
    case SYS_epoll_pwait:
#if defined(SYS_epoll_pwait2)
    case SYS_epoll_pwait2:
#endif
#if defined(SYS_epoll_wait)
    case SYS_epoll_wait:
    case SYS_open:
    case SYS_unlink:
    case SYS_rename:
#endif
      return WaitKind::kIo;
    default: return WaitKind::kOther;
  }
}

long number_in_code(std::span<const unsigned char> code) {
  const std::size_t end = code.size();
  if (end < 7 || code[end - 2] != 0x0f || code[end - 1] != 0x05)
    return -1;  // syscall
  const auto has = [&](std::size_t offset, std::initializer_list<unsigned char> bytes) {
    return offset + bytes.size() <= end - 2 &&
           std::equal(bytes.begin(), bytes.end(), code.begin() + static_cast<long>(offset));
  };
  for (std::size_t offset = end - 2; offset-- > 0;) {
    if (code[offset] == 0xb8 && offset + 5 <= end - 2) {  // mov $number, %eax
      std::uint32_t number = 0;
      std::memcpy(&number, code.data() + offset + 1, sizeof number);
      if (number < 1024)
        return static_cast<long>(number);
    }
    if (has(offset, {0x31, 0xc0}) || has(offset, {0x33, 0xc0}))
      return 0;  // xor %eax, %eax
    // What sets it from another register, or is no longer the same stretch of code: mov to %rax,
    // ret.
    if (has(offset, {0x89, 0xf8}) || has(offset, {0x89, 0xf0}) || code[offset] == 0xc3)
      return -1;
  }
  return -1;
}

std::optional<SystemCall> system_call_of(std::uint32_t pid, std::uint32_t tid) {
  const std::string place =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/syscall";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(place.c_str(), "re"),
                                                             &std::fclose);
  char line[256];
  if (!file || std::fgets(line, sizeof line, file.get()) == nullptr)
    return std::nullopt;
  SystemCall call;
  if (std::sscanf(line, "-1 %" SCNx64 " %" SCNx64, &call.stack_pointer, &call.place) == 2) {
    call.number = SystemCall::kPage;
    return call;
  }
  // number, six arguments, stack pointer, address; "running" where it runs again
  if (std::sscanf(line,
                  "%ld %" SCNx64 " %" SCNx64 " %*s %*s %*s %*s %" SCNx64 " %" SCNx64,
                  &call.number,
                  &call.first,
                  &call.second,
                  &call.stack_pointer,
                  &call.place) != 5)
    return std::nullopt;
  return call;
}

std::optional<SystemCall> SystemCalls::at(const Space& space,
                                          const Sample& sample,
                                          std::uint64_t& path) {
  path = 0;
  const std::uint64_t place = sample.values[kRip];
  // What the kernel's entry puts where the result will be.
  if (!sample.registers || sample.values[0] != static_cast<std::uint64_t>(-ENOSYS))
    return std::nullopt;
  SystemCall call{-1, sample.values[kRdi], sample.values[kRsi], sample.values[kRsp], place};
  const Place in_file = place_of(space, place);
  if (in_file.module == nullptr)
    return call;
  const std::uint64_t key = mixed(in_file.module->number + 1u, in_file.address);
  auto noted = places_.find(key);
  if (noted == places_.end()) {
    unsigned char code[kCode];
    if (places_.size() >= kMost)
      return call;
    const std::uint64_t code_begin = place - sizeof code;
    if (!base::read_memory(sample.pid, code_begin, code, sizeof code) &&
        !base::read_memory(sample.tid, code_begin, code, sizeof code))  // the first has ended
      return call;
    long number = number_in_code(code);
    if (number < 0)
      number = kElsewhere;
    noted = places_.emplace(key, number).first;
  }
  call.number = noted->second;
  if (call.number != kElsewhere)
    return call;
  call.number = -1;
  path = kUnlearned;
  unwind(space, sample, unwound_);
  // Up to who called into the file that makes the system call: libc's functions call no others from
  // one place.
  std::uint64_t hash = kUnlearned;
  bool left = false;
  for (std::size_t i = 0; i < unwound_.addresses.size() && !left && i < kPath; ++i) {
    const Place frame = place_of(space, unwound_.addresses[i]);
    if (frame.module == nullptr)
      break;
    hash = mixed(mixed(hash, frame.module->number), frame.address);
    left = frame.module != in_file.module;
  }
  if (!left && unwound_.cut && unwound_.addresses.size() < kPath)
    return call;
  path = hash;
  if (const auto learned = paths_.find(path); learned != paths_.end()) {
    call.number = learned->second;
    path = 0;
  }
  return call;
}

void SystemCalls::learn(std::uint64_t path, long number) {
  if (path != kUnlearned && paths_.size() < kMost)
    paths_.emplace(path, number);
}

}  // namespace rangescope::sample::cpu
