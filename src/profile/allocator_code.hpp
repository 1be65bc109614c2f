// The code of a process's allocator, if that is not libc's. A thread that waits in it may hold a
// lock that malloc() needs, or wait for one: it must not be made to call malloc() again.
#pragma once

#include <cstdint>
#include <vector>

namespace rangescope::profile {

struct CodeRange {
  std::uint64_t begin = 0, end = 0;
};

/// By address: all code of libraries that define malloc(), and its functions in the executable.
/// Reads the symbol tables of the files that the process has mapped, 64 MiB of each at most.
[[nodiscard]] std::vector<CodeRange> allocator_code_of(std::uint32_t pid);

[[nodiscard]] bool is_in(const std::vector<CodeRange>& code, std::uint64_t address);

}  // namespace rangescope::profile
