// The multiplexer against simulated occurrence streams: whatever comes, in whatever order and
// however long the hardware takes to be programmed, a round is complete only when each pass was
// taken on an occurrence like the first one's.
#include "inject/counters/multiplexer.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace rangescope::inject::counters {
namespace multiplexer_test {

Signature alike(std::uint64_t kernels = 1, std::uint64_t configurations = 1) {
  return {kernels, configurations, 3, 0};
}

// The worker and the profiler: programming takes `delay` occurrences, whatever their target.
class Bench {
 public:
  explicit Bench(const Limits& limits, int delay = 0)
      : mux(limits), passes(limits.passes), delay_(delay) {}

  bool occurrence(std::uint32_t target,
                  std::int64_t duration = 1000,
                  Signature signature = alike(),
                  bool due = true) {
    work();
    const bool measured = mux.begin(target, due);
    if (measured) {
      EXPECT_EQ(target, armed_.target);
      session_.push_back(signature);
    }
    mux.end(target, measured, duration, signature);
    work();
    return measured;
  }

  struct Image {
    std::vector<std::vector<Signature>> passes;  // by pass, by range
  };

  Multiplexer mux;
  std::uint32_t passes;
  std::map<std::uint32_t, std::vector<Image>> complete;
  int stops = 0, arms = 0;
  bool detached = false;

 private:
  void work() {
    if (wait_ > 0) {
      if (--wait_ == 0)
        finish();
      return;
    }
    work_ = mux.next_work();
    if (work_.kind == Work::Kind::kNothing)
      return;
    if (work_.kind == Work::Kind::kDetach) {
      detached = true;
      return;
    }
    wait_ = delay_;
    if (wait_ == 0)
      finish();
  }

  void finish() {
    Image& image = images_[work_.target];
    if (work_.kind == Work::Kind::kArm) {
      ++arms;
      if (work_.fresh)
        image = Image{};
      EXPECT_EQ(image.passes.size(), work_.pass) << "passes are taken in order, none twice";
      armed_ = work_;
      session_.clear();
      mux.armed();
    } else {
      ++stops;
      if (!work_.discard) {
        EXPECT_EQ(session_.size(), armed_.ranges);
        image.passes.push_back(session_);
        EXPECT_EQ(work_.complete, image.passes.size() == passes);
        if (work_.complete)
          complete[work_.target].push_back(image);
      }
      mux.stopped();
    }
    if (delay_ == 0)
      work();
  }

  int delay_;
  int wait_ = 0;
  Work work_, armed_;
  std::vector<Signature> session_;
  std::map<std::uint32_t, Image> images_;
};

Limits limits(std::uint32_t passes, std::uint32_t rounds, std::int32_t skip = 0) {
  Limits out;
  out.passes = passes;
  out.rounds = rounds;
  out.skip_first = skip;
  return out;
}

TEST(Multiplexer, OccurrencesThatAreNotDueAreNeverMeasured) {
  Bench bench(limits(3, 2));
  for (std::uint32_t i = 0; i < 100; ++i) {
    const bool due = i % 5 == 0, measured = bench.occurrence(7, 1000, alike(), due);
    EXPECT_TRUE(due || !measured) << i;
  }
  EXPECT_EQ(bench.complete[7].size(), 2u);
  EXPECT_EQ(bench.mux.tally(7).occurrences, 100u);
  EXPECT_EQ(bench.mux.tally(7).passed_over, 80u);
  EXPECT_EQ(bench.mux.tally(7).measured, 6u);
}

TEST(Multiplexer, TakesPassKOnOccurrenceK) {
  Bench bench(limits(10, 1));
  bench.occurrence(0);  // seen for the first time: nothing is armed yet
  int measured = 0;
  for (int i = 0; i < 10; ++i)
    measured += bench.occurrence(0);
  EXPECT_EQ(measured, 10);
  EXPECT_EQ(bench.mux.tally(0).rounds, 1u);
  EXPECT_TRUE(bench.mux.done());
  EXPECT_TRUE(bench.detached);
  EXPECT_FALSE(bench.occurrence(0)) << "nothing is measured after the last round";
}

TEST(Multiplexer, ProgramsTheHardwareOnceForAllFurtherRounds) {
  Bench bench(limits(10, 5));
  for (int i = 0; i < 60; ++i)
    bench.occurrence(0);
  EXPECT_EQ(bench.mux.tally(0).rounds, 5u);
  EXPECT_EQ(bench.arms, 20) << "ten for the first round, ten for the four others";
  ASSERT_EQ(bench.complete[0].size(), 2u);
  EXPECT_EQ(bench.complete[0][1].passes[9].size(), 4u);
}

TEST(Multiplexer, NeverDelaysAnOccurrenceThatComesWhileArming) {
  Bench bench(limits(3, 1), 2);
  for (int i = 0; i < 40; ++i)
    bench.occurrence(0);
  EXPECT_EQ(bench.mux.tally(0).rounds, 1u);
  EXPECT_GT(bench.mux.tally(0).skipped_arming, 3u);
}

TEST(Multiplexer, LeavesNoMoreThanAThirdOfALongRangeAlone) {
  for (const auto& [seconds, alone] :
       std::map<std::int64_t, std::uint32_t>{{30, 1}, {8, 2}, {1, 8}}) {
    Limits limits;
    limits.rounds = 1;
    Bench bench(limits);
    std::int64_t factor = 1;
    for (int i = 0; i < 9; ++i, factor = factor == 1 ? 2 : 1)  // never within 25 %
      bench.occurrence(0, factor * seconds * 1'000'000'000);
    EXPECT_EQ(bench.mux.tally(0).skipped_first, alone) << seconds;
  }
}

TEST(Multiplexer, LeavesTheFirstOccurrencesAloneUntilTheDurationSettles) {
  Bench bench(limits(1, 1, -1));
  const std::vector<std::int64_t> durations = {
      90000, 40000, 20000, 12000, 11000, 11000, 11000, 11000};
  int first = -1;
  for (int i = 0; i < static_cast<int>(durations.size()); ++i) {
    if (bench.occurrence(0, durations[static_cast<std::size_t>(i)]) && first < 0)
      first = i;
  }
  EXPECT_EQ(first, 5) << "12 and 11 are alike; what follows is measured";
  EXPECT_EQ(bench.mux.tally(0).skipped_first, 5u);
}

TEST(Multiplexer, DiscardsAPassThatRanOtherKernels) {
  Bench bench(limits(4, 1));
  bench.occurrence(0);
  EXPECT_TRUE(bench.occurrence(0));                       // pass 0
  EXPECT_TRUE(bench.occurrence(0, 1000, alike(99, 99)));  // pass 1, unlike
  for (int i = 0; i < 3; ++i)
    bench.occurrence(0);
  EXPECT_EQ(bench.mux.tally(0).discarded, 1u);
  EXPECT_EQ(bench.mux.tally(0).rounds, 1u);
  for (const auto& pass : bench.complete[0][0].passes)
    EXPECT_EQ(pass[0].kernels, 1u);
}

TEST(Multiplexer, AcceptsGrowingConfigurationsAndCountsThem) {
  Bench bench(limits(4, 1));
  for (std::uint64_t i = 0; i < 6; ++i)
    bench.occurrence(0, 1000, alike(1, 100 + i));
  EXPECT_EQ(bench.mux.tally(0).rounds, 1u);
  EXPECT_EQ(bench.mux.tally(0).varied, 3u);
}

TEST(Multiplexer, BeginsAnewWhenTheRangeHasChangedForGood) {
  Bench bench(limits(4, 1));
  for (int i = 0; i < 3; ++i)
    bench.occurrence(0);
  for (int i = 0; i < 12; ++i)
    bench.occurrence(0, 1000, alike(2, 2));
  EXPECT_EQ(bench.mux.tally(0).rounds, 1u);
  EXPECT_EQ(bench.mux.tally(0).discarded, kPatience);
  for (const auto& pass : bench.complete[0][0].passes)
    EXPECT_EQ(pass[0].kernels, 2u);
}

TEST(Multiplexer, ASeldomRangeDoesNotKeepTheProfilerFromAFrequentOne) {
  Bench bench(limits(10, 1));
  bench.occurrence(1);  // prefill, once
  for (int i = 0; i < 64; ++i)
    bench.occurrence(0);
  EXPECT_EQ(bench.mux.tally(0).rounds, 1u);
  EXPECT_EQ(bench.mux.tally(1).rounds, 0u) << "never half a set";
}

TEST(Multiplexer, ASeldomRangeIsFinishedOverManyRequests) {
  Bench bench(limits(4, 1));
  for (int request = 0; request < 8; ++request) {
    bench.occurrence(1);
    for (int i = 0; i < 8; ++i)
      bench.occurrence(0);
  }
  EXPECT_EQ(bench.mux.tally(0).rounds, 1u);
  EXPECT_EQ(bench.mux.tally(1).rounds, 1u);
}

TEST(Multiplexer, EverybodysFirstRoundComesBeforeAnybodysSecond) {
  Limits five = limits(4, 0);
  five.rounds = 5;
  Bench bench(five);
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t target = 0; target < 3; ++target)
      bench.occurrence(target);
  }
  for (std::uint32_t target = 0; target < 3; ++target)
    EXPECT_GE(bench.mux.tally(target).rounds, 1u) << target;
  // One that never comes again is not waited for once more.
  Bench gone(five);
  gone.occurrence(9);
  for (int i = 0; i < 60; ++i)
    gone.occurrence(0);
  EXPECT_EQ(gone.mux.tally(0).rounds, 5u);
}

TEST(Multiplexer, AnAbandonedOccurrenceIsDiscarded) {
  Multiplexer mux(limits(2, 1));
  (void)mux.begin(0);
  mux.end(0, false, 1, alike());
  EXPECT_EQ(mux.next_work().kind, Work::Kind::kArm);
  mux.armed();
  EXPECT_TRUE(mux.begin(0));
  mux.abandon();
  mux.end(0, true, 1, alike());  // too late: it is not counted
  const Work work = mux.next_work();
  EXPECT_EQ(work.kind, Work::Kind::kStop);
  EXPECT_TRUE(work.discard);
  mux.stopped();
  EXPECT_EQ(mux.tally(0).measured, 0u);
  EXPECT_EQ(mux.tally(0).discarded, 1u);
}

TEST(Multiplexer, WaitsForTheTimelineWhenToldTo) {
  Limits waiting = limits(1, 1);
  waiting.wait_for_trace = true;
  Bench bench(waiting);
  for (int i = 0; i < 5; ++i)
    EXPECT_FALSE(bench.occurrence(0));
  bench.mux.trace_done();
  bench.occurrence(0);
  EXPECT_TRUE(bench.mux.tally(0).rounds == 1 || bench.occurrence(0));
}

TEST(Multiplexer, IsSilentAfterFailure) {
  Bench bench(limits(2, 1));
  bench.occurrence(0);
  bench.mux.failed();
  for (int i = 0; i < 5; ++i)
    EXPECT_FALSE(bench.occurrence(0));
}

// Random streams: three ranges, changing kernels, random arming delays. Every complete image is
// checked against the definition: each pass of each of its ranges ran the kernels that pass 0 of
// that range ran.
TEST(Multiplexer, EveryCompleteRoundIsMadeOfAlikeOccurrences) {
  std::mt19937 random(7);
  int rounds = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto pick = [&](int n) {
      return static_cast<std::uint32_t>(random() % static_cast<unsigned>(n));
    };
    Bench bench(limits(1 + pick(6), 1 + pick(6), static_cast<std::int32_t>(pick(4)) - 1),
                static_cast<int>(pick(4)));
    for (int i = 0; i < 200; ++i) {
      bench.occurrence(pick(3),
                       1000 + static_cast<std::int64_t>(pick(100)),
                       alike(pick(12) == 0 ? 2 : 1, pick(3)));
    }
    for (const auto& [target, images] : bench.complete) {
      std::uint32_t found = 0;
      for (const auto& image : images) {
        ASSERT_EQ(image.passes.size(), bench.passes);
        found += static_cast<std::uint32_t>(image.passes[0].size());
        for (const auto& pass : image.passes) {
          ASSERT_EQ(pass.size(), image.passes[0].size());
          for (std::size_t r = 0; r < pass.size(); ++r)
            ASSERT_EQ(pass[r].kernels, image.passes[0][r].kernels);
        }
      }
      ASSERT_EQ(found, bench.mux.tally(target).rounds);
      const Tally& tally = bench.mux.tally(target);
      ASSERT_GE(tally.occurrences, tally.measured + tally.skipped_first + tally.skipped_arming);
      rounds += static_cast<int>(found);
    }
  }
  EXPECT_GT(rounds, 500);
}

TEST(Multiplexer, GivesUpATargetThatDoesNotComeAndFreesTheProfiler) {
  Bench bench(limits(4, 1));
  bench.occurrence(0);
  EXPECT_TRUE(bench.occurrence(0));
  EXPECT_EQ(bench.mux.awaited(), 0u);
  bench.mux.give_up();
  EXPECT_EQ(bench.mux.awaited(), kNoTarget);
  for (int i = 0; i < 10; ++i)
    bench.occurrence(1);
  EXPECT_EQ(bench.mux.tally(1).rounds, 1u);
  EXPECT_TRUE(bench.mux.tally(0).gave_up);
  EXPECT_EQ(bench.mux.tally(0).rounds, 0u) << "never half a set";
  EXPECT_TRUE(bench.complete[0].empty());
  EXPECT_TRUE(bench.mux.done()) << "nothing is waited for";
  EXPECT_FALSE(bench.occurrence(0));
}

TEST(Multiplexer, ForgetsATargetThatCannotBeMeasured) {
  Bench bench(limits(2, 1));
  bench.mux.drop(0);
  EXPECT_TRUE(bench.mux.done());
  for (int i = 0; i < 5; ++i)
    EXPECT_FALSE(bench.occurrence(0));
  EXPECT_EQ(bench.mux.tally(0).occurrences, 5u) << "they are counted all the same";
}

TEST(Multiplexer, LetsACallerWaitAndGoesOnWithWhatAnEarlierRunBegan) {
  Multiplexer first(limits(3, 1, 5));
  const auto arm = [](Multiplexer& mux) {
    while (mux.should_wait(7)) {
      const Work work = mux.next_work();
      if (work.kind == Work::Kind::kStop)
        mux.stopped();
      if (work.kind == Work::Kind::kArm)
        mux.armed();
    }
  };
  arm(first);
  EXPECT_TRUE(first.begin(7)) << "the very first occurrence, though five were to be skipped";
  first.end(7, true, 1000, alike(42));
  Work work = first.next_work();
  EXPECT_EQ(work.kind, Work::Kind::kStop);
  EXPECT_FALSE(work.complete);
  first.stopped();
  EXPECT_EQ(first.progress(7).pass, 1u);

  Multiplexer second(limits(3, 1, 5));
  second.go_on(7, first.progress(7));
  arm(second);
  EXPECT_TRUE(second.begin(7));
  second.end(7, true, 1000, alike(43));
  EXPECT_TRUE(second.next_work().discard) << "the reference is that of the earlier run";
  second.stopped();
  EXPECT_EQ(second.progress(7).pass, 1u);
  for (int pass = 1; pass < 3; ++pass) {
    arm(second);
    EXPECT_TRUE(second.begin(7));
    second.end(7, true, 1000, alike(42));
    work = second.next_work();
    EXPECT_EQ(work.complete, pass == 2);
    second.stopped();
  }
  EXPECT_EQ(second.tally(7).rounds, 1u);
  EXPECT_FALSE(second.should_wait(7));
}

}  // namespace multiplexer_test
}  // namespace rangescope::inject::counters
