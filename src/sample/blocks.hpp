// A file of compressed blocks with checksums (format: wire/samples.hpp), each appended with one
// write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/result.hpp"
#include "wire/samples.hpp"

namespace rangescope::sample {

class BlockFile {
 public:
  /// Makes the file and writes its head. kIo where that cannot be.
  [[nodiscard]] static base::Result<BlockFile> create(
      const std::filesystem::path& file,
      const char (&magic)[sizeof(wire::samples::FileHeader::magic)],
      std::uint32_t version);
  BlockFile(BlockFile&& other) noexcept;
  BlockFile& operator=(BlockFile&&) = delete;
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;
  ~BlockFile();

  void put(wire::samples::Type type, std::string_view raw, std::uint32_t items);
  /// A block of one event, of now.
  void event(wire::samples::EventKind kind, std::string_view text, std::uint32_t count);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The disk refused: nothing more is written.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  explicit BlockFile(int fd) : fd_(fd) {}
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  bool failed_ = false;
};

/// Nanoseconds of CLOCK_MONOTONIC of the machine (wire/clock.hpp).
[[nodiscard]] std::int64_t now_ns();

}  // namespace rangescope::sample
