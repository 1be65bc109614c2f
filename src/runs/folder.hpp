// A folder held open. What lies below it is reached one name at a time from its descriptor, so that no link and no
// other mount leads out, whatever somebody else does to the paths meanwhile.
#pragma once

#include <filesystem>
#include <string>

#include "base/fs.hpp"
#include "base/result.hpp"

namespace rangescope::runs {

class Folder {
 public:
  /// The folder of that path; its own last component may not be a link. kNoInput, kPermission or kIo.
  [[nodiscard]] static base::Result<Folder> open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// The folder `name` in it; kIo where that is a link, a mount or no folder.
  [[nodiscard]] base::Result<Folder> enter(const std::string& name) const;
  /// The same, made (0700) where there is none.
  [[nodiscard]] base::Result<Folder> make(const std::string& name) const;
  /// A new folder whose name begins with `begin` and was free.
  [[nodiscard]] base::Result<Folder> make_new(const std::string& begin) const;
  /// The descriptor of a new file (0600), the caller's to close; kIo where the name is taken.
  [[nodiscard]] base::Result<int> create(const std::string& name) const;
  /// Renames `from` (in this folder) to `to`; kUsage where there is something of that name.
  [[nodiscard]] base::Result<void> rename(const std::string& from, const std::string& to) const;
  /// Removes the folder `name` and all below it. Links are removed and not followed. kUsage, with nothing removed,
  /// where something is mounted below.
  [[nodiscard]] base::Result<void> remove(const std::string& name) const;

 private:
  Folder(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
  base::Descriptor fd_;
  std::filesystem::path path_;
};

}  // namespace rangescope::runs
