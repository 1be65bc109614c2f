#include "base/fs.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rangescope::base {
namespace {

// The test would hang if one of them waited for a writer.
TEST(Fs, OnlyRegularFilesAreRead) {
  const std::string pipe = testing::TempDir() + "fs_test_pipe" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path :
       {pipe, std::string("/dev/zero"), std::string("/dev/ptmx"), testing::TempDir()}) {
    EXPECT_EQ(read_head(path, 16).error().code, Code::kNoInput) << path;
    EXPECT_EQ(read_regular(path, 16).error().code, Code::kNoInput) << path;
    EXPECT_EQ(read_pieces(path, [](std::string_view) {}).error().where, path);
    EXPECT_EQ(Mapping::open(path).error().code, Code::kNoInput) << path;
  }
  ::unlink(pipe.c_str());
}

// A regular file by its status, and a read of it waits for the kernel's next message.
TEST(Fs, WhatLooksLikeAFileAndNeverEndsIsNotWaitedFor) {
  const std::string path = "/proc/kmsg";
  const auto first = read_file(path);  // no message may come between
  if (!first && first.error().code == Code::kPermission)
    GTEST_SKIP() << to_string(first.error());
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, Code::kNoInput) << to_string(first.error());
  EXPECT_EQ(first.error().where, path);
}

}  // namespace
}  // namespace rangescope::base
