#include "inject/cupti/aside.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "inject/nvtx/setting.hpp"
#include "wire/names.hpp"
#include "wire/samples.hpp"

namespace rangescope::inject::cupti {
namespace {

char path[640] = {};
int file = -1, holders = 0;

}  // namespace

void find_sampler() {
  const char* folder = setting(wire::kDir);
  if (folder == nullptr)
    return;
  const int length = std::snprintf(
      path, sizeof path, "%s/%s/%s", folder, wire::samples::kFolder, wire::samples::kAsideFile);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path)
    path[0] = '\0';
}

void claim_device() {
  if (holders++ > 0 || path[0] == '\0')
    return;
  file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return;
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(file, F_SETLK, &lock) != 0)
    return;
  for (int tries = 0; tries < 500; ++tries) {
    char state = 0;
    if (::pread(file, &state, 1, 0) == 1 && state == '1')
      return;
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

void release_device() {
  if (holders == 0 || --holders > 0 || file < 0)
    return;
  ::close(std::exchange(file, -1));
}

}  // namespace rangescope::inject::cupti
