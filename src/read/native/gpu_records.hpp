// Walks the blocks and records of a GPU stream. Format: wire/gpu.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "wire/gpu.hpp"

namespace rangescope::read::native {

/// One record inside its block; only the bytes of its stated size are looked at.
class GpuRecord {
 public:
  explicit GpuRecord(std::span<const std::byte> bytes) : bytes_(bytes) {
    std::memcpy(&head_, bytes.data(), sizeof head_);
  }

  [[nodiscard]] const wire::gpu::RecordHeader& head() const { return head_; }
  /// The record as a struct; fields beyond its end read as zero (an older writer knew fewer).
  template <typename Record>
  [[nodiscard]] Record as() const {
    Record record{};
    std::memcpy(static_cast<void*>(&record), bytes_.data(), std::min(sizeof record, bytes_.size()));
    return record;
  }
  /// The 8-byte extension number `index` behind a struct of `size` bytes, or 0.
  [[nodiscard]] std::uint64_t extension(std::size_t size, std::size_t index) const {
    std::uint64_t value = 0;
    if (size + index * 8 + 8 <= bytes_.size())
      std::memcpy(&value, bytes_.data() + size + index * 8, sizeof value);
    return value;
  }
  /// `length` bytes behind a struct of `size` bytes, cut at the record's end.
  [[nodiscard]] std::string_view text(std::size_t size, std::size_t length) const {
    if (size >= bytes_.size())
      return {};
    return {reinterpret_cast<const char*>(bytes_.data()) + size,
            std::min(length, bytes_.size() - size)};
  }

 private:
  std::span<const std::byte> bytes_;
  wire::gpu::RecordHeader head_{};
};

struct GpuDamage {
  std::size_t torn_bytes = 0;   ///< behind the last whole block
  std::size_t bad_records = 0;  ///< blocks left early because a record contradicted itself
};

/// Calls `visit(GpuRecord)` for every record of every whole block after the file's header.
template <typename Visit>
GpuDamage visit_gpu_records(std::span<const std::byte> file,
                            std::size_t header_bytes,
                            Visit&& visit) {
  GpuDamage damage;
  std::size_t offset = header_bytes;
  while (offset < file.size()) {
    wire::gpu::BlockHeader block{};
    if (file.size() - offset < sizeof block)
      break;
    std::memcpy(&block, file.data() + offset, sizeof block);
    const std::size_t body = offset + sizeof block;
    if (block.magic != wire::gpu::kBlockMagic || block.bytes % 8 != 0 ||
        block.bytes > file.size() - body ||
        wire::gpu::checksum(file.data() + body, block.bytes) != block.checksum) {
      break;
    }
    std::span<const std::byte> rest = file.subspan(body, block.bytes);
    while (rest.size() >= sizeof(wire::gpu::RecordHeader)) {
      wire::gpu::RecordHeader head{};
      std::memcpy(&head, rest.data(), sizeof head);
      const std::size_t size = std::size_t{head.words} * 8;
      if (size < sizeof head || size > rest.size()) {
        ++damage.bad_records;
        break;
      }
      visit(GpuRecord(rest.first(size)));
      rest = rest.subspan(size);
    }
    offset = body + block.bytes;
  }
  damage.torn_bytes = file.size() - std::min(offset, file.size());
  return damage;
}

}  // namespace rangescope::read::native
