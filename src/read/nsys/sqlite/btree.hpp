// Rows of a SQLite table, decoded from the pages of a mapped file
// (https://www.sqlite.org/fileformat2.html).
//
// Why: stepping ten million rows through the C API costs four times as much as decoding them here.
// What this reads:
//
//   file    header of 100 bytes: magic, page size at 16 (1 means 65536), read version at 19 (1
//   rollback journal, 2 WAL),
//           reserved bytes a page at 20, text encoding at 56 (1 UTF-8); then pages of that size,
//           numbered from 1
//   page    type byte (0x05 interior, 0x0d leaf of a table), cell count at 3, cell pointers from 8
//   (leaf) or 12
//           (interior, with the right-most child at 8); page 1 has the file header in front
//   cell    interior: child page, rowid varint. Leaf: payload size varint, rowid varint, payload;
//   what does not fit goes
//           to a chain of overflow pages whose first four bytes name the next
//   record  header size varint, one serial type varint a column, then the values, big-endian
//
// Every offset is checked against its page and the file, every page is visited at most once,
// nothing is allocated by what the file claims (a table's page list is bounded by the file's own
// size). Whatever is not plain (WAL, UTF-16, WITHOUT ROWID, a value missing from a record whose
// column has a default, a damaged page) is refused, never guessed: the caller then reads through
// the SQLite library, which knows.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::read::nsys_sqlite {

// One cell of a table row, wherever it was read from.

enum class Type : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };

/// `bits` holds an integer or the bits of a double; text and blobs point into the source and die
/// with the row.
struct Value {
  std::int64_t bits = 0;
  const char* bytes = nullptr;
  std::uint32_t size = 0;
  Type type = Type::kNull;

  [[nodiscard]] bool null() const { return type == Type::kNull; }
  [[nodiscard]] bool integer() const { return type == Type::kInteger; }
  /// The integer, or `otherwise` for anything else (a REAL is cut).
  [[nodiscard]] std::int64_t as_int(std::int64_t otherwise = 0) const {
    if (type == Type::kInteger)
      return bits;
    return otherwise;
  }
  [[nodiscard]] double as_double() const {
    if (type == Type::kReal)
      return std::bit_cast<double>(bits);
    if (type == Type::kInteger)
      return static_cast<double>(bits);
    return 0;
  }
  [[nodiscard]] std::string_view text() const {
    if (type != Type::kText && type != Type::kBlob)
      return {};
    return {bytes, size};
  }
};

/// How the decoder treats one wanted column of a table. A column is wanted at most once.
struct Wanted {
  int column =
      -1;  ///< position in the record; -1 for a column that the table does not have: always NULL
  bool rowid = false;  ///< INTEGER PRIMARY KEY: the value is the rowid
  bool real = false;   ///< REAL affinity: integers stored to save space come out as doubles
  bool default_value =
      false;  ///< has a DEFAULT other than NULL: a record too short for it is refused
};

class Btree {
 public:
  /// Checks the header. `unusual()` is the reason why the file cannot be read this way; empty when
  /// it can.
  explicit Btree(std::span<const std::byte> file);
  [[nodiscard]] const std::string& unusual() const { return unusual_; }

  /// The leaf pages of the table rooted at `root`, in key order. False (with unusual()) when the
  /// tree is damaged.
  [[nodiscard]] bool leaves(std::uint32_t root, std::vector<std::uint32_t>& out);
  /// A guess at the rows of these leaves, from a few of them; bounded by what pages can hold.
  [[nodiscard]] std::size_t estimate_rows(std::span<const std::uint32_t> leaves) const;

  /// Calls `row(const Value*)` for each row of the leaves in order. False (with unusual()) at the
  /// first thing that is not plain; rows seen until then were handed out.
  template <class Row>
  [[nodiscard]] bool scan(std::span<const std::uint32_t> leaves,
                          std::span<const Wanted> wanted,
                          Row&& row);

 private:
  struct Cell {
    const std::byte* payload = nullptr;  ///< eight bytes behind it can be read too
    std::uint64_t size = 0;
    std::int64_t rowid = 0;
  };
  [[nodiscard]] bool refuse(std::string reason);
  [[nodiscard]] const std::byte* page(std::uint32_t number) const {
    if (number == 0 || number > pages_)
      return nullptr;
    return file_.data() + (number - 1) * page_size_;
  }
  /// Of the b-tree's header in a page: the first page begins with the file's own.
  [[nodiscard]] static std::size_t header_offset(std::uint32_t page) {
    if (page == 1)
      return 100;
    return 0;
  }
  [[nodiscard]] bool cell(const std::byte* page, std::size_t offset, Cell& out);
  [[nodiscard]] bool overflow(const std::byte* local, std::size_t local_size, std::uint64_t size);
  /// Where the value of a record's column goes, for every column up to the last wanted one.
  struct Step {
    std::int32_t out = -1;  ///< index into the row, -1 to skip the column
    bool real = false, default_value = false;
  };
  [[nodiscard]] bool decode(const Cell& cell, Value* out);
  void plan(std::span<const Wanted> wanted);
  void release(std::uint32_t before);

  std::span<const std::byte> file_;
  std::uint64_t page_size_ = 0, usable_ = 0, pages_ = 0;
  std::string unusual_;
  std::vector<std::byte>
      spill_;  ///< a payload put together from overflow pages, or one with room behind it
  std::vector<Step> steps_;
  std::vector<std::int32_t> rowids_;  ///< indexes into the row that hold the rowid
  std::uint64_t released_ = 0;
};

[[nodiscard]] inline std::uint32_t be16(const std::byte* p) {
  return static_cast<std::uint32_t>(p[0]) << 8 | static_cast<std::uint32_t>(p[1]);
}
[[nodiscard]] inline std::uint32_t be32(const std::byte* p) {
  return be16(p) << 16 | be16(p + 2);
}

template <class Row>
bool Btree::scan(std::span<const std::uint32_t> leaves, std::span<const Wanted> wanted, Row&& row) {
  std::vector<Value> values(wanted.size());
  plan(wanted);
  std::uint32_t done = 0;
  for (const std::uint32_t number : leaves) {
    const std::byte* at = page(number);
    const std::size_t head = header_offset(number);
    const std::size_t cells = be16(at + head + 3);
    if (head + 8 + cells * 2 > usable_)
      return refuse("cell pointers beyond page " + std::to_string(number));
    for (std::size_t i = 0; i < cells; ++i) {
      Cell found;
      if (!cell(at, be16(at + head + 8 + i * 2), found))
        return false;
      if (!decode(found, values.data()))
        return false;
      row(static_cast<const Value*>(values.data()));
    }
    if (++done % 2048 == 0)
      release(number);
  }
  return true;
}

}  // namespace rangescope::read::nsys_sqlite
