#include "profile/stack_room.hpp"

#include <gtest/gtest.h>

namespace rangescope::profile {
namespace stack_room_test {

/// A thread's guard and stack, a heap, and the first thread's stack, as /proc shows them.
constexpr std::string_view kMaps =
    "55d0a0000000-55d0a0021000 rw-p 00000000 00:00 0                          [heap]\n"
    "7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
    "7f0000001000-7f0000801000 rw-p 00000000 00:00 0 \n"
    "7f0000900000-7f0000a00000 r-xp 00000000 08:01 123   /usr/lib/x86_64-linux-gnu/libc.so.6\n"
    "7ffd10000000-7ffd10021000 rw-p 00000000 00:00 0                          [stack]\n"
    "what is no line\n";

TEST(StackRoom, LinesOfMapsAreAreas) {
  const auto areas = base::areas_of(kMaps);
  ASSERT_EQ(areas.size(), 5u);
  EXPECT_EQ(areas[0].name, "[heap]");
  EXPECT_FALSE(areas[1].is_readable);
  EXPECT_TRUE(areas[2].is_writable);
  EXPECT_EQ(areas[2].name, "");
  EXPECT_EQ(areas[3].name, "/usr/lib/x86_64-linux-gnu/libc.so.6");
  EXPECT_EQ(areas[4].end, 0x7ffd10021000u);
}

TEST(StackRoom, TheLimitIsThatOfProc) {
  const std::string head =
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max data size             unlimited            unlimited            bytes     \n";
  EXPECT_EQ(
      stack_limit_of(head +
                     "Max stack size            8388608              unlimited            bytes\n"),
      rlim_t{8'388'608});
  EXPECT_EQ(
      stack_limit_of(head +
                     "Max stack size            unlimited            unlimited            bytes\n"),
      RLIM_INFINITY);
  EXPECT_EQ(stack_limit_of(head), std::nullopt);
}

TEST(StackRoom, AThreadHasWhatIsAboveItsGuard) {
  const auto areas = base::areas_of(kMaps);
  constexpr std::uint64_t kDescriptor = 0x7f0000800700;
  EXPECT_EQ(room_of_thread(areas, 0x7f0000005000, kDescriptor), 0x4000u);
  // On a coroutine's stack: in the heap, or in another thread's memory.
  EXPECT_EQ(room_of_thread(areas, 0x55d0a0010000, kDescriptor), 0u);
  EXPECT_EQ(room_of_thread(areas, 0x7f0000800800, kDescriptor), 0u);
  // Memory that the program gave the thread has no guard below it.
  EXPECT_EQ(room_of_thread(areas, 0x55d0a0010000, 0x55d0a0020000), 0u);
}

TEST(StackRoom, TheFirstThreadsGrowsToItsLimit) {
  const auto areas = base::areas_of(kMaps);
  constexpr std::uint64_t kStack = 0x7ffd10010000, kEnd = 0x7ffd10021000;
  constexpr rlim_t kLimit = 8u << 20;
  EXPECT_EQ(room_of_first_thread(areas, kStack, kLimit), kLimit - (kEnd - kStack));
  // What is mapped is there, whatever the limit has become.
  EXPECT_EQ(room_of_first_thread(areas, kStack, 0x1000), 0x10000u);
  EXPECT_EQ(room_of_first_thread(areas, 0x55d0a0010000, kLimit), 0u);
  // Without a limit it grows to the memory below, less the gap that the kernel keeps.
  EXPECT_EQ(room_of_first_thread(areas, kStack, RLIM_INFINITY),
            kStack - (0x7f0000a00000u + (1u << 20)));
}

}  // namespace stack_room_test
}  // namespace rangescope::profile
