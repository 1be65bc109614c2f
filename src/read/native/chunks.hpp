// The outer layer of a native capture (wire/native.hpp): header and chunks, found even where the
// file is damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "wire/native.hpp"

namespace rangescope::read::native {

/// The records of one chunk: bytes [begin, end) of the file.
struct Chunk {
  std::uint32_t stream = 0;
  std::uint32_t sequence = 0;
  std::uint32_t tid = 0;
  std::size_t begin = 0, end = 0;
};

struct Chunks {
  wire::native::FileHeader
      header{};  ///< what is there of it; zeros behind the end of a truncated file
  bool header_whole = true;
  std::vector<Chunk> list;            ///< by stream, then sequence
  std::uint64_t truncated_bytes = 0;  ///< that chunks claim beyond the end of the file
  std::uint64_t damaged_pages = 0;    ///< pages that are neither a chunk nor a hole
  std::uint64_t missing = 0;          ///< chunks missing between others of their stream
};

/// True when the file begins as a native capture does.
[[nodiscard]] bool is_trace(std::span<const std::byte> file);

/// The part of a file that is in use: captures are made as large as they may become.
[[nodiscard]] std::span<const std::byte> used_part(std::span<const std::byte> file);

/// Receives a part of the file that is not read again for a while: its memory may be released.
using Release = std::function<void(std::span<const std::byte>)>;

/// Walks the file once, looking at the heads of its records. Never fails: damage is counted.
[[nodiscard]] Chunks find_chunks(std::span<const std::byte> file, const Release& release = {});

/// What ends in `suffix` in a folder, or in the folder `native` of a run directory, in order of
/// names; `below`: in that folder of either.
[[nodiscard]] std::vector<std::filesystem::path> entries_in(const std::filesystem::path& folder,
                                                            const char* suffix,
                                                            const char* below = "");

}  // namespace rangescope::read::native
