#include "read/nsys/sqlite/btree.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/sqlite.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

constexpr std::byte kInterior{0x05}, kLeaf{0x0d};
constexpr int kMaxDepth = 32;  // a full tree of 2^31 pages is shallower

/// A varint of at most nine bytes; nullptr when it runs past `end`.
inline const std::byte* varint(const std::byte* p, const std::byte* end, std::uint64_t& out) {
  if (p >= end)
    return nullptr;
  const auto first = static_cast<std::uint64_t>(*p);
  if (first < 0x80) {
    out = first;
    return p + 1;
  }
  std::uint64_t value = first & 0x7f;
  for (int i = 1; i < 9; ++i) {
    if (p + i >= end)
      return nullptr;
    const auto byte = static_cast<std::uint64_t>(p[i]);
    if (i == 8) {
      out = value << 8 | byte;
      return p + 9;
    }
    value = value << 7 | (byte & 0x7f);
    if (byte < 0x80) {
      out = value;
      return p + i + 1;
    }
  }
  return nullptr;
}

inline std::uint64_t big_endian(const std::byte* p) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, 8);
  return __builtin_bswap64(word);
}

constexpr std::uint8_t kFixedSize[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

/// How values of serial types below 128 are read. Integers, NULL and the constants 0 and 1 need no
/// branch: eight bytes are loaded big-endian, shifted down, masked, and the constant added.
struct Serial {
  std::uint8_t size = 0, shift = 0;
  Type type = Type::kNull;
  bool simple = false;
  std::int8_t mask = 0, constant = 0;
};
constexpr auto kSerials = [] {
  std::array<Serial, 128> serials{};
  for (std::size_t i = 0; i < serials.size(); ++i) {
    Serial& serial = serials[i];
    const bool is_integer = i >= 1 && i <= 6;
    if (i < 10)
      serial.size = kFixedSize[i];
    else if (i >= 12)
      serial.size = static_cast<std::uint8_t>((i - 12) / 2);
    serial.simple = is_integer || i == 0 || i == 8 || i == 9;
    serial.type = i == 0 ? Type::kNull : Type::kInteger;
    if (is_integer) {
      serial.shift = static_cast<std::uint8_t>(64 - 8 * kFixedSize[i]);
      serial.mask = -1;
    }
    serial.constant = i == 9 ? 1 : 0;
  }
  return serials;
}();

/// Of a REAL, text or a blob.
inline void decode_value(std::uint64_t serial, std::uint64_t size, const std::byte* p, Value& out) {
  if (serial == 7) {
    out.bits = static_cast<std::int64_t>(big_endian(p));
    const auto number = std::bit_cast<double>(out.bits);
    out.type = number != number ? Type::kNull : Type::kReal;
    return;
  }
  out.type = serial % 2 == 0 ? Type::kBlob : Type::kText;
  out.bytes = reinterpret_cast<const char*>(p);
  out.size = static_cast<std::uint32_t>(size);
}

}  // namespace

Btree::Btree(std::span<const std::byte> file) : file_(file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (file.size() < 512 || !base::is_sqlite(bytes)) {
    unusual_ = "no SQLite header";
    return;
  }
  page_size_ = be16(file.data() + 16);
  if (page_size_ == 1)
    page_size_ = 65536;
  if (page_size_ < 512 || (page_size_ & (page_size_ - 1)) != 0) {
    unusual_ = "page size " + std::to_string(page_size_);
    return;
  }
  usable_ = page_size_ - static_cast<std::uint64_t>(file[20]);
  pages_ = std::min<std::uint64_t>(file.size() / page_size_, 0xfffffffeu);
  if (file[18] != std::byte{1} || file[19] != std::byte{1})
    unusual_ = "write-ahead log";
  if (usable_ < 480)
    unusual_ = "reserved bytes";
  if (be32(file.data() + 56) != 1)
    unusual_ = "text encoding " + std::to_string(be32(file.data() + 56));
}

bool Btree::refuse(std::string reason) {
  unusual_ = std::move(reason);
  return false;
}

bool Btree::leaves(std::uint32_t root, std::vector<std::uint32_t>& out) {
  out.clear();
  std::vector<bool> seen(pages_ + 1);
  struct Level {
    std::uint32_t page;
    std::uint32_t next;
  };
  std::vector<Level> stack{{root, 0}};
  while (!stack.empty()) {
    Level& level = stack.back();
    const std::byte* at = page(level.page);
    if (at == nullptr)
      return refuse("page " + std::to_string(level.page) + " lies beyond the file");
    const std::size_t head = header_offset(level.page);
    if (level.next == 0) {
      if (seen[level.page])
        return refuse("page " + std::to_string(level.page) + " is used twice");
      seen[level.page] = true;
      if (at[head] == kLeaf) {
        out.push_back(level.page);
        stack.pop_back();
        continue;
      }
      if (at[head] != kInterior)
        return refuse("page " + std::to_string(level.page) + " is not a table page");
      if (stack.size() > kMaxDepth)
        return refuse("tree too deep");
    }
    const std::uint32_t cells = be16(at + head + 3);
    if (head + 12 + cells * 2u > usable_)
      return refuse("cell pointers beyond page " + std::to_string(level.page));
    if (level.next > cells) {
      stack.pop_back();
      continue;
    }
    std::uint32_t child = 0;
    if (level.next == cells) {
      child = be32(at + head + 8);
    } else {
      const std::uint32_t offset = be16(at + head + 12 + level.next * 2);
      if (offset + 4 > usable_)
        return refuse("cell beyond page " + std::to_string(level.page));
      child = be32(at + offset);
    }
    ++level.next;
    stack.push_back({child, 0});
  }
  release(static_cast<std::uint32_t>(
      pages_));  // touching the few interior pages maps much of the file around them
  released_ = 0;
  return true;
}

std::size_t Btree::estimate_rows(std::span<const std::uint32_t> leaves) const {
  constexpr std::size_t kSamples = 64;
  if (leaves.empty())
    return 0;
  const std::size_t step = std::max<std::size_t>(1, leaves.size() / kSamples);
  std::size_t cells = 0, sampled = 0;
  for (std::size_t i = 0; i < leaves.size(); i += step, ++sampled) {
    const std::byte* header = page(leaves[i]) + header_offset(leaves[i]);
    cells += std::min<std::size_t>(be16(header + 3), usable_ / 4);
  }
  return (cells * leaves.size() / sampled) * 51 / 50 + 16;
}

bool Btree::cell(const std::byte* at, std::size_t offset, Cell& out) {
  const std::byte* end = at + usable_;
  const std::byte* p = at + offset;
  std::uint64_t size = 0, rowid = 0;
  p = varint(p, end, size);
  if (p == nullptr)
    return refuse("cell beyond its page");
  p = varint(p, end, rowid);
  if (p == nullptr)
    return refuse("cell beyond its page");
  out.rowid = static_cast<std::int64_t>(rowid);
  const std::uint64_t max_local = usable_ - 35;
  if (size <= max_local) {
    if (size > static_cast<std::uint64_t>(end - p))
      return refuse("payload beyond its page");
    out.payload = p;
    out.size = size;
    const std::ptrdiff_t bytes_after = file_.data() + file_.size() - (p + size);
    if (bytes_after < 8) {  // decode() loads every value as eight bytes
      spill_.assign(p, p + size);
      spill_.resize(size + 8);
      out.payload = spill_.data();
    }
    return true;
  }
  const std::uint64_t min_local = (usable_ - 12) * 32 / 255 - 23;
  const std::uint64_t split = min_local + (size - min_local) % (usable_ - 4);
  const std::uint64_t local = split <= max_local ? split : min_local;
  if (local + 4 > static_cast<std::uint64_t>(end - p))
    return refuse("payload beyond its page");
  if (!overflow(p, local, size))
    return false;
  out.payload = spill_.data();
  out.size = size;
  return true;
}

bool Btree::overflow(const std::byte* local, std::size_t local_size, std::uint64_t size) {
  if (size > file_.size() || size > 1'000'000'000)
    return refuse("payload larger than the file");
  spill_.clear();
  spill_.reserve(size);
  spill_.insert(spill_.end(), local, local + local_size);
  std::uint32_t next = be32(local + local_size);
  while (spill_.size() < size) {  // at most size / (usable - 4) pages, so a loop of pages ends
    const std::byte* at = page(next);
    if (at == nullptr)
      return refuse("overflow page " + std::to_string(next) + " lies beyond the file");
    const std::size_t take = std::min<std::uint64_t>(usable_ - 4, size - spill_.size());
    spill_.insert(spill_.end(), at + 4, at + 4 + take);
    next = be32(at);
  }
  if (next != 0)
    return refuse("overflow chain too long");
  spill_.resize(size + 8);  // room for decode()
  return true;
}

void Btree::plan(std::span<const Wanted> wanted) {
  steps_.clear();
  rowids_.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Wanted& want = wanted[i];
    if (want.rowid)
      rowids_.push_back(static_cast<std::int32_t>(i));
    if (want.rowid || want.column < 0)
      continue;
    const auto column = static_cast<std::size_t>(want.column);
    if (steps_.size() <= column)
      steps_.resize(column + 1);
    steps_[column] = {static_cast<std::int32_t>(i), want.real, want.default_value};
  }
}

bool Btree::decode(const Cell& cell, Value* out) {
  const std::byte* const end = cell.payload + cell.size;
  std::uint64_t header = 0;
  const std::byte* types = varint(cell.payload, end, header);
  if (types == nullptr || header > cell.size)
    return refuse("record header beyond its payload");
  const std::byte* const types_end = cell.payload + header;
  if (types > types_end)
    return refuse("record header too short");
  const std::byte* body = types_end;
  const Step* step = steps_.data();
  const Step* const steps_end = step + steps_.size();
  for (; step != steps_end && types < types_end; ++step) {
    auto serial = static_cast<std::uint64_t>(*types);
    if (serial < 0x80) {
      ++types;
      const Serial& format = kSerials[serial];
      if (format.size > end - body)
        return refuse("value beyond its payload");
      if (step->out >= 0 && format.simple) {
        Value& value = out[step->out];
        const auto bits = static_cast<std::int64_t>(big_endian(body));
        value.type = format.type;
        value.bits = ((bits >> format.shift) & format.mask) + format.constant;
        if (step->real && format.type == Type::kInteger) {
          value.type = Type::kReal;
          value.bits = std::bit_cast<std::int64_t>(static_cast<double>(value.bits));
        }
        body += format.size;
        continue;
      }
    } else {
      types = varint(types, types_end, serial);
      if (types == nullptr)
        return refuse("serial type beyond its header");
    }
    if (serial == 10 || serial == 11)
      return refuse("reserved serial type");
    const std::uint64_t size = serial < 10 ? kFixedSize[serial] : (serial - 12) / 2;
    if (size > static_cast<std::uint64_t>(end - body))
      return refuse("value beyond its payload");
    if (step->out >= 0)
      decode_value(serial, size, body, out[step->out]);
    body += size;
  }
  for (; step != steps_end; ++step) {  // a record from before a column was added
    if (step->out < 0)
      continue;
    if (step->default_value)
      return refuse("record without a column that has a default");
    out[step->out].type = Type::kNull;
  }
  for (const std::int32_t index : rowids_) {
    out[index].type = Type::kInteger;
    out[index].bits = cell.rowid;
  }
  return true;
}

/// Tells the system that the pages up to `before` are done with, so that a file larger than the
/// memory that we may use can be walked. They stay in the page cache; the other thread's pages in
/// the same span are mapped again at its next touch.
void Btree::release(std::uint32_t before) {
  const std::uint64_t upto = (static_cast<std::uint64_t>(before) - 1) * page_size_ / 65536 * 65536;
  const auto base = reinterpret_cast<std::uintptr_t>(file_.data());
  if (base % 4096 != 0 || upto <= released_)
    return;
  auto* start = const_cast<std::byte*>(file_.data()) + released_;
  (void)madvise(start, upto - released_, MADV_DONTNEED);
  released_ = upto;
}

}  // namespace rangescope::read::nsys_sqlite
