#include "runs/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace rangescope::runs {
namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostLevels = 256;  // each level of a removal holds a descriptor

tl::unexpected<base::Error> folder_error(const std::string& what, const std::filesystem::path& path) {
  if (errno == EXDEV)
    return base::fail(base::Code::kUsage, what + ": another file system is mounted there", path.string(),
                      "Unmount it first; nothing was changed.");
  const base::Code code = errno == EACCES || errno == EPERM || errno == EROFS ? base::Code::kPermission
                          : errno == ENOENT                                   ? base::Code::kNoInput
                                                                              : base::Code::kIo;
  return base::fail(code, what + ": " + std::strerror(errno), path.string());
}

// openat2 knows bind mounts too (Linux 5.6). Without it, or where a filter refuses it, the device must be the same.
int open_below(int at, const char* name) {
  open_how how{};
  how.flags = kFolderFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  const auto fd = static_cast<int>(::syscall(SYS_openat2, at, name, &how, sizeof how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
  const int plain = ::openat(at, name, kFolderFlags);
  struct stat above {
  }, below{};
  if (plain < 0 || (::fstat(at, &above) == 0 && ::fstat(plain, &below) == 0 && above.st_dev == below.st_dev))
    return plain;
  ::close(plain);
  errno = EXDEV;
  return -1;
}

struct Listing {
  std::vector<std::string> folders, others;
};

// Names in the folder `fd`, which stays open.
bool list(int fd, Listing& found) {
  const int twin = ::openat(fd, ".", kFolderFlags);
  if (twin < 0) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(twin), ::closedir);
  if (!stream) return ::close(twin), false;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status {};
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    (S_ISDIR(status.st_mode) ? found.folders : found.others).push_back(name);
  }
  return errno == 0;
}

/// Depth first; with `really` false it only looks whether every folder can be entered. errno on failure, the place in
/// `at`.
bool empty(int fd, bool really, int level, std::filesystem::path& at) {
  Listing found;
  if (level > kMostLevels) return errno = ELOOP, false;
  if (!list(fd, found)) return false;
  for (const std::string& name : found.folders) {
    at /= name;
    const int below = open_below(fd, name.c_str());
    if (below < 0) return false;
    const bool done = empty(below, really, level + 1, at);
    const int why = errno;
    ::close(below);
    errno = why;
    if (!done || (really && ::unlinkat(fd, name.c_str(), AT_REMOVEDIR) != 0)) return false;
    at = at.parent_path();
  }
  if (!really) return true;
  for (const std::string& name : found.others) {
    if (::unlinkat(fd, name.c_str(), 0) == 0) continue;
    at /= name;
    return false;
  }
  return true;
}

}  // namespace

base::Result<Folder> Folder::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), kFolderFlags);
  if (fd < 0) return folder_error("cannot open the folder", path);
  return Folder(fd, path);
}

base::Result<Folder> Folder::enter(const std::string& name) const {
  const int fd = open_below(fd_.get(), name.c_str());
  if (fd < 0) return folder_error("cannot open the folder", path_ / name);
  return Folder(fd, path_ / name);
}

base::Result<Folder> Folder::make(const std::string& name) const {
  if (::mkdirat(fd_.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
    return folder_error("cannot make the folder", path_ / name);
  return enter(name);
}

base::Result<Folder> Folder::make_new(const std::string& begin) const {
  for (int attempt = 0; attempt < 10000; ++attempt) {
    const std::string name = begin + std::to_string(::getpid()) + "." + std::to_string(attempt);
    if (::mkdirat(fd_.get(), name.c_str(), 0700) == 0) return enter(name);
    if (errno != EEXIST) return folder_error("cannot make the folder", path_ / name);
  }
  return base::fail(base::Code::kIo, "no name is free", (path_ / begin).string());
}

base::Result<int> Folder::create(const std::string& name) const {
  const int fd = ::openat(fd_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return folder_error("cannot create the file", path_ / name);
  return fd;
}

base::Result<void> Folder::rename(const std::string& from, const std::string& to) const {
  int done = ::renameat2(fd_.get(), from.c_str(), fd_.get(), to.c_str(), RENAME_NOREPLACE);
  if (done != 0 && errno == EINVAL)  // this file system cannot; a folder with something in it is never replaced
    done = ::renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str());
  if (done == 0) return {};
  if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR)
    return base::fail(base::Code::kUsage, "there is something of that name already", (path_ / to).string());
  return folder_error("cannot rename", path_ / to);
}

base::Result<void> Folder::remove(const std::string& name) const {
  const Folder folder = TRY(enter(name));
  std::filesystem::path at = path_ / name;
  for (const bool really : {false, true})
    if (!empty(folder.fd_.get(), really, 0, at)) return folder_error("cannot delete", at);
  if (::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR) != 0) return folder_error("cannot delete", at);
  return {};
}

}  // namespace rangescope::runs
