// Files: read whole, write whole and atomically, map read-only, find on PATH.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace rangescope::base {

/// Owns a descriptor; below 0 it is none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// The whole file, or what a pipe gives until it ends. kNoInput when it is not there, kIo when
/// reading fails.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path);
// The others read regular files only, which somebody else may have put there: neither a pipe nor
// /proc/kmsg, which looks like a file, makes them wait. kNoInput, kPermission, kIo.
/// At most `most` bytes; a larger one is kBadData.
[[nodiscard]] Result<std::string> read_regular(const std::filesystem::path& path, std::size_t most);
/// The first bytes, at most `size`.
[[nodiscard]] Result<std::string> read_head(const std::filesystem::path& path, std::size_t size);
/// One piece after another of at most 1 MiB.
[[nodiscard]] Result<void> read_pieces(const std::filesystem::path& path,
                                       const std::function<void(std::string_view)>& piece);

/// All of them, whatever interrupts; false where that cannot be, with errno.
[[nodiscard]] bool write_all(int fd, std::string_view bytes);

/// A file that takes another's place: written in the same folder under a name of its own and
/// renamed by commit(), so that a reader sees the old file or the new one; without commit() nothing
/// stays. Only a plain file is replaced: a folder, device, pipe or link is refused (kUsage), and
/// the new file has the mode of the old one.
class Replacement {
 public:
  [[nodiscard]] static Result<Replacement> begin(const std::filesystem::path& path);
  /// Where it is written: for libraries that open it themselves.
  [[nodiscard]] const std::string& temporary() const { return *temporary_; }
  [[nodiscard]] Result<void> write(std::string_view bytes);
  [[nodiscard]] Result<void> commit();

 private:
  struct Remove {
    void operator()(std::string* name) const;
  };
  Replacement() = default;
  std::filesystem::path path_, target_;  ///< as it was named; where it lies
  std::unique_ptr<std::string, Remove> temporary_;
  unsigned mode_ = 0;
  Descriptor fd_;
};

/// The bytes as a Replacement.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);

/// A file mapped read-only; the mapping lives as long as the object. An empty file maps to an empty
/// span.
class Mapping {
 public:
  [[nodiscard]] static Result<Mapping> open(const std::filesystem::path& path);
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(text()));
  }
  [[nodiscard]] std::string_view text() const { return {data_.get(), data_.get_deleter().size}; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(char* data) const;
  };
  Mapping() = default;
  std::unique_ptr<char, Unmap> data_;
};

/// A file that may be executed.
[[nodiscard]] bool runnable(const std::filesystem::path& path);
/// The executable that a shell would run for `name` ("" or absolute when it holds a slash); nothing
/// when there is none.
[[nodiscard]] std::optional<std::filesystem::path> find_on_path(std::string_view name);

/// The path of the running executable.
[[nodiscard]] std::filesystem::path self_path();

/// What rangescope remembers for this user between runs: $XDG_STATE_HOME/rangescope, else
/// ~/.local/state/rangescope. It may not exist yet; "" where neither variable names one.
[[nodiscard]] std::filesystem::path state_folder();

/// `name` made fit for one path component: letters, digits, '.', '_' and '-' stay, the rest becomes
/// '_', at most 100 bytes; a hash is appended whenever something was changed, so that different
/// names never collide.
[[nodiscard]] std::string sanitize_component(std::string_view name);

}  // namespace rangescope::base
