#include "read/impossible.hpp"

#include <gtest/gtest.h>

namespace rangescope::read {
namespace impossible_test {

/// A session of works that were launched at 1 ms, 2 ms ..., each 10 us after its call.
model::Session session_of(int works) {
  model::Session session;
  for (int i = 1; i <= works; ++i) {
    const std::int64_t call_ns = i * 1'000'000;
    const auto launch = static_cast<std::uint32_t>(session.launches.size());
    session.launches.push_back({.start_ns = call_ns, .end_ns = call_ns + 5'000});
    session.kernels.push_back(
        {.start_ns = call_ns + 10'000, .end_ns = call_ns + 50'000, .launch = launch});
  }
  return session;
}

constexpr RecordedTime kAll = {0, 100'000'000};

std::uint64_t lost(const model::Session& session, std::string_view what) {
  for (const model::Loss& loss : session.losses) {
    EXPECT_EQ(loss.kind.id(), "impossible_time");
    if (loss.detail.find(what) != std::string::npos)
      return loss.count;
  }
  return 0;
}

TEST(Impossible, WorkOfPossibleTimesStays) {
  model::Session session = session_of(20);
  session.kernels[3].start_ns -= 10'000 + kClockError_ns;  // as far as clocks may differ
  drop_impossible_work(session, {}, kAll, "");
  EXPECT_EQ(session.kernels.size(), 20u);
  EXPECT_TRUE(session.losses.empty());
}

TEST(Impossible, EachCaseIsALossOfItsOwn) {
  model::Session session = session_of(40);
  std::swap(session.kernels[1].start_ns, session.kernels[1].end_ns);
  session.kernels[5].start_ns -= 200'000;
  session.kernels[6].start_ns -= 200'000;
  session.kernels[9].start_ns = session.kernels[9].end_ns = -5;
  session.copies.push_back({.start_ns = 99'000'000, .end_ns = 100'000'001});
  drop_impossible_work(session, {}, kAll, "1.gpu: ");
  EXPECT_EQ(session.kernels.size(), 36u);
  EXPECT_EQ(session.copies.size(), 0u);
  EXPECT_EQ(lost(session, "1.gpu: GPU work that ends before it starts"), 1u);
  EXPECT_EQ(lost(session, "before the call"), 2u);
  EXPECT_EQ(lost(session, "outside"), 2u);
}

TEST(Impossible, AClockThatIsOffDropsNothing) {
  model::Session session = session_of(20);
  for (model::Kernel& kernel : session.kernels) {
    kernel.start_ns -= 300'000;
    kernel.end_ns -= 300'000;
  }
  drop_impossible_work(session, {}, kAll, "");
  EXPECT_EQ(session.kernels.size(), 20u);
  EXPECT_TRUE(session.losses.empty());
}

TEST(Impossible, WorkOfOtherFilesIsLeftAlone) {
  model::Session session = session_of(20);
  std::swap(session.kernels[1].start_ns, session.kernels[1].end_ns);
  drop_impossible_work(session, {.kernels = 2}, kAll, "");
  EXPECT_EQ(session.kernels.size(), 20u);
}

}  // namespace impossible_test
}  // namespace rangescope::read
