#include "read/native/chunks.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace rangescope::read::native {
namespace {

namespace record = wire::native;

constexpr std::size_t kPage = record::kPage;

bool chunk_at(std::span<const std::byte> file, std::size_t at, record::ChunkHeader& header) {
  if (at + sizeof header > file.size())
    return false;
  std::memcpy(&header, file.data() + at, sizeof header);
  return header.magic == record::kChunkMagic && header.bytes >= kPage && header.bytes % kPage == 0;
}

// No chunk begins here: zeros, but for the rest of a header whose magic was to be stored when the
// process died.
bool is_hole(std::span<const std::byte> file, std::size_t at) {
  const std::size_t end = std::min(file.size(), at + kPage);
  std::uint32_t magic = 0;
  std::memcpy(&magic, file.data() + at, std::min(sizeof magic, end - at));
  if (magic != 0)
    return false;
  at = std::min(end, at + sizeof(record::ChunkHeader));
  return std::all_of(file.begin() + static_cast<std::ptrdiff_t>(at),
                     file.begin() + static_cast<std::ptrdiff_t>(end),
                     [](std::byte b) { return b == std::byte{0}; });
}

// Where the records of [begin, end) end: at the first zero word, or where a record does not fit.
std::size_t data_end(std::span<const std::byte> file, std::size_t begin, std::size_t end) {
  std::size_t offset = begin;
  while (offset + sizeof(record::RecordHeader) <= end) {
    record::RecordHeader head;
    std::memcpy(&head, file.data() + offset, sizeof head);
    if (head.words == 0 || offset + std::size_t{head.words} * 8 > end)
      break;
    offset += std::size_t{head.words} * 8;
  }
  return offset;
}

}  // namespace

std::vector<std::filesystem::path> entries_in(const std::filesystem::path& folder,
                                              const char* suffix,
                                              const char* below) {
  std::vector<std::filesystem::path> found;
  for (const auto& place : {folder / below, folder / "native" / below}) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(place, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() == suffix)
        found.push_back(entry->path());
    }
    if (!found.empty())
      break;
  }
  std::ranges::sort(found);
  return found;
}

bool is_trace(std::span<const std::byte> file) {
  return file.size() >= sizeof record::kMagic &&
         std::memcmp(file.data(), record::kMagic, sizeof record::kMagic) == 0;
}

std::span<const std::byte> used_part(std::span<const std::byte> file) {
  record::FileHeader header{};
  if (file.size() < sizeof header)
    return file;
  std::memcpy(&header, file.data(), sizeof header);
  return file.first(record::written_bytes(header, file.size()));
}

Chunks find_chunks(std::span<const std::byte> file, const Release& release) {
  Chunks found;
  std::memcpy(&found.header, file.data(), std::min(file.size(), sizeof found.header));
  found.header_whole = file.size() >= sizeof found.header;
  std::size_t offset = kPage;
  if (found.header.header_bytes >= kPage && found.header.header_bytes % kPage == 0 &&
      found.header.header_bytes <= file.size()) {
    offset = found.header.header_bytes;
  }
  while (offset < file.size()) {
    record::ChunkHeader header;
    if (!chunk_at(file, offset, header)) {
      if (!is_hole(file, offset))
        ++found.damaged_pages;
      offset += kPage;
      continue;
    }
    std::size_t end = file.size();
    if (header.bytes <= file.size() - offset)
      end = offset + header.bytes;
    else
      found.truncated_bytes += header.bytes - (file.size() - offset);
    const std::size_t begin = offset + sizeof header;
    // A chunk whose size is damaged would swallow its neighbours: look for them behind its last
    // record.
    std::size_t next = (data_end(file, begin, end) + kPage - 1) / kPage * kPage;
    record::ChunkHeader other;
    while (next < end && !chunk_at(file, next, other))
      next += kPage;
    if (next < end) {
      ++found.damaged_pages;
      end = next;
    }
    found.list.push_back({header.stream, header.sequence, header.tid, begin, end});
    if (release)
      release(file.subspan(offset, end - offset));
    offset = std::max(end, offset + kPage) / kPage * kPage;
    if (end % kPage != 0)
      break;
  }
  // Cut between two chunks. A process counts a chunk when its file has room for it.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  if (found.header_whole && found.header.used_bytes > file.size() &&
      found.header.used_bytes < kMost)
    found.truncated_bytes = std::max(found.truncated_bytes, found.header.used_bytes - file.size());
  std::ranges::stable_sort(found.list, [](const Chunk& a, const Chunk& b) {
    return std::tie(a.stream, a.sequence) < std::tie(b.stream, b.sequence);
  });
  for (std::size_t i = 0; i < found.list.size(); ++i) {
    const bool first = i == 0 || found.list[i - 1].stream != found.list[i].stream;
    const std::uint32_t expected = first ? 0 : found.list[i - 1].sequence + 1;
    if (found.list[i].sequence != expected)
      ++found.missing;
  }
  return found;
}

}  // namespace rangescope::read::native
