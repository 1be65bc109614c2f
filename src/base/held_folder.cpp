#include "base/held_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace rangescope::base {
namespace {

namespace fs = std::filesystem;

// Of the process, as its working directory is: what is written below does not know of it.
struct Held {
  fs::path path, named;  ///< to compare with, without dots; as it was named
  int fd;
};
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
std::mutex g_guard;
std::vector<Held> g_held;

fs::path whole(const fs::path& path) {
  std::error_code error;
  fs::path out = fs::absolute(path, error).lexically_normal();
  return out.has_filename() ? out : out.parent_path();
}

/// Whose a file is that we make in this folder: servers may take root, or every user, for another
/// one.
uid_t owner_here(int folder) {
  const std::string name = ".owner-" + std::to_string(::getpid());
  const int fd =
      ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat status {};
  const bool is_made = fd >= 0 && ::fstat(fd, &status) == 0;
  if (fd >= 0)
    ::close(fd), ::unlinkat(folder, name.c_str(), 0);
  if (!is_made)
    return ::geteuid();
  return status.st_uid;
}

/// The innermost held folder of `path`, with the remainder in `rest`; under the lock.
const Held* holder(const fs::path& path, fs::path& rest) {
  if (g_held.empty())
    return nullptr;
  const fs::path full = whole(path);
  const Held* nearest = nullptr;
  for (const Held& held : g_held) {
    const auto [above, below] =
        std::mismatch(held.path.begin(), held.path.end(), full.begin(), full.end());
    if (above != held.path.end() ||
        (nearest && nearest->path.native().size() > held.path.native().size()))
      continue;
    nearest = &held;
    rest.clear();
    for (auto part = below; part != full.end(); ++part)
      rest /= *part;
  }
  return nearest;
}

void forget(int fd) {
  const std::lock_guard guard(g_guard);
  std::erase_if(g_held, [&](const Held& held) { return held.fd == fd; });
}

}  // namespace

Result<HeldFolder> HeldFolder::take(const fs::path& path) {
  HeldFolder held;
  const int fd = ::open(in_place(path).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == EMFILE)
    return held;
  if (fd < 0) {
    const Code code = errno == EACCES ? Code::kPermission : Code::kIo;
    return fail(
        code, std::string("cannot open the folder: ") + std::strerror(errno), path.string());
  }
  held.fd_ = fd;
  struct stat status {};
  const int spare = ::dup(fd);
  if (spare < 0)
    return HeldFolder();  // the last descriptor is needed for what is written in it
  ::close(spare);
  bool has_status = ::fstat(fd, &status) == 0;
  if (has_status && status.st_uid == ::geteuid() && (status.st_mode & kOthersWrite) != 0)
    has_status =
        ::fchmod(fd, status.st_mode & 07777 & ~kOthersWrite) == 0 && ::fstat(fd, &status) == 0;
  const bool foreign =
      status.st_uid != ::geteuid() && status.st_uid != 0 && status.st_uid != owner_here(fd);
  std::string problem;
  if (!has_status || (status.st_mode & kOthersWrite) != 0)
    problem = "others may write to this folder";
  if (foreign)
    problem = "this folder belongs to another user";
  if (!problem.empty())
    return fail(
        Code::kPermission, problem, path.string(), "Name a folder that only you can write to");
  std::error_code error;
  const std::lock_guard guard(g_guard);
  g_held.push_back({whole(path), fs::absolute(path, error), fd});
  return held;
}

HeldFolder::HeldFolder(HeldFolder&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
HeldFolder& HeldFolder::operator=(HeldFolder&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
HeldFolder::~HeldFolder() {
  if (fd_ < 0)
    return;
  forget(fd_);
  ::close(fd_);
}

fs::path in_place(const fs::path& path) {
  const std::lock_guard guard(g_guard);
  fs::path rest;
  const Held* held = holder(path, rest);
  if (held == nullptr)
    return path;
  const fs::path handle = "/proc/self/fd/" + std::to_string(held->fd);
  if (::access(handle.c_str(), F_OK) != 0)
    return path;  // no /proc
  return handle / (rest.empty() ? "." : rest);
}

Result<void> still_in_place(const fs::path& path) {
  const std::lock_guard guard(g_guard);
  fs::path rest;
  const Held* held = holder(path, rest);
  struct stat here {
  }, there{};
  if (held == nullptr ||
      (::fstat(held->fd, &here) == 0 && ::lstat(held->named.c_str(), &there) == 0 &&
       here.st_dev == there.st_dev && here.st_ino == there.st_ino))
    return {};
  return fail(Code::kIo,
              "the folder was moved or replaced meanwhile",
              held->path.string(),
              "Keep it where nobody else renames it: --runs DIR");
}

}  // namespace rangescope::base
