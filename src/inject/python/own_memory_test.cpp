#include "inject/python/own_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace rangescope::inject::python {
namespace own_memory_test {

/// Two pages, of which the second cannot be read.
class TwoPages : public ::testing::Test {
 protected:
  static constexpr std::size_t kPage = 4096;
  void SetUp() override {
    void* pages =
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    first = static_cast<char*>(pages);
    ASSERT_EQ(::mprotect(first + kPage, kPage, PROT_NONE), 0);
  }
  void TearDown() override { ::munmap(first, 2 * kPage); }
  [[nodiscard]] std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(first) + offset;
  }
  char* first = nullptr;
  OwnMemory memory{::getpid()};
};

TEST_F(TwoPages, ACopyIsWholeOrNone) {
  std::memcpy(first + kPage - 4, "abcd", 4);
  char text[8] = {};
  EXPECT_TRUE(memory.copy(address(kPage - 4), text, 4));
  EXPECT_STREQ(text, "abcd");
  EXPECT_FALSE(memory.copy(address(kPage - 4), text, 5));
  EXPECT_FALSE(memory.copy(address(kPage), text, 1));
  EXPECT_FALSE(memory.copy(0, text, 1));
}

TEST_F(TwoPages, ATextMayEndRightBeforeMemoryThatIsNotThere) {
  std::memcpy(first + kPage - 4, "abc", 4);
  char text[200];
  EXPECT_TRUE(memory.text(address(kPage - 4), text, sizeof text));
  EXPECT_STREQ(text, "abc");
}

TEST_F(TwoPages, ATextThatDoesNotEndInMemoryIsNone) {
  std::memset(first + kPage - 4, 'x', 4);
  char text[200];
  EXPECT_FALSE(memory.text(address(kPage - 4), text, sizeof text));
}

TEST_F(TwoPages, ALongTextIsCut) {
  std::memset(first, 'x', 1000);
  char text[101];
  EXPECT_TRUE(memory.text(address(0), text, sizeof text));
  EXPECT_EQ(std::string(text), std::string(100, 'x'));
}

TEST_F(TwoPages, WordsAreReadWhereTheyAreAligned) {
  const std::uint64_t stored = 0x0123456789abcdefull;
  std::memcpy(first + 16, &stored, sizeof stored);
  std::uint64_t value = 0;
  EXPECT_TRUE(memory.word(address(16), value));
  EXPECT_EQ(value, stored);
  EXPECT_FALSE(memory.word(address(17), value));
  EXPECT_FALSE(memory.word(address(kPage), value));
}

TEST_F(TwoPages, WhatReachesIntoAPageThatIsNotThereIsNotHeld) {
  EXPECT_TRUE(memory.holds(address(kPage - 16), 16));
  EXPECT_FALSE(memory.holds(address(kPage - 16), 24));
  EXPECT_FALSE(memory.holds(address(4), 4)) << "not aligned";
}

TEST_F(TwoPages, ForgettingAsksTheKernelAgain) {
  std::uint64_t value = 0;
  ASSERT_TRUE(memory.word(address(0), value));
  ASSERT_EQ(::mprotect(first, kPage, PROT_NONE), 0);
  memory.forget();
  EXPECT_FALSE(memory.word(address(0), value));
}

}  // namespace own_memory_test
}  // namespace rangescope::inject::python
