// How much of its own stack a thread of another process has left.
//
// A thread's stack pointer may lie elsewhere: on the stack of a coroutine, of a signal, or of
// memory that the program gave it. What lies below such a stack is somebody else's, so it has no
// room that could be known.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/process_memory.hpp"

namespace rangescope::profile {

/// The limit on the stack's size, of the text of /proc/PID/limits: prlimit() needs a right
/// (CAP_SYS_RESOURCE) for another user's process that root lacks in containers.
[[nodiscard]] std::optional<rlim_t> stack_limit_of(std::string_view limits);

/// Bytes below the stack pointer that the first thread may use: what is mapped, and what the kernel
/// adds up to the limit on the stack's size (RLIMIT_STACK) and its distance to the memory below.
/// 0 where it is on another stack.
[[nodiscard]] std::uint64_t room_of_first_thread(const std::vector<base::MemoryArea>& areas,
                                                 std::uint64_t stack_pointer,
                                                 rlim_t limit);

/// The same of a thread that glibc made: its descriptor lies at the upper end of its stack, and a
/// guard without any rights below the lower end.
[[nodiscard]] std::uint64_t room_of_thread(const std::vector<base::MemoryArea>& areas,
                                           std::uint64_t stack_pointer,
                                           std::uint64_t descriptor);

}  // namespace rangescope::profile
