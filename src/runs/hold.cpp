#include "runs/hold.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/held_folder.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".lock";

flock whole_file(short type) {
  flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

base::Result<Hold> Hold::take(const fs::path& run) {
  const auto path = run / kLockFile;
  const int fd = ::open(
      base::in_place(path).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd < 0)
    return base::fail(base::Code::kIo,
                      std::string("cannot create the file: ") + std::strerror(errno),
                      path.string());
  flock lock = whole_file(F_WRLCK);
  if (::fcntl(fd, F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES)) {
    ::close(fd);
    return base::fail(base::Code::kUsage,
                      "another rangescope works on this run",
                      run.string(),
                      "Wait for its end.");
  }
  const int spare = ::dup(fd);
  if (spare <
      0) {  // the last descriptor that this process may have is needed to write the run's files
    ::unlink(base::in_place(path).c_str());
    ::close(fd);
    return Hold();
  }
  ::close(spare);
  return Hold(path, fd);
}

Hold& Hold::operator=(Hold&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

Hold::~Hold() {
  if (fd_ < 0)
    return;
  ::unlink(base::in_place(path_).c_str());
  ::close(fd_);
}

std::optional<bool> is_held(const fs::path& run) {
  const int fd = ::open((run / kLockFile).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return std::nullopt;
  flock lock = whole_file(F_WRLCK);
  const bool is_known = ::fcntl(fd, F_OFD_GETLK, &lock) == 0;
  ::close(fd);
  if (!is_known)
    return std::nullopt;
  return lock.l_type != F_UNLCK;
}

base::Result<void> share(const fs::path& run) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::chmod(base::in_place(run).c_str(), 0777 & ~mask & ~(S_IWGRP | S_IWOTH)) == 0)
    return {};
  return base::fail(base::Code::kPermission,
                    std::string("cannot be shared: ") + std::strerror(errno),
                    run.string());
}

void seal(const fs::path& path) {
  const fs::path run = base::in_place(path);
  struct stat status {};
  if (::stat(run.c_str(), &status) != 0)
    return;
  const mode_t folder = (status.st_mode & 0755) | 0700, file = folder & 0666;
  std::error_code error;
  auto walk = fs::recursive_directory_iterator(run, error);
  for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    struct stat entry {};
    if (::lstat(walk->path().c_str(), &entry) != 0)
      continue;
    if (S_ISDIR(entry.st_mode))
      (void)::chmod(walk->path().c_str(), folder);
    if (S_ISREG(entry.st_mode))
      (void)::chmod(walk->path().c_str(), file | (entry.st_mode & 0100));
  }
}

}  // namespace rangescope::runs
