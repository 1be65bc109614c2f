#include "base/held_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"

namespace rangescope::base {
namespace held_folder_test {

namespace fs = std::filesystem;

class HeldFolderTest : public testing::Test {
 protected:
  HeldFolderTest() {
    fs::create_directories(run_ / "in");
    fs::create_directories(other_ / "in");
    EXPECT_TRUE(write_file(other_ / "a", "theirs"));
  }
  /// Another folder is put in its place.
  void swap() {
    fs::rename(run_, run_.string() + ".old");
    fs::create_directory_symlink(other_, run_);
  }
  const TemporaryFolder folder_{"rangescope-held"};
  const fs::path run_ = folder_.path() / "run", other_ = folder_.path() / "other";
  const fs::path old_ = folder_.path() / "run.old";
};

TEST_F(HeldFolderTest, WhatIsWrittenFollowsTheFolder) {
  const auto held = HeldFolder::take(run_);
  ASSERT_TRUE(held.has_value());
  EXPECT_TRUE(still_in_place(run_ / "in"));
  swap();
  EXPECT_FALSE(still_in_place(run_ / "in"));
  EXPECT_TRUE(write_file(run_ / "a", "mine"));
  EXPECT_TRUE(write_file(run_ / "in" / ".." / "in" / "b", "mine"));
  EXPECT_EQ(read_file(other_ / "a").value_or(""), "theirs");
  EXPECT_EQ(read_file(old_ / "a").value_or(""), "mine");
  EXPECT_EQ(read_file(old_ / "in" / "b").value_or(""), "mine");
  EXPECT_FALSE(fs::exists(other_ / "in" / "b"));
}

TEST_F(HeldFolderTest, TheInnermostIsMeantAndItsNeighbourIsNot) {
  const auto outer = HeldFolder::take(run_), inner = HeldFolder::take(run_ / "in");
  ASSERT_TRUE(outer.has_value() && inner.has_value());
  fs::rename(run_ / "in", run_ / "moved");
  fs::create_directory(run_ / "in");
  EXPECT_TRUE(write_file(run_ / "in" / "b", "mine"));
  EXPECT_TRUE(fs::exists(run_ / "moved" / "b"));
  EXPECT_TRUE(still_in_place(run_));
  EXPECT_FALSE(still_in_place(run_ / "in"));
  EXPECT_EQ(in_place(run_.string() + "-x"), fs::path(run_.string() + "-x"));
}

TEST_F(HeldFolderTest, AfterItsLifeAPathIsAPath) {
  { ASSERT_TRUE(HeldFolder::take(run_).has_value()); }
  EXPECT_EQ(in_place(run_ / "a"), run_ / "a");
}

TEST_F(HeldFolderTest, WhoMayWriteToIt) {
  ASSERT_EQ(::chmod(run_.c_str(), 0777), 0);
  ASSERT_TRUE(HeldFolder::take(run_).has_value());
  struct stat status {};
  ASSERT_EQ(::stat(run_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755u);
  swap();
  EXPECT_FALSE(HeldFolder::take(run_).has_value());  // a link
  if (::geteuid() != 0)
    return;
  ASSERT_EQ(::chown(old_.c_str(), 65534, 65534), 0);
  const auto theirs = HeldFolder::take(old_);
  ASSERT_FALSE(theirs.has_value());
  EXPECT_EQ(theirs.error().code, Code::kPermission);
  EXPECT_FALSE(fs::exists(old_ / (".owner-" + std::to_string(::getpid()))));
}

}  // namespace held_folder_test
}  // namespace rangescope::base
