#include "sample/blocks.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/temporary_folder.hpp"
#include "sample/blocks_test.hpp"

namespace rangescope::sample {
namespace blocks_test {

using wire::samples::EventKind;
using wire::samples::FileHeader;
using wire::samples::Type;
using written::Block;

class BlockFiles : public ::testing::Test {
 protected:
  const base::TemporaryFolder temporary{"rangescope-blocks"};
  const std::filesystem::path folder = temporary.path(), path = folder / "a.samples";
  base::Result<BlockFile> created() const {
    return BlockFile::create(path, wire::samples::kMagic, 7);
  }
};

TEST_F(BlockFiles, TheHeadNamesFormatVersionAndProcess) {
  ASSERT_TRUE(created());
  const std::string bytes = written::bytes_of(path);
  ASSERT_EQ(bytes.size(), sizeof(FileHeader));
  const auto header = written::value_at<FileHeader>(bytes, 0);
  EXPECT_EQ(std::string(header.magic, 8), std::string("RSSMP\r\n\0", 8));
  EXPECT_EQ(header.version, 7u);
  EXPECT_EQ(header.header_bytes, sizeof(FileHeader));
  EXPECT_EQ(header.pid, static_cast<std::uint32_t>(::getpid()));
}

TEST_F(BlockFiles, BlocksAreReadInTheOrderOfWriting) {
  auto file = created();
  ASSERT_TRUE(file);
  file->put(Type::kDescription, "source test\n", 0);
  file->put(Type::kSamples, std::string(100'000, 'x'), 12);
  const auto blocks = written::blocks_of(path);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].type, Type::kDescription);
  EXPECT_EQ(blocks[0].bytes, "source test\n");
  EXPECT_EQ(blocks[1].items, 12u);
  EXPECT_EQ(blocks[1].bytes, std::string(100'000, 'x'));
}

TEST_F(BlockFiles, CountItsBytesWithoutTheHead) {
  auto file = created();
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes(), 0u);
  file->put(Type::kEnd, "cpu_ns 1", 0);
  EXPECT_EQ(file->bytes(), written::bytes_of(path).size() - sizeof(FileHeader));
}

TEST_F(BlockFiles, AnEventHasItsKindCountAndText) {
  auto file = created();
  ASSERT_TRUE(file);
  file->event(EventKind::kOverflow, "the buffer was full", 3);
  file->event(EventKind::kAside, "", 1);
  using Events = std::vector<std::string>;
  EXPECT_EQ(written::events_of(path, EventKind::kOverflow), Events{"3 the buffer was full"});
  EXPECT_EQ(written::events_of(path, EventKind::kAside), Events{"1 "});
}

TEST_F(BlockFiles, ReplaceWhatAnEarlierRunLeft) {
  { created()->put(Type::kEnd, "of the first", 0); }
  { created()->put(Type::kEnd, "of the second", 0); }
  const auto blocks = written::blocks_of(path);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].bytes, "of the second");
}

TEST_F(BlockFiles, AFolderThatIsMissingIsAnErrorWithTheFile) {
  const auto missing = folder / "missing" / "a.samples";
  const auto file = BlockFile::create(missing, wire::samples::kMagic, 1);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, base::Code::kIo);
  EXPECT_EQ(file.error().where, missing.string());
  EXPECT_NE(file.error().what.find("No such file"), std::string::npos);
}

// /dev/full takes a file's opening and refuses every write, as a full disk does.
TEST_F(BlockFiles, AFullDiskEndsTheWriting) {
  auto file = BlockFile::create("/dev/full", wire::samples::kMagic, 1);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->failed());
  file->put(Type::kEnd, "lost", 0);
  EXPECT_EQ(file->bytes(), 0u);
}

TEST_F(BlockFiles, AMovedFileIsWrittenByItsNewOwnerOnly) {
  auto file = created();
  ASSERT_TRUE(file);
  file->put(Type::kDescription, "before", 0);
  {
    BlockFile moved(std::move(*file));
    EXPECT_GT(moved.bytes(), 0u);
    moved.put(Type::kEnd, "after", 0);
  }
  EXPECT_EQ(written::blocks_of(path).size(), 2u);
}

}  // namespace blocks_test
}  // namespace rangescope::sample
