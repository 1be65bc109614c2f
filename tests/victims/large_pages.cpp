// Preloaded: the memory calls of a kernel with pages of 64 KiB, as many arm64 machines have.
// Offsets and addresses that are no multiples of it are refused, lengths are rounded up, and every
// map begins at a multiple.
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr uintptr_t kPage = 65536;

uintptr_t number(const void* at) {
  return reinterpret_cast<uintptr_t>(at);
}
void* pointer(long at) {
  return reinterpret_cast<void*>(at);
}
size_t rounded(size_t bytes) {
  return (bytes + kPage - 1) & ~(kPage - 1);
}
void* refused() {
  errno = EINVAL;
  return MAP_FAILED;
}

// Addresses for `bytes` that nothing else has, at a multiple of the page.
void* place(size_t bytes) {
  const long all =
      syscall(SYS_mmap, nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
  if (all == -1)
    return MAP_FAILED;
  const auto from = static_cast<uintptr_t>(all), at = (from + kPage - 1) & ~(kPage - 1);
  if (at > from)
    syscall(SYS_munmap, from, at - from);
  syscall(SYS_munmap, at + bytes, from + kPage - at);
  return reinterpret_cast<void*>(at);
}

}  // namespace

extern "C" {

long sysconf(int name) noexcept {
  if (name == _SC_PAGESIZE)
    return kPage;
  static const auto real = reinterpret_cast<long (*)(int)>(dlsym(RTLD_NEXT, "sysconf"));
  return real(name);
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  bytes = rounded(bytes);
  const bool fixed = (flags & MAP_FIXED) != 0;
  if (offset % static_cast<off_t>(kPage) != 0 || (fixed && number(at) % kPage != 0))
    return refused();
  if (!fixed)
    at = place(bytes);
  if (at == MAP_FAILED)
    return at;
  return pointer(syscall(SYS_mmap, at, bytes, protection, flags | MAP_FIXED, file, offset));
}

int munmap(void* at, size_t bytes) noexcept {
  if (number(at) % kPage != 0)
    return refused(), -1;
  return static_cast<int>(syscall(SYS_munmap, at, rounded(bytes)));
}

int madvise(void* at, size_t bytes, int advice) noexcept {
  if (number(at) % kPage != 0)
    return refused(), -1;
  return static_cast<int>(syscall(SYS_madvise, at, rounded(bytes), advice));
}

void* mremap(void* at, size_t before, size_t after, int flags, ...) noexcept {
  if (number(at) % kPage != 0 || flags != MREMAP_MAYMOVE)
    return refused();
  void* const to = place(rounded(after));
  if (to == MAP_FAILED)
    return to;
  return pointer(
      syscall(SYS_mremap, at, rounded(before), rounded(after), MREMAP_MAYMOVE | MREMAP_FIXED, to));
}
}
