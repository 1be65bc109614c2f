// Cuts a JSON document into the members of its root and the elements of its array "traceEvents",
// while it is read.
//
//   {"schemaVersion": 1, "deviceProperties": [...], "traceEvents": [ {...}, {...} ],
//   "displayTimeUnit": "ms"}
//
// Only brackets and strings are looked at; what a piece means is for its reader (simdjson). Memory:
// one block of the file and one piece, whatever the size of the file. Plain and gzip'ed files, and
// bytes in memory. A root that is an array is taken for the events themselves, as old versions of
// PyTorch wrote it.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/owned.hpp"
#include "base/result.hpp"

namespace rangescope::read::kineto {

/// Bytes that may be read behind a piece, as simdjson wants them.
inline constexpr std::size_t kPadding = 64;

struct Piece {
  std::string_view key;  ///< of a member of the root; "" for an event
  std::string_view
      text;  ///< its value; valid until the next call, kPadding bytes behind it may be read
};

class Splitter {
 public:
  /// kNoInput where it cannot be opened.
  [[nodiscard]] static base::Result<Splitter> open(const std::filesystem::path& path);
  /// `text` must stay.
  [[nodiscard]] static Splitter of(std::string_view text);

  /// False at the end, and where the document breaks off or is none (`broken`).
  [[nodiscard]] bool next(Piece& piece);
  /// "" while all is well; else what is wrong at offset().
  [[nodiscard]] const std::string& broken() const { return broken_; }
  /// The same of a trace of which events were read: "the trace ends early, a colon is missing".
  [[nodiscard]] std::string early_end() const;
  /// Bytes of the unpacked document before what is read next.
  [[nodiscard]] std::uint64_t offset() const { return dropped_ + position_; }

 private:
  enum class State : std::uint8_t { kBegin, kMembers, kEvents, kEnd };

  bool fill(std::size_t keep);
  bool skip_blanks(std::size_t& position);
  bool string_end(std::size_t& begin, std::size_t& position);
  bool value(std::string_view& text);
  bool next_item(std::size_t& position, bool after_comma);
  bool member(Piece& piece);
  bool event(Piece& piece);
  bool fail(std::string what);

  base::Owned<gzFile_s, &::gzclose> file_;
  std::string_view memory_;  ///< not yet taken bytes of a text in memory
  std::string buffer_;       ///< the bytes of `size_`, then room for padding
  std::size_t size_ = 0, position_ = 0;
  std::uint64_t dropped_ = 0, most_ = UINT64_MAX;  ///< bytes dropped; that it may have
  State state_ = State::kBegin;
  bool array_root_ = false, first_ = true, damaged_ = false;
  std::string key_, broken_;
};

}  // namespace rangescope::read::kineto
