// A folder held open. What lies below it is reached one name at a time from its descriptor, so that
// no link and no other mount leads out, whatever somebody else does to the paths meanwhile.
#pragma once

#include <filesystem>
#include <string>

#include "base/fs.hpp"
#include "base/result.hpp"

namespace rangescope::runs {

class Folder {
 public:
  /// The folder of that path; its own last component may not be a link. kNoInput, kPermission or
  /// kIo.
  [[nodiscard]] static base::Result<Folder> open(const std::filesystem::path& path);

  /// The folder `name` in it; kIo where that is a link, a mount or no folder.
  [[nodiscard]] base::Result<Folder> enter(const std::string& name) const;
  /// Removes the folder `name` and all below it. Links are removed and not followed. kUsage, with
  /// nothing removed, where something is mounted below.
  [[nodiscard]] base::Result<void> remove(const std::string& name) const;

 private:
  Folder(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
  base::Descriptor fd_;
  std::filesystem::path path_;
};

}  // namespace rangescope::runs
