// Our library in a process that runs already: one of its threads, which waits in a system call, is
// made to call dlopen(), and then rangescope_attach() (inject/cupti/entry.cpp).
//
// No byte of the program's code is changed and nothing is mapped for it. The thread is stopped by
// ptrace for some hundred microseconds; a frame like that of a signal is written below its stack's
// red zone, with all that the thread has in registers (vectors too) and its blocked signals; and it
// is let go where the function begins, with rt_sigreturn as what the function returns to. So the
// thread comes back to its system call by itself, whatever becomes of us: until its registers are
// set nothing is changed, and after that it needs nothing of us.
//
// Which thread: one in a call that begins again as if nothing had been (a futex of a condition or
// semaphore, poll without a limit, a sleep until a time, or poll and sleeps of 0.1 s at most,
// wait4, a read of a pipe or terminal), made by libc itself, with no function of the dynamic linker
// and no signal's frame on its stack, on its own stack with room below (stack_room.hpp), and not in
// an allocator of the program (allocator_code.hpp). What the function needs of locks (malloc, the
// linker) another thread may hold, and gives back.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "sample/cpu/target.hpp"

namespace rangescope::profile {

/// Has it CUDA's driver in it?
[[nodiscard]] bool uses_cuda(std::uint32_t pid);

/// Looks at it alone. kToolMissing: this machine or libc is none where that is known; kPermission:
/// what forbids it.
[[nodiscard]] base::Result<void> may_load(const sample::cpu::Target& target,
                                          const std::filesystem::path& library);

/// Loads it where it is not there yet, and has it begin as `settings` says (NAME=VALUE, each
/// terminated). Takes at most some seconds. kPermission, kToolMissing with what was in the way:
/// then the process is as it was, or has the library in it, dormant.
[[nodiscard]] base::Result<void> begin_in(const sample::cpu::Target& target,
                                          const std::filesystem::path& library,
                                          const std::string& settings);

}  // namespace rangescope::profile
