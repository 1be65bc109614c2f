// Circles of threads that wait for each other. Real programs: tests/attach/dump.py.
#include "sample/cpu/dump/dump.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace rangescope::sample::cpu {
namespace dump_test {

using Cycles = std::vector<std::vector<std::size_t>>;
using wire::cpu::WaitKind;

/// Thread i has the id 10 + i and waits for a lock of the thread at `holders[i]`; -1: it waits for
/// none.
std::vector<DumpedThread> threads_of_holders(const std::vector<int>& holders) {
  std::vector<DumpedThread> out;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    DumpedThread& thread = out.emplace_back();
    thread.tid = static_cast<std::uint32_t>(10 + i);
    if (holders[i] < 0)
      continue;
    thread.wait.emplace().kind = WaitKind::kLock;
    thread.wait->holder = static_cast<std::uint32_t>(10 + holders[i]);
  }
  return out;
}

TEST(Dump, EachCircleOnce) {
  EXPECT_EQ(cycles_of(threads_of_holders({1, 0})), (Cycles{{0, 1}}));
  EXPECT_EQ(cycles_of(threads_of_holders({1, 2, 0})), (Cycles{{0, 1, 2}}));
  EXPECT_EQ(cycles_of(threads_of_holders({1, 2, 1})), (Cycles{{1, 2}}))
      << "the first only waits for it";
  EXPECT_EQ(cycles_of(threads_of_holders({1, 0, 3, 2, 0})), (Cycles{{0, 1}, {2, 3}}));
  EXPECT_EQ(cycles_of(threads_of_holders({1, 2, -1})), Cycles{}) << "who has the lock runs";
  EXPECT_EQ(cycles_of(threads_of_holders({0})), (Cycles{{0}})) << "its own";
  EXPECT_EQ(cycles_of({}), Cycles{});
}

TEST(Dump, WhoWaitsForTheGilWaitsForWhoRuns) {
  auto threads = threads_of_holders({1, 0});
  threads[1].wait->kind = WaitKind::kGil;
  EXPECT_EQ(cycles_of(threads), Cycles{});
}

}  // namespace dump_test
}  // namespace rangescope::sample::cpu
