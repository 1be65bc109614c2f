// Who has the lock that a thread waits for, from outside.
#pragma once

#include <cstdint>
#include <string>

namespace rangescope::sample::cpu {

/// The innermost number of a line "NSpid: 4711 12" of a status file in /proc: what a process or
/// thread is called in its own container. `id` itself where there is none.
[[nodiscard]] std::uint32_t own_number(const std::string& status, std::uint32_t id);

/// The thread that has a mutex of glibc, of the futex at this address; 0 if none has it, or if it
/// is no mutex: a semaphore, a condition.
[[nodiscard]] std::uint32_t mutex_owner(std::uint32_t pid, std::uint64_t futex);

}  // namespace rangescope::sample::cpu
