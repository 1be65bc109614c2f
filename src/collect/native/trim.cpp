#include "collect/native/trim.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/held_folder.hpp"
#include "base/process_tree.hpp"
#include "wire/control.hpp"
#include "wire/native.hpp"

namespace rangescope::collect::native {
namespace {

namespace fs = std::filesystem;

/// Also true for a zombie: the init of a container may not reap orphans.
bool has_ended(pid_t pid) {
  if (::kill(pid, 0) != 0)
    return errno == ESRCH;
  const auto process = base::process_at(pid);
  return process && base::process_has_ended(*process);
}

/// Trims a capture whose process has ended. Returns whether the process still runs.
bool trim(const fs::path& path) {
  const int file =
      ::open(base::in_place(path).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return false;
  bool running = false;
  wire::native::FileHeader header{};
  struct stat found {};
  if (::fstat(file, &found) == 0 && S_ISREG(found.st_mode) &&
      ::pread(file, &header, sizeof header, 0) == sizeof header &&
      wire::native::written_bytes(header, static_cast<std::uint64_t>(found.st_size)) ==
          header.used_bytes) {
    running = !has_ended(static_cast<pid_t>(header.pid));
    if (!running)
      (void)!::ftruncate(file, static_cast<off_t>(header.used_bytes));
  }
  ::close(file);
  return running;
}

}  // namespace

std::size_t trim_captures(const fs::path& folder) {
  std::size_t running = 0;
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == wire::native::kSuffix) {
      const bool is_running = trim(path);
      if (is_running)
        ++running;
      continue;
    }
    const bool is_window = path.filename().string().starts_with(wire::control::kWindow);
    if (is_window && !entry->is_symlink(ignored))
      running = std::max(running, trim_captures(path));  // the same processes
  }
  return running;
}

}  // namespace rangescope::collect::native
