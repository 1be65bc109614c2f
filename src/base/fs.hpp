// Files: read whole, write whole and atomically, map read-only, find on PATH.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::base {

/// The whole file. kNoInput when it is not there, kIo when reading fails.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path);
/// The first bytes of a file, at most `size`.
[[nodiscard]] Result<std::string> read_head(const std::filesystem::path& path, std::size_t size);
/// Writes beside `path` and renames over it, so that a reader sees the old file or the new one. kIo with errno's text.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view bytes);

/// A file mapped read-only; the mapping lives as long as the object. An empty file maps to an empty span.
class Mapping {
 public:
  [[nodiscard]] static Result<Mapping> open(const std::filesystem::path& path);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  [[nodiscard]] std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  [[nodiscard]] std::string_view text() const { return {static_cast<const char*>(data_), size_}; }

 private:
  Mapping() = default;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The executable that a shell would run for `name` ("" or absolute when it holds a slash); nothing when there is none.
[[nodiscard]] std::optional<std::filesystem::path> find_on_path(std::string_view name);

/// The path of the running executable.
[[nodiscard]] std::filesystem::path self_path();

/// `name` made fit for one path component: letters, digits, '.', '_' and '-' stay, the rest becomes '_', at most 100
/// bytes; a hash is appended whenever something was changed, so that different names never collide.
[[nodiscard]] std::string sanitize_component(std::string_view name);

}  // namespace rangescope::base
