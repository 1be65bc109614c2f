#include "inject/nvtx/control.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/nvtx/capture.hpp"

namespace rangescope::inject::control {

wire::control::Page page;

bool join(const char* folder) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/%s", folder, wire::control::kFile);
  const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return errno == ENOENT;
  char magic[sizeof page.magic] = {};
  struct stat status {};
  const bool is_joined =
      fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == sizeof page &&
      pread(file, magic, sizeof magic, 0) == sizeof magic &&
      memcmp(magic, wire::control::kMagic, sizeof magic) == 0 &&
      mmap(&page, sizeof page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
          MAP_FAILED;
  close(file);
  return is_joined;
}

namespace {

// The first process that has something to count is the one that counts.
bool counting() {
  const auto own_pid = static_cast<std::uint32_t>(getpid());
  std::uint32_t counting_pid = 0;
  const bool is_first = __atomic_compare_exchange_n(
      &page.counts, &counting_pid, own_pid, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return is_first || counting_pid == own_pid;
}

void wake() {
  __atomic_store_n(&page.dormant, wire::control::kWaking, __ATOMIC_RELAXED);
}

}  // namespace

void count(const Name& name) {
  if (name.bytes == 0 || name.bytes >= sizeof page.name)
    return;
  const bool is_counted_name =
      memcmp(name.text, page.name, name.bytes) == 0 && page.name[name.bytes] == '\0';
  if (!is_counted_name || !counting())
    return;
  const std::uint32_t number = __atomic_add_fetch(&page.pushed, 1, __ATOMIC_RELAXED);
  if (number + 1 == page.first)
    wake();
  else if (number == page.first)
    starts();
  else if (number == page.last + 1)
    stops();
}

bool is_called() {
  if (!counting() || __atomic_add_fetch(&page.pushed, 1, __ATOMIC_RELAXED) != 1)
    return false;
  wake();
  return true;
}

void starts() {
  page.start_ns = now_ns();
  __atomic_store_n(&page.dormant, 0, __ATOMIC_RELEASE);
}

void stops() {
  if (page.start_ns == 0 || !counting())
    return;
  page.end_ns = now_ns();
  __atomic_store_n(&page.dormant, wire::control::kDormant, __ATOMIC_RELEASE);
  __atomic_store_n(&page.first, 0, __ATOMIC_RELAXED);
}

bool holds(const void* address) {
  return address >= &page && address < &page + 1;
}

void lost() {
  page.dormant = 1;
}

}  // namespace rangescope::inject::control
