// Whose a run is while it goes on, and who may read it.
//
// A run in progress is held by a lock on its file `.lock` (an open file description lock: the
// kernel drops it with the process, however that ends). A process id would say nothing to another
// container or machine that shares the folder.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "base/result.hpp"

namespace rangescope::runs {

class Hold {
 public:
  Hold() = default;
  /// Takes the lock. A file system without locks, or a process without
  /// descriptors to spare (ulimit -n), is no failure: then status.json's process id decides.
  [[nodiscard]] static base::Result<Hold> take(const std::filesystem::path& run);
  Hold(Hold&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  Hold& operator=(Hold&& other) noexcept;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();  ///< releases it and removes the file

 private:
  Hold(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::filesystem::path path_;
  int fd_ = -1;
};

/// True while a process works on the run, false afterwards; nothing where no lock was ever taken,
/// or the system does not say.
[[nodiscard]] std::optional<bool> is_held(const std::filesystem::path& run);

/// Lets group and others read the run as the umask allows; a run directory is private (0700)
/// otherwise.
[[nodiscard]] base::Result<void> share(const std::filesystem::path& run);
/// Gives every file and folder in it what the run directory itself allows: 0600 and 0700 in a
/// private one. Tools write with modes of their own. What does not belong to this user is left as
/// it is.
void seal(const std::filesystem::path& run);

}  // namespace rangescope::runs
