#include "inject/cupti/launches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace rangescope::inject::cupti {
namespace launches_test {

/// A log, and what it handed over: "1" or "2 with 64 bytes".
class LaunchLogs : public ::testing::Test {
 protected:
  void SetUp() override { log->set_sink(keep, &handed); }
  static void keep(void* handed, const NotedLaunch& launch, const CallDetails* details) {
    std::string text = std::to_string(launch.correlation);
    if (details != nullptr)
      text += " with " + std::to_string(details->bytes) + " bytes";
    static_cast<std::vector<std::string>*>(handed)->push_back(text);
  }
  void note(std::uint32_t correlation) {
    NotedLaunch launch{};
    launch.correlation = correlation;
    log->note(launch, nullptr);
  }
  void note_allocation(std::uint32_t correlation, std::uint64_t bytes) {
    NotedLaunch launch{};
    launch.correlation = correlation;
    launch.has_details = true;
    CallDetails details{};
    details.bytes = bytes;
    log->note(launch, &details);
  }
  using Lines = std::vector<std::string>;
  Lines handed;
  std::unique_ptr<LaunchLog> log = std::make_unique<LaunchLog>();
};

TEST_F(LaunchLogs, CallsAreHandedOverWhenAsked) {
  note(1);
  note_allocation(2, 64);
  note(3);
  EXPECT_TRUE(handed.empty());
  log->drain();
  EXPECT_EQ(handed, (Lines{"1", "2 with 64 bytes", "3"}));
}

TEST_F(LaunchLogs, EachCallIsHandedOverOnce) {
  note(1);
  log->drain();
  log->drain();
  note(2);
  log->drain();
  EXPECT_EQ(handed, (Lines{"1", "2"}));
}

TEST_F(LaunchLogs, AFullChunkIsHandedOverByItsThread) {
  for (std::uint32_t i = 0; i < 1024; ++i)
    note(i);
  EXPECT_TRUE(handed.empty());
  note(1024);
  EXPECT_EQ(handed.size(), 1024u);
  log->drain();
  ASSERT_EQ(handed.size(), 1025u);
  EXPECT_EQ(handed.back(), "1024");
}

TEST_F(LaunchLogs, ACallAndItsDetailsAreNotTornApart) {
  for (std::uint32_t i = 0; i < 1023; ++i)
    note(i);
  note_allocation(1023, 256);  // takes two entries, one is left
  EXPECT_EQ(handed.size(), 1023u);
  log->drain();
  EXPECT_EQ(handed.back(), "1023 with 256 bytes");
}

TEST_F(LaunchLogs, WhatWasDrainedIsNotHandedOverAgainWithAFullChunk) {
  for (std::uint32_t i = 0; i < 1000; ++i)
    note(i);
  log->drain();
  for (std::uint32_t i = 1000; i < 1100; ++i)
    note(i);
  log->drain();
  ASSERT_EQ(handed.size(), 1100u);
  for (std::uint32_t i = 0; i < 1100; ++i)
    EXPECT_EQ(handed[i], std::to_string(i));
}

TEST_F(LaunchLogs, CallsOfThreadsThatHaveEndedAreKept) {
  for (std::uint32_t thread = 0; thread < 3; ++thread)
    std::thread([&] { note(thread); }).join();
  note(3);
  log->drain();
  std::sort(handed.begin(), handed.end());
  EXPECT_EQ(handed, (Lines{"0", "1", "2", "3"}));
  EXPECT_EQ(log->dropped(), 0u);
}

TEST(BufferPools, BuffersAreBoundedAndUsedAgain) {
  BufferPool pool;
  std::vector<std::uint8_t*> taken;
  for (std::size_t i = 0; i < BufferPool::kMost; ++i) {
    taken.push_back(pool.take());
    ASSERT_NE(taken.back(), nullptr);
  }
  EXPECT_EQ(pool.take(), nullptr) << "CUPTI then drops records, and counts them";
  pool.give_back(taken.back());
  EXPECT_EQ(pool.take(), taken.back());
  EXPECT_EQ(pool.take(), nullptr);
}

TEST(BufferPools, ABufferIsZeroWhenItIsTakenAgain) {
  BufferPool pool;
  std::uint8_t* buffer = pool.take();
  ASSERT_NE(buffer, nullptr);
  buffer[0] = buffer[BufferPool::kBytes - 1] = 1;
  pool.give_back(buffer);
  buffer = pool.take();
  EXPECT_TRUE(std::all_of(
      buffer, buffer + BufferPool::kBytes, [](std::uint8_t byte) { return byte == 0; }));
}

TEST(BufferPools, NoBufferIsGivenBackForNone) {
  BufferPool pool;
  pool.give_back(nullptr);
  EXPECT_NE(pool.take(), nullptr);
}

}  // namespace launches_test
}  // namespace rangescope::inject::cupti
