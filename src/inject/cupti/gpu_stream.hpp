// The writer of the GPU stream (format: wire/gpu.hpp): records are collected in memory and appended
// to the file in blocks, one write each. Memory: one block (64 KiB). Not thread-safe: the caller
// holds a lock.
//
// No descriptor stays open, so a program that closes or counts all descriptors is not affected. A
// block that cannot be written is counted and dropped: a full disk costs data, never the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/gpu.hpp"

namespace rangescope::inject::cupti {

class GpuStream {
 public:
  /// Limit of the bytes after a record in put_with: the caller cuts longer names.
  static constexpr std::size_t kMostExtra = 60 * 1024;

  GpuStream& operator=(GpuStream&&) = delete;

  /// Creates `path`, which must not exist. At most `limit` bytes are written to it (0: no limit).
  /// False when the file cannot be made.
  [[nodiscard]] bool open(const char* path,
                          const wire::gpu::FileHeader& header,
                          std::uint64_t limit);
  [[nodiscard]] bool is_open() const { return path_[0] != '\0'; }

  /// Appends a record whose header says its own size, or one with `extra` bytes behind it (padded,
  /// `words` set here).
  void put(const void* record, std::size_t bytes);
  void put_with(wire::gpu::RecordHeader& head,
                std::size_t bytes,
                const void* extra,
                std::size_t extra_bytes);
  template <typename Record>
  void put(Record record) {
    record.head.words = sizeof(Record) / 8;
    put(&record, sizeof record);
  }
  template <typename Record>
  void put_with(Record record, const void* extra, std::size_t extra_bytes) {
    put_with(record.head, sizeof record, extra, extra_bytes);
  }

  /// Writes the collected records.
  void flush();
  /// flush and close; open() may follow.
  void close();

  /// Records that were not written because of the size limit.
  [[nodiscard]] std::uint64_t beyond_limit() const { return beyond_limit_; }
  /// Bytes that the file system refused.
  [[nodiscard]] std::uint64_t failed_bytes() const { return failed_bytes_; }

 private:
  static constexpr std::size_t kCapacity = 64 * 1024;
  /// Memory for a record in the block; null, and counted, beyond the size limit.
  unsigned char* room(const wire::gpu::RecordHeader& head, std::size_t bytes);
  [[nodiscard]] bool append_block(std::size_t bytes);

  char path_[4096] = {};
  std::uint64_t written_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t beyond_limit_ = 0;
  std::uint64_t failed_bytes_ = 0;
  std::size_t used_ = 0;
  alignas(8) unsigned char block_[sizeof(wire::gpu::BlockHeader) + kCapacity];
};

}  // namespace rangescope::inject::cupti
