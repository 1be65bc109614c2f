#include "runs/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostLevels = 256;

tl::unexpected<base::Error> folder_error(const std::string& what, const fs::path& path) {
  if (errno == EXDEV)
    return base::fail(base::Code::kUsage,
                      what + ": another file system is mounted there",
                      path.string(),
                      "Unmount it first; nothing was changed.");
  base::Code code = base::Code::kIo;
  if (errno == ENOENT)
    code = base::Code::kNoInput;
  if (base::is_write_permission_error(errno))
    code = base::Code::kPermission;
  return base::fail(code, what + ": " + std::strerror(errno), path.string());
}

bool are_on_one_device(int folder, int other) {
  struct stat status {};
  struct stat other_status {};
  if (::fstat(folder, &status) != 0 || ::fstat(other, &other_status) != 0)
    return false;
  return status.st_dev == other_status.st_dev;
}

// openat2 knows bind mounts too (Linux 5.6). Without it, or where a filter refuses it, the device
// must be the same.
int open_below(int folder, const char* name) {
  open_how how{};
  how.flags = kFolderFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  const auto fd = static_cast<int>(::syscall(SYS_openat2, folder, name, &how, sizeof how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
    return fd;
  const int plain = ::openat(folder, name, kFolderFlags);
  if (plain < 0 || are_on_one_device(folder, plain))
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
  if (twin < 0)
    return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(twin), ::closedir);
  if (!stream)
    return ::close(twin), false;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..")
      continue;
    struct stat status {};
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      return false;
    if (S_ISDIR(status.st_mode))
      found.folders.push_back(name);
    else
      found.others.push_back(name);
  }
  return errno == 0;
}

/// Empties a folder, depth first. Each level holds a descriptor, so that what lies deeper than
/// kMostLevels is moved up into the folder itself and emptied from there in another turn.
class Emptying {
 public:
  Emptying(int folder, fs::path path) : folder_(folder), failed_at_(std::move(path)) {}

  /// Looks whether every folder down to kMostLevels can be entered, and changes nothing. False with
  /// errno on failure.
  bool can_enter_all() {
    deletes_ = false;
    return descend(folder_, 0);
  }
  /// False with errno on failure.
  bool remove_all() {
    deletes_ = true;
    do {
      moved_up_in_turn_ = 0;
      if (!descend(folder_, 0))
        return false;
    } while (moved_up_in_turn_ > 0);
    return true;
  }
  [[nodiscard]] const fs::path& failed_at() const { return failed_at_; }

 private:
  bool descend(int parent, int level) {
    Listing found;
    if (!list(parent, found))
      return false;
    for (const std::string& name : found.folders) {
      failed_at_ /= name;
      if (level < kMostLevels && !remove_folder(parent, name, level))
        return false;
      if (level >= kMostLevels && !move_up(parent, name))
        return false;
      failed_at_ = failed_at_.parent_path();
    }
    return !deletes_ || remove_files(parent, found.others);
  }

  bool remove_folder(int parent, const std::string& name, int level) {
    const int folder = open_below(parent, name.c_str());
    if (folder < 0)
      return false;
    const bool emptied = descend(folder, level + 1);
    const int why = errno;
    ::close(folder);
    errno = why;
    return emptied && (!deletes_ || ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0);
  }

  bool move_up(int parent, const std::string& name) {
    if (!deletes_)
      return true;
    for (int number = 0;; ++number) {
      const std::string free_name = ".deep-" + std::to_string(number);
      if (::renameat2(parent, name.c_str(), folder_, free_name.c_str(), RENAME_NOREPLACE) == 0)
        break;
      if (errno != EEXIST)
        return false;
    }
    ++moved_up_in_turn_;
    return true;
  }

  bool remove_files(int parent, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (::unlinkat(parent, name.c_str(), 0) == 0)
        continue;
      failed_at_ /= name;
      return false;
    }
    return true;
  }

  int folder_;
  fs::path failed_at_;  ///< the folder that is being emptied, while nothing has failed
  bool deletes_ = false;
  int moved_up_in_turn_ = 0;
};

}  // namespace

base::Result<Folder> Folder::open(const fs::path& path) {
  const int fd = ::open(path.c_str(), kFolderFlags);
  if (fd < 0)
    return folder_error("cannot open the folder", path);
  return Folder(fd, path);
}

base::Result<Folder> Folder::enter(const std::string& name) const {
  const int fd = open_below(fd_.get(), name.c_str());
  if (fd < 0)
    return folder_error("cannot open the folder", path_ / name);
  return Folder(fd, path_ / name);
}

base::Result<void> Folder::remove(const std::string& name) const {
  const Folder folder = TRY(enter(name));
  Emptying emptying(folder.fd_.get(), path_ / name);
  if (!emptying.can_enter_all() || !emptying.remove_all())
    return folder_error("cannot delete", emptying.failed_at());
  if (::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR) != 0)
    return folder_error("cannot delete", path_ / name);
  return {};
}

}  // namespace rangescope::runs
