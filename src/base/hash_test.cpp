#include "base/hash.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/fs.hpp"
#include "base/sha256_block.hpp"

namespace rangescope::base {
namespace hash_test {

// FIPS 180-4's own examples, and what sha256sum says.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, SpecialInstructionsAgreeWithPortableCode) {
  std::string bytes(64 * 7, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 131 + i / 7);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  Sha256State fast = {1, 2, 3, 4, 5, 6, 7, 8}, slow = fast;
  sha256_blocks(fast, data, 7);
  sha256_blocks_portable(slow, data, 7);
  EXPECT_EQ(fast, slow);
}

TEST(Sha256, AFileInPiecesIsTheSameAsAString) {
  const auto path =
      std::filesystem::temp_directory_path() / ("hash_test." + std::to_string(::getpid()));
  for (const std::size_t size : {0, 1, 63, 64, 65, 119, 120, 1 << 20, (1 << 20) + 77}) {
    const std::string bytes(size, 'x');
    ASSERT_TRUE(write_file(path, bytes));
    EXPECT_EQ(sha256_file(path).value_or(""), sha256(bytes)) << size;
  }
  std::filesystem::remove(path);
  EXPECT_EQ(sha256_file(path).error().code, Code::kNoInput);
}

}  // namespace hash_test
}  // namespace rangescope::base
