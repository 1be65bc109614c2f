#include "analyze/replay/stream_joins.hpp"

#include <gtest/gtest.h>

#include "analyze/replay/build.hpp"
#include "analyze/replay/changes.hpp"
#include "analyze/replay/program_test.hpp"

namespace rangescope::analyze::replay {
namespace stream_joins_test {

using testing::operations_of;
using testing::Program;
using testing::replayed;

constexpr std::int64_t kMicrosecond = 1'000;
constexpr Id kCopies = 1;  // stream

std::vector<Id> works_before(const StreamJoins& joins, Id work) {
  const auto before = joins.before(work);
  return {before.begin(), before.end()};
}

/// Copies in a stream of their own; the kernel of each step waits for its copy.
Program steps_with_copies(std::int64_t copy_ns) {
  Program program(2);
  program.begin("loop");
  for (int step = 0; step < 20; ++step) {
    program.copy(copy_ns, 1 << 20, kCopies);
    program.join(kCopies, 0);
    program.compute(50 * kMicrosecond);
    program.kernel("gemm", 30 * kMicrosecond);
  }
  program.wait();
  program.end();
  return program;
}

TEST(StreamJoins, WorkComesAfterTheEventThatItsStreamWaitedFor) {
  const Program program = steps_with_copies(10 * kMicrosecond);
  const Timeline timeline = timeline_of(program.session());
  const StreamJoins joins(program.session(), timeline);
  Id copy = model::kNone;
  for (Id work = 0; work < timeline.works.size(); ++work) {
    const bool is_copy = timeline.works[work].kind == Kind::kCopy;
    EXPECT_EQ(works_before(joins, work), is_copy ? std::vector<Id>{} : std::vector<Id>{copy});
    if (is_copy)
      copy = work;
  }
}

// In the recording no kernel waited for its copy: the times alone do not show that it would.
TEST(StreamJoins, AWaitThatCostNothingHoldsWhenTheCopyGetsSlower) {
  const Program recorded = steps_with_copies(10 * kMicrosecond);
  const Graph graph = graph_of(recorded.session());
  EXPECT_EQ(replayed(graph, recorded, "loop"), recorded.length("loop"));
  const Graph slower = scaled(graph, operations_of(graph, Kind::kCopy), 40);
  const Program real = steps_with_copies(400 * kMicrosecond);
  const auto real_ns = static_cast<double>(real.length("loop"));
  EXPECT_NEAR(static_cast<double>(replayed(slower, recorded, "loop")), real_ns, 0.01 * real_ns);
}

// Stream 1 has no work of its own between the two events.
TEST(StreamJoins, AnEventHoldsWhatItsStreamWaitsFor) {
  Program program(3);
  program.kernel("first", 100 * kMicrosecond, 0);
  program.join(0, 1);
  program.join(1, 2);
  program.kernel("second", 10 * kMicrosecond, 2);
  const Timeline timeline = timeline_of(program.session());
  EXPECT_EQ(works_before(StreamJoins(program.session(), timeline), 1), std::vector<Id>{0});
}

TEST(StreamJoins, AThreadWaitsForWhatTheEventHeldAndNoMore) {
  Program program;
  program.begin("until event");
  program.kernel("before", 100 * kMicrosecond);
  program.record(0);
  program.kernel("behind", 900 * kMicrosecond);
  program.synchronize();
  program.end();
  const Graph graph = graph_of(program.session());
  const auto kernels = operations_of(graph, Kind::kKernel);
  const auto waits = operations_of(graph, Kind::kWait);
  EXPECT_EQ(graph.find_dependency(waits.at(0), Reason::kAwaited), kernels.at(0));
  EXPECT_EQ(replayed(graph, program, "until event"), program.length("until event"));
}

/// A kernel of a blocking stream between two of the legacy default stream.
std::vector<Id> before_last_of(model::StreamKind kind) {
  Program program(2);
  program.set_kind(0, model::StreamKind::kLegacyDefault);
  program.set_kind(1, kind);
  program.kernel("a", 10 * kMicrosecond, 0);
  program.wait_event(0, 1);
  program.kernel("b", 10 * kMicrosecond, 1);
  program.wait_event(1, 0);
  program.kernel("c", 10 * kMicrosecond, 0);
  const Timeline timeline = timeline_of(program.session());
  const StreamJoins joins(program.session(), timeline);
  EXPECT_EQ(works_before(joins, 1),
            works_before(joins, 2).empty() ? std::vector<Id>{} : std::vector<Id>{0});
  return works_before(joins, 2);
}

TEST(StreamJoins, TheLegacyDefaultStreamWaitsForBlockingStreams) {
  EXPECT_EQ(before_last_of(model::StreamKind::kBlocking), std::vector<Id>{1});
  EXPECT_EQ(before_last_of(model::StreamKind::kNonBlocking), std::vector<Id>{});
  EXPECT_EQ(before_last_of(model::StreamKind::kUnknown), std::vector<Id>{});
}

}  // namespace stream_joins_test
}  // namespace rangescope::analyze::replay
