// Which correlation ids matter, and which launch each belongs to.
//
// A sparse bit set over (process, correlation id) in blocks of 1024 ids, with a rank per block: dense ids cost
// an eighth of a byte each, and even the sparsest no more than 200. Adding, rank and lookup are O(1) expected; ids come
// nearly in order, so that lookups stay in cache where a hash of 10 million ids would miss on each.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "model/range.hpp"
#include "read/nsys/sqlite/dictionary.hpp"

namespace rangescope::read::nsys_sqlite {

class Correlations {
 public:
  void add(std::uint64_t process, std::uint32_t id) {
    Block& block = blocks_at(process, id >> 10);
    block.bits[id >> 6 & 15] |= std::uint64_t{1} << (id & 63);
  }
  /// Everything in `other` too; ids of the process `from` become ids of `to`.
  void merge(const Correlations& other, std::uint64_t from, std::uint64_t to);
  /// Ends adding: numbers the ids in order of block and id.
  void seal();
  /// The position of an id among all, or kNone when it was not added. Only after seal().
  [[nodiscard]] std::uint32_t rank(std::uint64_t process, std::uint32_t id) const {
    const std::int64_t number = numbers_.find({process, id >> 10});
    if (number < 0) return model::kNone;
    const Block& block = blocks_[static_cast<std::size_t>(number)];
    const std::size_t word = id >> 6 & 15;
    const std::uint64_t bit = std::uint64_t{1} << (id & 63);
    if ((block.bits[word] & bit) == 0) return model::kNone;
    return block.base + block.before[word] + static_cast<std::uint32_t>(std::popcount(block.bits[word] & (bit - 1)));
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  void clear();

 private:
  struct Key {
    std::uint64_t process;
    std::uint64_t block;
  };
  struct Block {
    std::array<std::uint64_t, 16> bits{};
    std::array<std::uint16_t, 16> before{};
    std::uint32_t base = 0;
  };
  Block& blocks_at(std::uint64_t process, std::uint64_t block) {
    const std::uint32_t number = numbers_.number({process, block});
    if (number == blocks_.size()) blocks_.emplace_back();
    return blocks_[number];
  }

  Dictionary<Key> numbers_;
  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

}  // namespace rangescope::read::nsys_sqlite
