#include "inject/python/per_thread.hpp"

#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

namespace rangescope::inject::python {
namespace per_thread_test {

struct Counted {
  int uses = 0;
};

TEST(PerThreads, AThreadKeepsItsOwn) {
  static PerThread<Counted> counts;  // its memory is never freed
  Counted* mine = counts.mine();
  ASSERT_NE(mine, nullptr);
  mine->uses = 3;
  EXPECT_EQ(counts.mine(), mine);
}

TEST(PerThreads, ThreadsThatRunAtOnceHaveDifferentOnes) {
  static PerThread<Counted> counts;  // its memory is never freed
  std::promise<Counted*> taken;
  std::promise<void> may_end;
  std::thread other([&] {
    taken.set_value(counts.mine());
    may_end.get_future().wait();
  });
  Counted* const theirs = taken.get_future().get();
  EXPECT_NE(theirs, counts.mine());
  may_end.set_value();
  other.join();
}

TEST(PerThreads, ThatOfAThreadThatEndedGoesToTheNext) {
  static PerThread<Counted> counts;  // its memory is never freed
  std::set<Counted*> all;
  for (int thread = 0; thread < 5; ++thread)
    std::thread([&] {
      Counted* mine = counts.mine();
      ++mine->uses;
      all.insert(mine);
    }).join();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ((*all.begin())->uses, 5) << "its state stays";
}

TEST(PerThreads, EachOneIsVisitedOnce) {
  static PerThread<Counted> counts;  // its memory is never freed
  counts.mine()->uses = 1;
  std::promise<void> taken, may_end;
  std::thread other([&] {
    counts.mine()->uses = 10;
    taken.set_value();
    may_end.get_future().wait();
  });
  taken.get_future().wait();
  int sum = 0;
  counts.each([&](const Counted& counted) { sum += counted.uses; });
  EXPECT_EQ(sum, 11);
  may_end.set_value();
  other.join();
}

}  // namespace per_thread_test
}  // namespace rangescope::inject::python
