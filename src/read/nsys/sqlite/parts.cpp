#include "read/nsys/sqlite/parts.hpp"

namespace rangescope::read::nsys_sqlite {

void Correlations::merge(const Correlations& other, std::uint64_t from, std::uint64_t to) {
  for (std::size_t i = 0; i < other.blocks_.size(); ++i) {
    const Key& key = other.numbers_.keys()[i];
    Block& block = blocks_at(key.process == from ? to : key.process, key.block);
    for (std::size_t word = 0; word < block.bits.size(); ++word) block.bits[word] |= other.blocks_[i].bits[word];
  }
}

void Correlations::seal() {
  std::uint32_t total = 0;
  for (Block& block : blocks_) {
    block.base = total;
    std::uint16_t within = 0;
    for (std::size_t word = 0; word < block.bits.size(); ++word) {
      block.before[word] = within;
      within = static_cast<std::uint16_t>(within + std::popcount(block.bits[word]));
    }
    total += within;
  }
  size_ = total;
}

}  // namespace rangescope::read::nsys_sqlite
