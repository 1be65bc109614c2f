#include "inject/python/own_memory.hpp"

#include <sys/uio.h>

#include <algorithm>

namespace rangescope::inject::python {

bool OwnMemory::copy(std::uint64_t address, void* into, std::size_t bytes) const {
  const iovec local{into, bytes}, remote{reinterpret_cast<void*>(address), bytes};
  return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

bool OwnMemory::text(std::uint64_t address, char* into, std::size_t most) const {
  for (std::size_t copied = 0; copied + 1 < most;) {
    const std::size_t in_page = 4096 - (address + copied) % 4096;
    const std::size_t part = std::min({most - 1 - copied, in_page, std::size_t{64}});
    if (!copy(address + copied, into + copied, part))
      return false;
    if (std::memchr(into + copied, 0, part) != nullptr)
      return true;
    copied += part;
    into[copied] = '\0';
  }
  return true;
}

bool OwnMemory::check(std::uint64_t page) {
  std::uint64_t first = 0;
  if (!copy(page << 12, &first, sizeof first))
    return false;
  pages_[page & (kPages - 1)] = page + 1;
  return true;
}

}  // namespace rangescope::inject::python
