// A folder that is held open, in place of its path: another user who may rename folders above it
// (in a team's folder of runs) can put a link or another folder of ours there, and files written
// below the path would land in it.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace rangescope::base {

/// While it lives, in_place() leads what lies below `path` into the folder that was there when it
/// was taken.
class HeldFolder {
 public:
  HeldFolder() = default;
  /// Others lose the right to write to it. kPermission for a folder that belongs to neither this
  /// user nor root, or that others may write to all the same; kIo for a link. A process without a
  /// descriptor to spare (ulimit -n) holds nothing.
  [[nodiscard]] static Result<HeldFolder> take(const std::filesystem::path& path);
  HeldFolder(HeldFolder&& other) noexcept;
  HeldFolder& operator=(HeldFolder&& other) noexcept;
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;
  ~HeldFolder();

 private:
  int fd_ = -1;
};

/// `path`, for whatever creates, replaces, renames, changes or removes files itself: through the
/// held folder that it lies in, else as it is. Not for messages and not for other processes.
[[nodiscard]] std::filesystem::path in_place(const std::filesystem::path& path);

/// kIo where the path of a held folder leads to another folder by now, or to none: no other process
/// may be given it.
[[nodiscard]] Result<void> still_in_place(const std::filesystem::path& path);

}  // namespace rangescope::base
