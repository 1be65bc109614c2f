#include "sample/cpu/switch_watch.hpp"

#include <gtest/gtest.h>

namespace rangescope::sample::cpu {
namespace switch_watch_test {

constexpr std::int64_t kUs = 1'000, kMs = 1'000'000;

/// A watch that was begun at 0 and turned off at 5 ms, in no time.
SwitchWatch turned_off() {
  SwitchWatch watch(0);
  EXPECT_TRUE(watch.turns(5 * kMs, 1000));
  watch.turned(5 * kMs);
  EXPECT_FALSE(watch.on());
  return watch;
}

TEST(SwitchWatch, FortyThousandASecondAreRecordedThroughout) {
  SwitchWatch watch(0);
  for (int ms = 1; ms <= 1000; ++ms)
    EXPECT_FALSE(watch.turns(ms * kMs, 40)) << ms;
  EXPECT_TRUE(watch.on());
}

TEST(SwitchWatch, MoreThanThatInFiveMillisecondsAreTooMany) {
  SwitchWatch watch(0);
  EXPECT_FALSE(watch.turns(4 * kMs, 1000)) << "the window has not passed";
  EXPECT_TRUE(watch.turns(5 * kMs, 0));
  EXPECT_FALSE(watch.on());
}

// 8 ms of 40,000 a second are 320.
TEST(SwitchWatch, TheLimitGrowsWithTheTimeThatPassed) {
  SwitchWatch at_limit(0), beyond(0);
  EXPECT_FALSE(at_limit.turns(8 * kMs, 320));
  EXPECT_TRUE(beyond.turns(8 * kMs, 321));
}

TEST(SwitchWatch, ABurstIsForgottenAfterTwentyMilliseconds) {
  SwitchWatch watch(0);
  EXPECT_FALSE(watch.turns(21 * kMs, 800));
  EXPECT_FALSE(watch.turns(26 * kMs, 200)) << "of 5 ms, without those before";
  EXPECT_TRUE(watch.turns(26 * kMs, 1));
}

TEST(SwitchWatch, AnEightiethOfTheTimeIsWatchedWhileTheyComeSoFast) {
  SwitchWatch watch = turned_off();
  EXPECT_FALSE(watch.turns(162 * kMs, 0));
  EXPECT_TRUE(watch.turns(163 * kMs, 0)) << "158 ms later";
  EXPECT_TRUE(watch.on());
  watch.turned(163 * kMs);
  EXPECT_FALSE(watch.turns(165 * kMs - 1, 500));
  EXPECT_TRUE(watch.turns(165 * kMs, 0)) << "2 ms are enough once it is known";
  EXPECT_FALSE(watch.on());
}

TEST(SwitchWatch, AProgramThatHasBecomeSlowerIsWatchedThroughoutAgain) {
  SwitchWatch watch = turned_off();
  EXPECT_TRUE(watch.turns(163 * kMs, 0));
  watch.turned(163 * kMs);
  for (int ms = 164; ms < 400; ++ms)
    EXPECT_FALSE(watch.turns(ms * kMs, 30)) << ms;
  EXPECT_TRUE(watch.on());
}

TEST(SwitchWatch, AFewSwitchesAreNeverTooMany) {
  SwitchWatch watch = turned_off();
  EXPECT_TRUE(watch.turns(163 * kMs, 0));
  watch.turned(163 * kMs);
  EXPECT_FALSE(watch.turns(165 * kMs, 200)) << "100,000 a second, but only 200";
  EXPECT_TRUE(watch.turns(165 * kMs, 1));
}

// With thousands of threads turning takes milliseconds: a hundredth of the time at most.
TEST(SwitchWatch, WhatIsSlowToTurnIsTurnedLessOften) {
  SwitchWatch watch(0);
  EXPECT_TRUE(watch.turns(5 * kMs, 1000));
  watch.turned(7 * kMs);
  EXPECT_FALSE(watch.turns(7 * kMs + 357 * kMs, 0));
  EXPECT_TRUE(watch.turns(7 * kMs + 358 * kMs, 0)) << "158 ms, and 100 times 2 ms";
}

TEST(SwitchWatch, AfterATurnItAsksToBeAskedSoon) {
  SwitchWatch watch(0);
  EXPECT_EQ(watch.patience_ns(20 * kMs), 20 * kMs);
  watch = turned_off();
  EXPECT_EQ(watch.patience_ns(20 * kMs), 20 * kMs) << "there is time: nothing is watched";
  EXPECT_TRUE(watch.turns(163 * kMs, 0));
  watch.turned(163 * kMs);
  EXPECT_EQ(watch.patience_ns(20 * kMs), 1 * kMs);
  EXPECT_EQ(watch.patience_ns(400 * kUs), 400 * kUs);
}

}  // namespace switch_watch_test
}  // namespace rangescope::sample::cpu
