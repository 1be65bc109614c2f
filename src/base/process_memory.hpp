// The memory of another process, which runs on meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::base {

/// False where not all of it could be read: `into` is undefined then.
[[nodiscard]] bool read_memory(std::uint32_t pid,
                               std::uint64_t address,
                               void* into,
                               std::size_t bytes);

/// A line of /proc/PID/maps.
struct MemoryArea {
  std::uint64_t begin = 0, end = 0, offset = 0;  ///< `offset`: of `begin` in its file
  bool is_readable = false, is_writable = false, is_executable = false;
  std::string name;  ///< "[stack]", a path, or ""

  [[nodiscard]] bool holds(std::uint64_t address) const {
    return address >= begin && address < end;
  }
};

/// By address. Lines that cannot be read are left out.
[[nodiscard]] std::vector<MemoryArea> areas_of(std::string_view maps);

}  // namespace rangescope::base
