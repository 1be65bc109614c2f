#include "analyze/tree/balance.hpp"

#include <gtest/gtest.h>

#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace balance_test {

constexpr std::int64_t kOpenEnd = model::kOpen;

/// "step 0-10, step 10-", and the losses below.
std::string mended(testing::SessionBuilder& b) {
  mend_push_pop(b.session);
  std::string text;
  for (const model::Range& range : b.session.ranges) {
    text += text.empty() ? "" : ", ";
    text += std::string(b.session.strings.view(range.name)) + ' ' + std::to_string(range.start_ns) +
            '-';
    if (range.end_ns != model::kOpen)
      text += std::to_string(range.end_ns);
  }
  for (const model::Loss& loss : b.session.losses)
    text += '\n' + std::string(loss.kind.id()) + ' ' + std::to_string(loss.count);
  return text;
}

/// Steps of 8 ns every 10 ns inside `train`, the pop of some of them missing, and the pop of
/// `train`.
struct Training : testing::SessionBuilder {
  std::uint32_t t = thread(process(1), 1);

  Training(int steps, std::vector<int> lost) {
    const std::int64_t end_ns = 10 * steps;
    // The last pop closes the latest range that is open.
    range(t, "train", 0, lost.empty() ? end_ns : kOpenEnd);
    for (int i = 0; i < steps; ++i) {
      const bool is_lost = std::ranges::find(lost, i) != lost.end();
      const bool is_last_lost = is_lost && i == lost.back();
      const std::int64_t open_until = is_last_lost ? end_ns : kOpenEnd;
      range(t, "step", 10 * i + 1, is_lost ? open_until : 10 * i + 9);
    }
  }
};

TEST(Balance, ALostPopIsWhereTheNextOneBegins) {
  Training b(4, {1});
  EXPECT_EQ(mended(b),
            "train 0-40, step 1-9, step 11-21, step 21-29, step 31-39\nunbalanced_ranges 1");
  EXPECT_EQ(b.session.losses[0].detail,
            "'step' was popped 1 time less often than pushed (4 times). The first pop that is "
            "missing is that of "
            "instance 2 in 'train', which began 11 ns after the start. Such instances end here "
            "where the next one begins");
}

TEST(Balance, SeveralLostPops) {
  Training b(6, {1, 3});
  EXPECT_EQ(mended(b),
            "train 0-60, step 1-9, step 11-21, step 21-29, step 31-41, step 41-49, step "
            "51-59\nunbalanced_ranges 2");
}

TEST(Balance, NothingIsMissing) {
  Training b(3, {});
  EXPECT_EQ(mended(b), "train 0-30, step 1-9, step 11-19, step 21-29");
}

TEST(Balance, AnExceptionSkipsThePopsOfAllInside) {
  testing::SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "step", 0, 9);
  b.range(t, "step", 10, kOpenEnd);
  b.range(t, "forward", 11, kOpenEnd);
  for (int i = 2; i < 5; ++i) {
    b.range(t, "step", 10 * i, 10 * i + 9);
    b.range(t, "forward", 10 * i + 1, 10 * i + 5);
  }
  EXPECT_EQ(mended(b),
            "step 0-9, step 10-20, forward 11-20, step 20-29, forward 21-25, step 30-39, forward "
            "31-35, step 40-49, "
            "forward 41-45\nunbalanced_ranges 1\nunbalanced_ranges 1");
}

TEST(Balance, ARecursionThatWasCutStays) {
  testing::SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "main", 0, kOpenEnd);
  for (int call = 0; call < 3; ++call) {
    b.range(t, "f", 100 * call, 100 * call + 90);
    for (int i = 0; i < 3; ++i)
      b.range(t, "f", 100 * call + 10 * i + 1, 100 * call + 10 * i + 9);
  }
  b.range(t, "f", 300, kOpenEnd);
  for (int i = 0; i < 3; ++i)
    b.range(t, "f", 300 + 10 * i + 1, 300 + 10 * i + 9);
  const auto ends = [&] {
    std::string text;
    for (const model::Range& range : b.session.ranges)
      text += std::to_string(range.end_ns) + ' ';
    return text;
  };
  const std::string recorded = ends();
  mend_push_pop(b.session);
  EXPECT_EQ(ends(), recorded);
  EXPECT_TRUE(b.session.losses.empty());
}

TEST(Balance, RangesOfAGeneratorCross) {
  testing::SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "step", 0, 70);
  b.range(t, "load", 1, 9);
  for (int i = 1; i < 6; ++i) {
    b.range(t, "step", 10 * i, 10 * i + 1);
    b.range(t, "load", 10 * i + 2, 10 * i + 9);
  }
  EXPECT_EQ(mended(b).substr(0, 9), "step 0-70");
  ASSERT_EQ(b.session.losses.size(), 1u);
  EXPECT_EQ(b.session.losses[0].kind.id(), "crossing_ranges");
  EXPECT_EQ(b.session.losses[0].count, 6u);
  EXPECT_TRUE(b.session.losses[0].detail.starts_with("'step' and 'load' of one thread cross"));
}

TEST(Balance, ModulesInModulesOfTheirKindDoNotCross) {
  testing::SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "Sequential", 0, 100);
  for (int i = 0; i < 4; ++i) {
    b.range(t, "Conv2d", 20 * i, 20 * i + 5);
    b.range(t, "Sequential", 20 * i + 6, 20 * i + 15);
    b.range(t, "ReLU", 20 * i + 7, 20 * i + 9);
  }
  mend_push_pop(b.session);
  EXPECT_TRUE(b.session.losses.empty());
}

}  // namespace balance_test
}  // namespace rangescope::analyze
