// Simulated jobs on hosts whose clocks are wrong by a known offset and drift.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "analyze/analyze.hpp"
#include "analyze/ranks/clocks.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace clocks_test {

constexpr double kMicro = 1e3, kMilli = 1e6;

struct Host {
  double offset_ns = 0, drift = 0;
  /// What its clock shows at a true time, and back.
  [[nodiscard]] double shows(double at) const { return at + offset_ns + drift * at; }
};

/// Ranks, two a host, leave each call together within `jitter_ns`; every so often one leaves late.
model::Session simulate(const std::vector<Host>& hosts,
                        std::size_t calls,
                        double jitter_ns,
                        unsigned seed) {
  testing::SessionBuilder builder;
  std::mt19937 random(seed);
  std::normal_distribution<double> jitter(0, jitter_ns);
  std::uniform_real_distribution<double> compute(1 * kMilli, 40 * kMilli);
  for (std::uint32_t rank = 0; rank < hosts.size() * 2; ++rank) {
    builder.thread(builder.process(100 + rank), 100 + rank);
    builder.session.processes.back().rank = rank;
    builder.session.processes.back().host =
        builder.session.strings.intern("host" + std::to_string(rank / 2));
  }
  double now = 1e9;
  for (std::size_t call = 0; call < calls; ++call) {
    now += compute(random);
    for (std::uint32_t rank = 0; rank < hosts.size() * 2; ++rank) {
      const Host& host = hosts[rank / 2];
      const double late = random() % 50 == 0 ? 300 * kMicro : 0,
                   end = now + std::abs(jitter(random)) + late;
      const auto range = builder.range(rank,
                                       "MPI_Allreduce",
                                       std::llround(host.shows(now - compute(random) / 4)),
                                       std::llround(host.shows(end)),
                                       "MPI");
      builder.session.payload_fields.push_back(
          {range,
           builder.session.strings.intern("MPI communicator ID"),
           model::PayloadType::kUint64,
           1});
      builder.range(
          rank, "marker", std::llround(host.shows(now)), std::llround(host.shows(now)) + 10);
    }
  }
  return std::move(builder.session);
}

TEST(Clocks, OffsetAndDriftAreFoundToTwentyMicroseconds) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> offset(-500 * kMicro, 500 * kMicro),
        drift(-50e-6, 50e-6);
    std::vector<Host> hosts = {{0, 0}};
    for (int i = 0; i < 3; ++i)
      hosts.push_back({offset(random), drift(random)});
    model::Session session = simulate(hosts, 500, 10 * kMicro, seed);
    std::vector<double> truth;  // when each marker was, by the reference
    for (const model::Range& range : session.ranges)
      if (session.strings.view(range.name) == "marker" && range.thread == 0)
        truth.push_back(static_cast<double>(range.start_ns));
    CollectiveCalls found = find_collectives(session);
    const auto clocks = align_hosts(session, found);
    ASSERT_EQ(clocks.size(), 4u);
    for (std::uint32_t rank = 2; rank < 8; ++rank) {
      std::vector<double> wrong;
      for (const model::Range& range : session.ranges)
        if (session.strings.view(range.name) == "marker" && range.thread == rank)
          wrong.push_back(std::abs(static_cast<double>(range.start_ns) - truth[wrong.size()]));
      std::sort(wrong.begin(), wrong.end());
      EXPECT_LT(wrong[wrong.size() * 95 / 100], 20 * kMicro) << "seed " << seed << " rank " << rank;
      EXPECT_LT(wrong.back(), 60 * kMicro);
    }
    EXPECT_GT(clocks[1].residual_ns, 0);
    EXPECT_EQ(clocks[1].calls, 500u);
  }
}

TEST(Clocks, CpuSamplesAndWaitsMoveWithTheClockOfTheirHost) {
  // Host 1 is 3 ms ahead: its samples and waits lie around its marker, before and after.
  model::Session session = simulate({{0, 0}, {3 * kMilli, 0}}, 200, 1 * kMicro, 5);
  const std::uint32_t on_host_1 = 2;
  std::vector<std::int64_t> marker_starts;
  for (const model::Range& range : session.ranges)
    if (range.thread == on_host_1 && session.strings.view(range.name) == "marker")
      marker_starts.push_back(range.start_ns);
  model::CpuProfile& cpu = session.cpu;
  cpu.threads = {{.pid = 102, .tid = 102, .thread = on_host_1},
                 {.pid = 102, .tid = 999, .recorded_with = on_host_1},  // it has no ranges
                 {.pid = 100, .tid = 100, .thread = 0}};
  for (std::uint32_t thread = 0; thread < 2; ++thread)
    for (const std::int64_t start : marker_starts) {
      cpu.samples.push_back({.at_ns = start + 5, .thread = thread});
      cpu.waits.push_back({.start_ns = start - 50, .end_ns = start, .thread = thread});
      cpu.counts.push_back({.at_ns = start + 7, .thread = thread});
    }
  cpu.samples.push_back({.at_ns = 1'000'000'000, .thread = 2});
  CollectiveCalls found = find_collectives(session);
  ASSERT_EQ(align_hosts(session, found).size(), 2u);
  std::vector<std::int64_t> moved_starts;
  for (const model::Range& range : session.ranges)
    if (range.thread == on_host_1 && session.strings.view(range.name) == "marker")
      moved_starts.push_back(range.start_ns);
  for (std::size_t i = 0; i < 2 * moved_starts.size(); ++i) {
    const std::int64_t start = moved_starts[i % moved_starts.size()];
    EXPECT_NEAR(start - marker_starts[i % marker_starts.size()], -3 * kMilli, 20 * kMicro);
    EXPECT_NEAR(cpu.samples[i].at_ns, start + 5, 2);
    EXPECT_NEAR(cpu.waits[i].start_ns, start - 50, 2);
    EXPECT_NEAR(cpu.waits[i].end_ns, start, 2);
    EXPECT_NEAR(cpu.counts[i].at_ns, start + 7, 2);
  }
  EXPECT_EQ(cpu.samples.back().at_ns, 1'000'000'000) << "the reference's clock stays";
}

TEST(Clocks, AHostWithoutCommonCallsGoesThroughOthers) {
  // Communicator 1: hosts 0 and 1; communicator 2: hosts 1 and 2.
  model::Session session =
      simulate({{0, 0}, {400 * kMicro, 0}, {-300 * kMicro, 0}}, 200, 1 * kMicro, 3);
  for (model::PayloadField& field : session.payload_fields) {
    const std::uint32_t rank = session.ranges[field.range].thread;
    field.bits = rank == 0 || rank == 2 ? 1 : rank == 3 || rank == 4 ? 2 : 3 + rank;
  }
  const auto clocks = find_clocks(session, find_collectives(session));
  ASSERT_EQ(clocks.size(), 3u);
  EXPECT_NEAR(clocks[1].add_at(2e9), -400 * kMicro, 20 * kMicro);
  EXPECT_NEAR(clocks[2].add_at(2e9), 300 * kMicro, 20 * kMicro);
}

TEST(Clocks, OneHostAndHostsWithoutCallsStayAsTheyAre) {
  model::Session one = simulate({{0, 0}}, 10, 1, 1);
  EXPECT_TRUE(find_clocks(one, find_collectives(one)).empty());
  model::Session none = simulate({{0, 0}, {400 * kMicro, 0}}, 10, 1, 1);
  none.payload_fields.clear();
  std::erase_if(none.ranges,
                [&](const model::Range& r) { return none.strings.view(r.name) != "marker"; });
  const auto before = none.ranges[3].start_ns;
  const auto report = answer(none, Options{}, Reference{});
  ASSERT_TRUE(report);
  EXPECT_EQ(none.ranges[3].start_ns, before);
  EXPECT_TRUE(
      std::any_of(report->losses.begin(), report->losses.end(), [](const model::Loss& loss) {
        return loss.kind == "clocks_not_aligned";
      }));
}

}  // namespace clocks_test
}  // namespace rangescope::analyze
