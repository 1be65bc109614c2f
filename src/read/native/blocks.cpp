#include "read/native/blocks.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <cstring>

#include "base/fs.hpp"
#include "base/progress.hpp"
#include "base/unpacked.hpp"
#include "read/native/chunks.hpp"

namespace rangescope::read::native {

namespace format = wire::samples;

base::Result<BlockReader> BlockReader::open(std::span<const std::byte> file,
                                            const std::string& where,
                                            const char (&magic)[sizeof(format::FileHeader::magic)],
                                            std::uint32_t version,
                                            const std::string& what) {
  const auto bad = [&](std::string why) {
    return base::fail(base::Code::kBadData, std::move(why), where);
  };
  BlockReader reader;
  format::FileHeader& head = reader.head_;
  if (file.size() < sizeof head)
    return bad("too short for " + what);
  std::memcpy(&head, file.data(), sizeof head);
  if (std::memcmp(head.magic, magic, sizeof head.magic) != 0)
    return bad("not " + what);
  if (head.version != version)
    return base::fail(
        base::Code::kBadData,
        fmt::format("{} of format {}, but only {} is known", what, head.version, version),
        where,
        "Read it with the rangescope that wrote it.");
  if (head.header_bytes < sizeof head || head.header_bytes > file.size())
    return bad("a damaged head");
  reader.file_ = file;
  reader.at_ = head.header_bytes;
  return reader;
}

bool BlockReader::next(Block& block) {
  if (torn_ > 0 || at_ >= file_.size())
    return false;
  format::BlockHeader head{};
  const std::size_t left = file_.size() - at_;
  if (left >= sizeof head)
    std::memcpy(&head, file_.data() + at_, sizeof head);
  if (left < sizeof head || head.magic != format::kBlockMagic ||
      head.packed_bytes > left - sizeof head || head.raw_bytes > format::kMostRawBytes) {
    torn_ = left;
    return false;
  }
  const std::byte* packed = file_.data() + at_ + sizeof head;
  raw_total_ += head.raw_bytes;
  block.type = head.type;
  block.items = head.items;
  block.raw.assign(head.raw_bytes, '\0');
  if (format::checksum(packed, head.packed_bytes) != head.checksum ||
      raw_total_ > base::most_unpacked(file_.size()) ||
      ZSTD_decompress(block.raw.data(), block.raw.size(), packed, head.packed_bytes) !=
          block.raw.size()) {
    torn_ = left;
    return false;
  }
  at_ += sizeof head + head.packed_bytes;
  base::Work::done(sizeof head + head.packed_bytes);
  return true;
}

void read_block_files(const std::filesystem::path& folder,
                      const char* suffix,
                      const char* below,
                      const ReadBlocks& read,
                      model::Session& session) {
  for (const std::filesystem::path& path : entries_in(folder, suffix, below)) {
    const auto is_read = base::Mapping::open(path).and_then([&](const base::Mapping& mapping) {
      return read(mapping.bytes(), path.filename().string(), session);
    });
    if (!is_read)
      session.losses.push_back({"unreadable_samples", 1, base::to_string(is_read.error())});
  }
}

}  // namespace rangescope::read::native
