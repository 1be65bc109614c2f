#include "inject/python/compiled.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace rangescope::inject::python {
namespace compiled_test {

const std::string kHash = "abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrs";

TEST(CompiledCode, FunctionsThatInductorWritesHaveTheseNames) {
  EXPECT_TRUE(may_be_compiled_code("call"));
  EXPECT_TRUE(may_be_compiled_code("Runner.call"));  // since PyTorch 2.8 a method
  EXPECT_TRUE(may_be_compiled_code("partition_0"));
  EXPECT_TRUE(may_be_compiled_code("Runner.partition_12"));
  EXPECT_FALSE(may_be_compiled_code("call_model"));
  EXPECT_FALSE(may_be_compiled_code("call.inner"));
  EXPECT_FALSE(may_be_compiled_code("partition"));
  EXPECT_FALSE(may_be_compiled_code(""));
}

TEST(CompiledCode, AFileOfInductorIsNamedByAHashInAFolderOfItsFirstLetters) {
  EXPECT_EQ(kHash.size(), 51u);
  EXPECT_TRUE(is_compiled(("/tmp/torchinductor_me/ab/c" + kHash + ".py").c_str()));
}

TEST(CompiledCode, OtherFilesAreNotOfInductor) {
  const std::string folder = "/tmp/torchinductor_me/ab/";
  EXPECT_FALSE(is_compiled((folder + "d" + kHash + ".py").c_str())) << "not for a CPU or GPU";
  EXPECT_FALSE(is_compiled((folder + "c" + kHash + ".so").c_str()));
  EXPECT_FALSE(is_compiled((folder + "c" + kHash.substr(1) + ".py").c_str())) << "a letter short";
  EXPECT_FALSE(is_compiled((folder + "c" + kHash + "a.py").c_str())) << "a letter long";
  EXPECT_FALSE(is_compiled(("/tmp/torchinductor_me/ba/c" + kHash + ".py").c_str()));
  EXPECT_FALSE(is_compiled(("/tmp/xab/c" + kHash + ".py").c_str())) << "a longer folder's end";
  std::string with_digit = kHash;
  with_digit[10] = '1';  // base32 has 2 to 7
  EXPECT_FALSE(is_compiled((folder + "c" + with_digit + ".py").c_str()));
  EXPECT_FALSE(is_compiled(("c" + kHash + ".py").c_str())) << "no folder";
  EXPECT_FALSE(is_compiled("<stdin>"));
  EXPECT_FALSE(is_compiled(""));
}

/// A file that is gone with the object.
class Source {
 public:
  explicit Source(const std::string& text) {
    const int file = ::mkstemp(path_);
    EXPECT_GE(file, 0);
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(file);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { ::unlink(path_); }
  /// The nodes of the launch in a line; "" for none.
  [[nodiscard]] std::string nodes(std::uint32_t line, std::size_t capacity = 256) const {
    std::string text(capacity, '?');
    return source_nodes(path_, line, text.data(), capacity) ? std::string(text.c_str()) : "";
  }

 private:
  char path_[64] = "/tmp/rangescope-compiled-XXXXXX";
};

constexpr char kTwoLaunches[] =
    "def call(args):\n"
    "    # Topologically Sorted Source Nodes: [linear, relu], Original ATen: [aten.addmm]\n"
    "    stream0 = get_raw_stream(0)\n"
    "    first.run(buf1, stream=stream0)\n"
    "    # Source Nodes: [softmax]\n"
    "    second.run(buf2, stream=stream0)\n";

TEST(CompiledCode, ALaunchIsOfTheNodesInTheCommentAbove) {
  const Source source(kTwoLaunches);
  EXPECT_EQ(source.nodes(4), "[linear, relu]");
  EXPECT_EQ(source.nodes(6), "[softmax]") << "as PyTorch 2.1 writes it";
}

TEST(CompiledCode, AboveTheFirstCommentThereAreNoNodes) {
  EXPECT_EQ(Source(kTwoLaunches).nodes(1), "");
}

TEST(CompiledCode, CommentsOfAnotherFunctionDoNotCount) {
  const Source source(std::string(kTwoLaunches) + "def partition_0(args):\n    third.run(buf3)\n");
  EXPECT_EQ(source.nodes(8), "");
}

TEST(CompiledCode, AnEmptyListIsNone) {
  const Source source("# Source Nodes: [relu]\nfirst.run()\n# Source Nodes: []\nsecond.run()\n");
  EXPECT_EQ(source.nodes(2), "[relu]");
  EXPECT_EQ(source.nodes(4), "");
}

TEST(CompiledCode, WhatIsNoCommentOrNoListIsPassedOver) {
  const Source source(
      "# Source Nodes: [relu]\n"
      "text = 'Source Nodes: [other]'\n"
      "# Source Nodes: [cut\n"
      "first.run()\n");
  EXPECT_EQ(source.nodes(4), "[relu]");
}

TEST(CompiledCode, ALongListIsCut) {
  const Source source("# Source Nodes: [linear, relu]\nfirst.run()\n");
  EXPECT_EQ(source.nodes(2, 8), "[linear");
  EXPECT_EQ(source.nodes(2, 15), "[linear, relu]");
}

TEST(CompiledCode, ALineLongerThanTheBufferIsPassedOver) {
  const Source source("# Source Nodes: [relu]\nx = '" + std::string(20'000, 'x') +
                      "'\nfirst.run()\n# Source Nodes: [softmax]\nsecond.run()\n");
  EXPECT_EQ(source.nodes(3), "[relu]");
  EXPECT_EQ(source.nodes(5), "[softmax]");
}

TEST(CompiledCode, AFileThatIsNotThereHasNone) {
  char text[16];
  errno = 5;
  EXPECT_FALSE(source_nodes("/nonexistent/c.py", 1, text, sizeof text));
  EXPECT_EQ(errno, 5) << "the program's errno stays";
}

}  // namespace compiled_test
}  // namespace rangescope::inject::python
