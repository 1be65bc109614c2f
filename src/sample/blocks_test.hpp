// What a file of blocks holds, for unit tests.
#pragma once

#include <zstd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "wire/samples.hpp"

namespace rangescope::sample::written {

struct Block {
  wire::samples::Type type{};
  std::uint32_t items = 0;
  std::string bytes;  ///< unpacked
};

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class Value>
Value value_at(std::string_view bytes, std::size_t offset) {
  Value value{};
  std::memcpy(&value, bytes.substr(offset).data(), sizeof value);
  return value;
}

/// Up to the first block that does not end in the file, or whose checksum differs.
inline std::vector<Block> blocks_of(const std::filesystem::path& file) {
  using wire::samples::BlockHeader;
  const std::string bytes = bytes_of(file);
  std::vector<Block> blocks;
  std::size_t offset = sizeof(wire::samples::FileHeader);
  while (bytes.size() >= offset + sizeof(BlockHeader)) {
    const auto header = value_at<BlockHeader>(bytes, offset);
    offset += sizeof header;
    const bool is_whole = bytes.size() - offset >= header.packed_bytes;
    if (header.magic != wire::samples::kBlockMagic || !is_whole)
      break;
    const char* packed = bytes.data() + offset;
    if (wire::samples::checksum(packed, header.packed_bytes) != header.checksum)
      break;
    std::string raw(header.raw_bytes, '\0');
    if (ZSTD_decompress(raw.data(), raw.size(), packed, header.packed_bytes) != raw.size())
      break;
    blocks.push_back({header.type, header.items, std::move(raw)});
    offset += header.packed_bytes;
  }
  return blocks;
}

inline std::vector<Block> blocks_of(const std::filesystem::path& file, wire::samples::Type type) {
  std::vector<Block> blocks = blocks_of(file);
  std::erase_if(blocks, [&](const Block& block) { return block.type != type; });
  return blocks;
}

/// Events of a kind as "COUNT TEXT".
inline std::vector<std::string> events_of(const std::filesystem::path& file,
                                          wire::samples::EventKind kind) {
  using wire::samples::Event;
  std::vector<std::string> events;
  for (const Block& block : blocks_of(file, wire::samples::Type::kEvent)) {
    const auto event = value_at<Event>(block.bytes, 0);
    if (event.kind == kind)
      events.push_back(std::to_string(event.count) + " " + block.bytes.substr(sizeof event));
  }
  return events;
}

}  // namespace rangescope::sample::written
