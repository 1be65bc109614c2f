#include "base/process_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "base/text.hpp"

namespace rangescope::base {

bool read_memory(std::uint32_t pid, std::uint64_t address, void* into, std::size_t bytes) {
  const iovec here{into, bytes};
  const iovec there{reinterpret_cast<void*>(address), bytes};  // NOLINT
  return ::process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0) ==
         static_cast<ssize_t>(bytes);
}

std::vector<MemoryArea> areas_of(std::string_view maps) {
  std::vector<MemoryArea> areas;
  for (const std::string_view line : split(maps, '\n')) {
    MemoryArea area;
    char rights[8] = {};
    int name_at = 0;
    const std::string text(line);
    // "7f2c1000-7f2c3000 r-xp 00001000 08:01 1234    /usr/lib/libc.so.6"
    const int fields = std::sscanf(text.c_str(),
                                   "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n",
                                   &area.begin,
                                   &area.end,
                                   rights,
                                   &area.offset,
                                   &name_at);
    if (fields != 4 || area.end <= area.begin)
      continue;
    area.is_readable = rights[0] == 'r';
    area.is_writable = rights[1] == 'w';
    area.is_executable = rights[2] == 'x';
    area.name = text.substr(std::min(static_cast<std::size_t>(name_at), text.size()));
    areas.push_back(std::move(area));
  }
  std::ranges::sort(areas, {}, &MemoryArea::begin);
  return areas;
}

}  // namespace rangescope::base
