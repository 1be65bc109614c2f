#include "base/hash.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/fs.hpp"
#include "base/sha256_block.hpp"

namespace rangescope::base {
namespace {

// SHA-256, FIPS 180-4 section 6.2; O(n), 64 bytes a block.
class Sha256 {
 public:
  void update(std::string_view bytes) {
    total_ += bytes.size();
    if (used_ > 0) {
      const std::size_t n = std::min(bytes.size(), block_.size() - used_);
      std::memcpy(block_.data() + used_, bytes.data(), n);
      used_ += n;
      bytes.remove_prefix(n);
      if (used_ < block_.size())
        return;
      sha256_blocks(state_, block_.data(), 1);
      used_ = 0;
    }
    const std::size_t blocks = bytes.size() / block_.size();
    sha256_blocks(state_, reinterpret_cast<const unsigned char*>(bytes.data()), blocks);
    bytes.remove_prefix(blocks * block_.size());
    if (!bytes.empty())
      std::memcpy(block_.data(), bytes.data(), bytes.size());
    used_ = bytes.size();
  }

  std::string finish() {
    const std::uint64_t bits = total_ * 8;
    update(std::string_view("\x80", 1));
    while (used_ != 56)
      update(std::string_view("\0", 1));
    std::array<char, 8> length{};
    for (std::size_t i = 0; i < 8; ++i)
      length[i] = static_cast<char>(bits >> (56 - 8 * i));
    update({length.data(), length.size()});
    return fmt::format("{:08x}", fmt::join(state_, ""));
  }

 private:
  Sha256State state_ = {0x6a09e667,
                        0xbb67ae85,
                        0x3c6ef372,
                        0xa54ff53a,
                        0x510e527f,
                        0x9b05688c,
                        0x1f83d9ab,
                        0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  std::size_t used_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Result<std::string> sha256_file(const std::filesystem::path& path) {
  Sha256 hash;
  TRY(read_pieces(path, [&](std::string_view piece) { hash.update(piece); }));
  return hash.finish();
}

}  // namespace rangescope::base
