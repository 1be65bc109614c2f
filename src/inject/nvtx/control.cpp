#include "inject/nvtx/control.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rangescope::inject::control {

wire::control::Page page;

bool join(const char* folder) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/%s", folder, wire::control::kFile);
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return errno == ENOENT;
  char magic[sizeof page.magic] = {};
  struct stat found {};
  const bool good = fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size == sizeof page &&
                    pread(file, magic, sizeof magic, 0) == sizeof magic &&
                    memcmp(magic, wire::control::kMagic, sizeof magic) == 0 &&
                    mmap(&page, sizeof page, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  close(file);
  return good;
}

bool holds(const void* address) {
  return address >= &page && address < &page + 1;
}

void lost() {
  page.dormant = 1;
}

}  // namespace rangescope::inject::control
