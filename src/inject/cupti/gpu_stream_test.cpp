#include "inject/cupti/gpu_stream.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace rangescope::inject::cupti {
namespace gpu_stream_test {

namespace format = wire::gpu;
namespace fs = std::filesystem;

template <class Value>
Value value_at(const std::string& bytes, std::size_t offset) {
  Value value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

struct Record {
  format::RecordHeader head{};
  std::string bytes;
};

/// A stream in a folder of its own.
class GpuStreams : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_name_), nullptr); }
  void TearDown() override { fs::remove_all(folder()); }
  [[nodiscard]] fs::path folder() const { return folder_name_; }
  [[nodiscard]] std::string path() const { return (folder() / "1.gpu").string(); }
  [[nodiscard]] bool open(std::uint64_t limit = 0) {
    return stream->open(path().c_str(), header_, limit);
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::vector<std::size_t> block_offsets() const {
    std::vector<std::size_t> offsets;
    const std::string file = bytes();
    for (std::size_t offset = sizeof(format::FileHeader);
         offset + sizeof(format::BlockHeader) <= file.size();) {
      const auto header = value_at<format::BlockHeader>(file, offset);
      const std::size_t end = offset + sizeof header + header.bytes;
      if (header.magic != format::kBlockMagic || end > file.size())
        break;
      EXPECT_EQ(header.checksum,
                format::checksum(file.data() + offset + sizeof header, header.bytes));
      offsets.push_back(offset);
      offset = end;
    }
    return offsets;
  }
  [[nodiscard]] std::vector<Record> records() const {
    std::vector<Record> out;
    const std::string file = bytes();
    for (const std::size_t block : block_offsets()) {
      const auto header = value_at<format::BlockHeader>(file, block);
      std::size_t offset = block + sizeof header;
      for (const std::size_t end = offset + header.bytes; offset < end;) {
        const auto head = value_at<format::RecordHeader>(file, offset);
        const std::size_t record_bytes = std::size_t{head.words} * 8;
        if (record_bytes == 0)
          return out;
        out.push_back({head, file.substr(offset, record_bytes)});
        offset += record_bytes;
      }
    }
    return out;
  }
  void put_kernel(std::uint32_t correlation) {
    format::Kernel kernel{};
    kernel.head = format::head(format::Type::kKernel, correlation);
    stream->put(kernel);
  }
  void put_name(std::uint32_t id, const std::string& text) {
    format::Name name{};
    name.head = format::head(format::Type::kName, id);
    name.bytes = static_cast<std::uint32_t>(text.size());
    stream->put_with(name, text.data(), text.size());
  }
  std::unique_ptr<GpuStream> stream = std::make_unique<GpuStream>();

 private:
  char folder_name_[64] = "/tmp/rangescope-gpu-XXXXXX";
  const format::FileHeader header_{{'R', 'S', 'G', 'P', 'U', '\r', '\n', '\0'},
                                   format::kVersion,
                                   sizeof(format::FileHeader),
                                   4711,
                                   26,
                                   1,
                                   2};
};

constexpr std::size_t kHead = sizeof(format::FileHeader), kBlock = sizeof(format::BlockHeader),
                      kKernel = sizeof(format::Kernel);

TEST_F(GpuStreams, TheFileBeginsWithTheHeader) {
  ASSERT_TRUE(open());
  const std::string file = bytes();
  ASSERT_EQ(file.size(), kHead);
  EXPECT_EQ(file.substr(0, 5), "RSGPU");
  EXPECT_EQ(value_at<format::FileHeader>(file, 0).pid, 4711u);
}

TEST_F(GpuStreams, RecordsAreWrittenInOneBlock) {
  ASSERT_TRUE(open());
  put_kernel(1);
  put_kernel(2);
  EXPECT_EQ(bytes().size(), kHead) << "not before they are flushed";
  stream->flush();
  EXPECT_EQ(block_offsets(), std::vector<std::size_t>{kHead});
  const auto written = records();
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].head.id, 1u);
  EXPECT_EQ(written[1].head.id, 2u);
  EXPECT_EQ(written[1].head.words, 3u) << "24 bytes";
}

TEST_F(GpuStreams, WithoutRecordsThereIsNoBlock) {
  ASSERT_TRUE(open());
  stream->flush();
  stream->close();
  EXPECT_EQ(bytes().size(), kHead);
}

TEST_F(GpuStreams, TextBehindARecordIsPaddedWithZeros) {
  ASSERT_TRUE(open());
  put_name(7, "abc");
  put_name(8, "abcdefgh");
  put_name(9, "");
  stream->close();
  const auto written = records();
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[0].head.words, 3u);
  EXPECT_EQ(written[0].bytes.substr(sizeof(format::Name)), std::string("abc\0\0\0\0\0", 8));
  EXPECT_EQ(written[1].head.words, 3u);
  EXPECT_EQ(written[1].bytes.substr(sizeof(format::Name)), "abcdefgh");
  EXPECT_EQ(written[2].head.words, 2u);
}

TEST_F(GpuStreams, AFullBlockIsWrittenBeforeTheNextRecord) {
  ASSERT_TRUE(open());
  for (std::uint32_t i = 0; i <= 64 * 1024 / kKernel; ++i)  // one more than fits
    put_kernel(i);
  EXPECT_EQ(block_offsets().size(), 1u);
  stream->close();
  EXPECT_EQ(block_offsets().size(), 2u);
  EXPECT_EQ(records().size(), 64 * 1024 / kKernel + 1);
}

TEST_F(GpuStreams, ARecordThatNoBlockHoldsIsLeftOut) {
  ASSERT_TRUE(open());
  put_name(1, std::string(GpuStream::kMostExtra, 'x'));
  put_name(2, std::string(64 * 1024, 'x'));
  stream->close();
  const auto written = records();
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].head.id, 1u);
}

TEST_F(GpuStreams, BeyondTheLimitRecordsAreCounted) {
  ASSERT_TRUE(open(kHead + 2 * kKernel));
  for (std::uint32_t i = 0; i < 5; ++i)
    put_kernel(i);
  stream->close();
  EXPECT_EQ(records().size(), 2u);
  EXPECT_EQ(stream->beyond_limit(), 3u);
  EXPECT_EQ(stream->failed_bytes(), 0u);
}

TEST_F(GpuStreams, WhatWasLostIsWrittenBeyondTheLimit) {
  ASSERT_TRUE(open(kHead));
  format::Loss loss{};
  loss.head = format::head(format::Type::kLoss, 1);
  stream->put_with(loss, "why", 3);
  format::Info info{};
  info.head = format::head(format::Type::kInfo, 2);
  stream->put_with(info, "key\0value", 9);
  put_kernel(3);
  stream->close();
  const auto written = records();
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].head.type, format::Type::kLoss);
  EXPECT_EQ(written[1].head.type, format::Type::kInfo);
}

TEST_F(GpuStreams, AFileThatExistsIsNotReplaced) {
  std::ofstream(path()) << "of another process";
  EXPECT_FALSE(open());
  EXPECT_FALSE(stream->is_open());
  EXPECT_EQ(bytes(), "of another process");
}

TEST_F(GpuStreams, AFolderThatIsMissingIsRefused) {
  const format::FileHeader header{};
  EXPECT_FALSE(stream->open((folder() / "missing" / "1.gpu").c_str(), header, 0));
  EXPECT_FALSE(stream->is_open());
}

TEST_F(GpuStreams, WithoutAFileNothingIsKept) {
  put_kernel(1);
  stream->flush();
  ASSERT_TRUE(open());
  put_kernel(2);
  stream->close();
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records()[0].head.id, 2u);
}

TEST_F(GpuStreams, NoDescriptorStaysOpen) {
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = descriptors();
  ASSERT_TRUE(open());
  put_kernel(1);
  stream->flush();
  EXPECT_EQ(descriptors(), before);
}

TEST_F(GpuStreams, BytesThatCannotBeWrittenAreCountedAndDropped) {
  ASSERT_TRUE(open());
  fs::rename(path(), path() + ".away");
  put_kernel(1);
  stream->flush();
  EXPECT_EQ(stream->failed_bytes(), kBlock + kKernel);
  fs::rename(path() + ".away", path());
  put_kernel(2);
  stream->close();
  const auto written = records();
  ASSERT_EQ(written.size(), 1u) << "the next block follows where the first one would be";
  EXPECT_EQ(written[0].head.id, 2u);
}

/// The largest size of files, for as long as it lives. Without it a write beyond it would raise
/// SIGXFSZ.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(GpuStreams, TheProgramsOwnLimitOfFileSizesIsNeverPassed) {
  ASSERT_TRUE(open());
  put_kernel(1);
  {
    const FileSizeLimit limit(kHead + kBlock + kKernel - 1);
    stream->flush();
  }
  EXPECT_EQ(bytes().size(), kHead);
  EXPECT_EQ(stream->failed_bytes(), kBlock + kKernel);
  put_kernel(2);
  {
    const FileSizeLimit limit(kHead + kBlock + kKernel);
    stream->flush();
  }
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(GpuStreams, WhereNotEvenTheHeaderMayBeWrittenThereIsNoFile) {
  {
    const FileSizeLimit limit(kHead - 1);
    EXPECT_FALSE(open());
  }
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(GpuStreams, AnotherFileBeginsWithoutTheCountsOfTheFirst) {
  ASSERT_TRUE(open(kHead));
  put_kernel(1);
  EXPECT_EQ(stream->beyond_limit(), 1u);
  stream->close();
  EXPECT_FALSE(stream->is_open());
  fs::remove(path());
  ASSERT_TRUE(open());
  EXPECT_EQ(stream->beyond_limit(), 0u);
  put_kernel(2);
  stream->close();
  EXPECT_EQ(block_offsets(), std::vector<std::size_t>{kHead});
}

}  // namespace gpu_stream_test
}  // namespace rangescope::inject::cupti
