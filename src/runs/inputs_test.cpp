#include "runs/provenance.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"

namespace rangescope::runs {
namespace {

TEST(Inputs, FilesAndFoldersAreWhatTheyHold) {
  const base::TemporaryFolder folder("rangescope-inputs");
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::write_file(folder.path() / name, text).has_value());
  };
  std::filesystem::create_directory(folder.path() / "data");
  write("one", "abc");
  write("data/a", "abc");
  write("data/b", "defg");
  const std::vector<std::string> paths{"one", "data"};
  const auto seen = look_at_inputs(paths, folder.path());
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->at("input.one"),
            "3 bytes, sha256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(seen->at("input.data").starts_with("2 files, 7 bytes, sha256 of the list "))
      << seen->at("input.data");
  write("data/b", "defgh");
  EXPECT_NE(look_at_inputs(paths, folder.path())->at("input.data"), seen->at("input.data"));
}

TEST(Inputs, WhatIsNotThereIsRefused) {
  const std::vector<std::string> paths{"nosuch"};
  const auto seen = look_at_inputs(paths, "/");
  ASSERT_FALSE(seen.has_value());
  EXPECT_EQ(seen.error().code, base::Code::kNoInput);
  EXPECT_EQ(seen.error().where, "/nosuch");
}

}  // namespace
}  // namespace rangescope::runs
