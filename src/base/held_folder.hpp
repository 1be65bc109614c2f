// A folder that is held open, in place of its path: another user who may rename folders above it
// (in a team's folder of runs) can put a link or another folder of ours there, and files written
// below the path would land in it.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace rangescope::base {

/// While it exists, in_place() resolves paths below `path` within the folder that was there when it
/// was taken.
class HeldFolder {
 public:
  HeldFolder() = default;
  /// Takes the right to write to it from other users. kPermission for a folder that belongs to
  /// neither this user nor root, or that others can still write to; kIo for a link. Holds nothing
  /// if the process has no spare descriptor (ulimit -n).
  [[nodiscard]] static Result<HeldFolder> take(const std::filesystem::path& path);
  HeldFolder(HeldFolder&& other) noexcept;
  HeldFolder& operator=(HeldFolder&& other) noexcept;
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;
  ~HeldFolder();

 private:
  int fd_ = -1;
};

/// `path` by way of the held folder that it lies in, or unchanged. For code that creates, replaces,
/// renames, changes or removes files itself; not for messages or other processes.
[[nodiscard]] std::filesystem::path in_place(const std::filesystem::path& path);

/// kIo if the path of a held folder now leads to another folder or to none. Such a path must not be
/// passed to another process.
[[nodiscard]] Result<void> still_in_place(const std::filesystem::path& path);

}  // namespace rangescope::base
