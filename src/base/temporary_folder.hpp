// A folder of our own below $TMPDIR (or /tmp), which goes with the object. path() is empty where
// none could be made.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace rangescope::base {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(
      const std::string& name) {  ///< `name`: what it begins with, for people who find it
    std::error_code error;
    std::string pattern =
        (std::filesystem::temp_directory_path(error) / (name + "-XXXXXX")).string();
    if (!error && ::mkdtemp(pattern.data()) != nullptr)
      path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty())
      std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace rangescope::base
