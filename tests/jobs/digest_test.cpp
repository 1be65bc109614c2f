// A simulated job's report from the digests of its ranks, against the one from all its recordings:
// equal in everything but medians, 95th percentiles, and what digests do not hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/analyze.hpp"
#include "analyze/rows.hpp"
#include "analyze/tally/file.hpp"
#include "analyze/tally/make.hpp"
#include "analyze/tally/report.hpp"
#include "analyze/verdict/verdict.hpp"
#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "read/join.hpp"
#include "simulated_rank.hpp"

namespace rangescope::analyze::tally {
namespace {

model::Report from_recordings(const Plan& plan) {
  std::vector<model::Session> sessions;
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank)
    sessions.push_back(recording(plan, rank));
  model::Session session = read::join(std::move(sessions));
  auto report = analyze::answer(session, {}, {});
  EXPECT_TRUE(report);
  return std::move(*report);
}

Digest made(const Plan& plan, std::uint32_t rank) {
  auto digest = digest_of(recording(plan, rank), {});
  EXPECT_TRUE(digest);
  return std::move(*digest);
}

model::Report from_digest(Digest digest) {
  return report_of(std::move(digest), {}, {}).report;
}

Digest merged(const Plan& plan, std::vector<std::uint32_t> order, bool by_two = false) {
  std::vector<Digest> digests;
  for (const std::uint32_t rank : order)
    digests.push_back(made(plan, rank));
  while (by_two && digests.size() > 1) {
    std::vector<Digest> fewer;
    for (std::size_t i = 0; i < digests.size(); i += 2)
      fewer.push_back(i + 1 < digests.size() ? merge(digests[i], digests[i + 1])
                                             : std::move(digests[i]));
    digests = std::move(fewer);
  }
  Digest all;
  for (const Digest& digest : digests)
    all = merge(all, digest);
  return all;
}

void expect_near(double found, double exact, const std::string& what) {
  EXPECT_EQ(std::isnan(found), std::isnan(exact)) << what;
  if (!std::isnan(exact)) {
    EXPECT_NEAR(found, exact, kRelativeError * std::abs(exact) + 1e-9) << what;
  }
}

void expect_spread(const model::Spread& found,
                   const model::Spread& exact,
                   const std::string& what) {
  EXPECT_EQ(found.min, exact.min) << what;
  EXPECT_EQ(found.max, exact.max) << what;
  EXPECT_EQ(found.mean, exact.mean) << what;
  EXPECT_DOUBLE_EQ(found.stddev, exact.stddev) << what;
  expect_near(found.median, exact.median, what);
  expect_near(found.p95, exact.p95, what);
}

void expect_gpu(const model::GpuWork& found, const model::GpuWork& exact, const std::string& what) {
  for (const auto count : kGpuCounts)
    EXPECT_EQ(found.*count, exact.*count) << what;
  for (const auto ns : kGpuTimes)
    EXPECT_EQ(found.*ns, exact.*ns) << what;
  EXPECT_EQ(found.share, exact.share) << what;
  EXPECT_EQ(found.distinct_kernels, exact.distinct_kernels) << what;
  ASSERT_EQ(found.launch_latency_ns.has_value(), exact.launch_latency_ns.has_value()) << what;
  if (exact.launch_latency_ns)
    expect_spread(*found.launch_latency_ns, *exact.launch_latency_ns, what + " latency");
  expect_spread(found.kernel_ns_per_occurrence, exact.kernel_ns_per_occurrence, what + " kernels");
  expect_spread(found.busy_ns_per_occurrence, exact.busy_ns_per_occurrence, what + " busy");
  ASSERT_EQ(found.copies_by_kind.size(), exact.copies_by_kind.size()) << what;
  for (std::size_t i = 0; i < exact.copies_by_kind.size(); ++i)
    EXPECT_EQ(found.copies_by_kind[i].bytes, exact.copies_by_kind[i].bytes) << what;
  ASSERT_EQ(found.top_kernels.size(), exact.top_kernels.size()) << what;
  for (std::size_t i = 0; i < exact.top_kernels.size(); ++i) {
    const model::KernelRow &a = found.top_kernels[i], &b = exact.top_kernels[i];
    EXPECT_EQ(a.name, b.name) << what;
    EXPECT_EQ(a.calls, b.calls) << what;
    EXPECT_EQ(a.total_ns, b.total_ns) << what;
    EXPECT_EQ(a.share, b.share) << what;
    expect_spread(a.duration_ns, b.duration_ns, what + " " + a.name);
  }
}

void expect_region(const model::Region& found, const model::Region& exact, bool merged_row) {
  const std::string what = (found.path.empty() ? "" : found.path.back()) + "@" + found.domain;
  EXPECT_EQ(found.path, exact.path);
  EXPECT_EQ(found.domain, exact.domain) << what;
  EXPECT_EQ(found.kind, exact.kind) << what;
  EXPECT_EQ(found.parent, exact.parent) << what;
  EXPECT_EQ(found.depth, exact.depth) << what;
  for (const auto count : {&model::Region::occurrences,
                           &model::Region::unclosed,
                           &model::Region::threads,
                           &model::Region::processes})
    EXPECT_EQ(found.*count, exact.*count) << what;
  for (const auto ns : {&model::WallTime::inclusive_ns,
                        &model::WallTime::exclusive_ns,
                        &model::WallTime::profiler_ns,
                        &model::WallTime::share})
    EXPECT_DOUBLE_EQ(found.wall.*ns, exact.wall.*ns) << what;
  expect_spread(found.wall.per_occurrence_ns, exact.wall.per_occurrence_ns, what + " wall");
  ASSERT_EQ(found.steady.has_value(), exact.steady.has_value()) << what;
  if (exact.steady &&
      !merged_row) {  // of siblings in one row a digest judges the warm-up one by one
    EXPECT_EQ(found.steady->occurrences, exact.steady->occurrences) << what;
    EXPECT_EQ(found.steady->left_out, exact.steady->left_out) << what;
    EXPECT_EQ(found.steady->left_out_ns, exact.steady->left_out_ns) << what;
    EXPECT_EQ(found.steady->longest_ns, exact.steady->longest_ns) << what;
    EXPECT_EQ(found.steady->wall_total_ns, exact.steady->wall_total_ns) << what;
    EXPECT_EQ(found.steady->busy_share.has_value(), exact.steady->busy_share.has_value()) << what;
    if (exact.steady->busy_share && !merged_row) {
      EXPECT_DOUBLE_EQ(*found.steady->busy_share, *exact.steady->busy_share) << what;
    }
    expect_spread(found.steady->wall_ns, exact.steady->wall_ns, what + " steady");
  }
  if (!merged_row) {
    ASSERT_EQ(found.across.has_value(), exact.across.has_value()) << what;
    if (exact.across) {
      EXPECT_EQ(found.across->of_threads, exact.across->of_threads) << what;
      EXPECT_EQ(found.across->parts, exact.across->parts) << what;
      EXPECT_EQ(found.across->min_ns, exact.across->min_ns) << what;
      EXPECT_EQ(found.across->max_ns, exact.across->max_ns) << what;
      EXPECT_EQ(found.across->mean_ns, exact.across->mean_ns) << what;
      EXPECT_EQ(found.across->slowest, exact.across->slowest) << what;
    }
    EXPECT_EQ(found.gpu.has_value(), exact.gpu.has_value()) << what;
    if (exact.gpu && found.gpu)
      expect_gpu(*found.gpu, *exact.gpu, what);
  }
  ASSERT_EQ(found.communication.has_value(), exact.communication.has_value()) << what;
  if (exact.communication) {
    const model::Communication &a = *found.communication, &b = *exact.communication;
    EXPECT_EQ(std::tie(a.calls, a.time_ns, a.transfer_ns, a.wait_ns, a.overlap_ns),
              std::tie(b.calls, b.time_ns, b.transfer_ns, b.wait_ns, b.overlap_ns))
        << what;
    const auto causes = [](const model::Communication& of) {
      std::vector<std::tuple<std::uint32_t, std::int64_t, double>> all;
      for (const auto& cause : of.held_up_by)
        all.emplace_back(cause.rank, cause.calls, cause.ns);
      return all;
    };
    EXPECT_EQ(causes(a), causes(b)) << what;
  }
  ASSERT_EQ(found.ranks.has_value(), exact.ranks.has_value()) << what;
  if (!exact.ranks)
    return;
  EXPECT_EQ(found.ranks->count, exact.ranks->count) << what;
  EXPECT_EQ(found.ranks->mean_ns, exact.ranks->mean_ns) << what;
  EXPECT_EQ(found.ranks->min_ns, exact.ranks->min_ns) << what;
  EXPECT_EQ(found.ranks->max_ns, exact.ranks->max_ns) << what;
  EXPECT_EQ(found.ranks->stddev_ns, exact.ranks->stddev_ns) << what;
  EXPECT_EQ(found.ranks->imbalance, exact.ranks->imbalance) << what;
  EXPECT_EQ(found.ranks->slowest, exact.ranks->slowest) << what;
  if (merged_row)
    return;
  EXPECT_EQ(found.ranks->compared, exact.ranks->compared) << what;
  EXPECT_EQ(found.ranks->slowest_in, exact.ranks->slowest_in) << what;
  for (std::size_t i = 0; i < exact.ranks->by_rank.size(); ++i) {
    EXPECT_EQ(std::isnan(found.ranks->own_by_rank[i]), std::isnan(exact.ranks->own_by_rank[i]))
        << what;
    if (!std::isnan(exact.ranks->own_by_rank[i])) {
      EXPECT_EQ(found.ranks->own_by_rank[i], exact.ranks->own_by_rank[i]) << what;
    }
  }
}

void expect_same(const model::Report& found, const model::Report& exact) {
  EXPECT_EQ(found.run.duration_ns, exact.run.duration_ns);
  ASSERT_EQ(found.outside.has_value(), exact.outside.has_value());
  EXPECT_EQ(found.outside->before_ns, exact.outside->before_ns);
  EXPECT_EQ(found.outside->between_ns, exact.outside->between_ns);
  EXPECT_EQ(found.outside->after_ns, exact.outside->after_ns);
  ASSERT_EQ(found.ranks.size(), exact.ranks.size());
  for (std::size_t i = 0; i < exact.ranks.size(); ++i) {
    EXPECT_EQ(found.ranks[i].rank, exact.ranks[i].rank);
    EXPECT_EQ(found.ranks[i].host, exact.ranks[i].host);
    EXPECT_EQ(found.ranks[i].device, exact.ranks[i].device);
    EXPECT_EQ(found.ranks[i].run, exact.ranks[i].run);
    EXPECT_EQ(found.ranks[i].pid, exact.ranks[i].pid);
    EXPECT_NEAR(found.ranks[i].clock_offset_ns, exact.ranks[i].clock_offset_ns, 1);
  }
  std::vector<const model::Region*> regions;
  for (const model::Region& region : exact.regions)
    if (!region.process && !region.thread)
      regions.push_back(&region);
  ASSERT_EQ(found.regions.size(), regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i)
    expect_region(found.regions[i], *regions[i], false);
  ASSERT_EQ(found.rows.size(), exact.rows.size());
  for (std::size_t i = 0; i < exact.rows.size(); ++i) {
    EXPECT_EQ(found.rows[i].members, exact.rows[i].members);
    ASSERT_EQ(found.rows[i].merged.has_value(), exact.rows[i].merged.has_value());
    if (exact.rows[i].merged)
      expect_region(*found.rows[i].merged, *exact.rows[i].merged, true);
  }
  ASSERT_EQ(found.collectives.size(), exact.collectives.size());
  for (std::size_t i = 0; i < exact.collectives.size(); ++i) {
    const model::Collective &a = found.collectives[i], &b = exact.collectives[i];
    EXPECT_EQ(std::tie(a.communicator,
                       a.library,
                       a.operation,
                       a.path,
                       a.bytes,
                       a.ranks,
                       a.calls,
                       a.transfer_ns,
                       a.wait_ns,
                       a.algorithm_bytes_per_s,
                       a.bus_bytes_per_s,
                       a.hidden_share),
              std::tie(b.communicator,
                       b.library,
                       b.operation,
                       b.path,
                       b.bytes,
                       b.ranks,
                       b.calls,
                       b.transfer_ns,
                       b.wait_ns,
                       b.algorithm_bytes_per_s,
                       b.bus_bytes_per_s,
                       b.hidden_share));
    ASSERT_EQ(a.by_rank.size(), b.by_rank.size());
    for (std::size_t r = 0; r < b.by_rank.size(); ++r) {
      const model::CollectiveOfRank &x = a.by_rank[r], &y = b.by_rank[r];
      EXPECT_EQ(std::tie(x.rank,
                         x.late_ns,
                         x.wait_ns,
                         x.holds_up_ns,
                         x.costs_ns,
                         x.last,
                         x.time_ns,
                         x.hidden_ns),
                std::tie(y.rank,
                         y.late_ns,
                         y.wait_ns,
                         y.holds_up_ns,
                         y.costs_ns,
                         y.last,
                         y.time_ns,
                         y.hidden_ns));
    }
  }
  ASSERT_EQ(found.kernels.size(), exact.kernels.size());
  for (std::size_t i = 0; i < exact.kernels.size(); ++i) {
    EXPECT_EQ(found.kernels[i].label, exact.kernels[i].label);
    EXPECT_EQ(found.kernels[i].calls, exact.kernels[i].calls);
    EXPECT_EQ(found.kernels[i].shapes, exact.kernels[i].shapes);
    EXPECT_EQ(found.kernels[i].shape, exact.kernels[i].shape);
    expect_spread(
        found.kernels[i].duration_ns, exact.kernels[i].duration_ns, exact.kernels[i].name);
  }
  ASSERT_EQ(found.total.has_value(), exact.total.has_value());
  if (exact.total) {
    EXPECT_EQ(found.total->busy_ns, exact.total->busy_ns);
  }
  ASSERT_EQ(found.unattributed.has_value(), exact.unattributed.has_value());
  if (exact.unattributed) {
    EXPECT_EQ(found.unattributed->kernel_ns, exact.unattributed->kernel_ns);
  }
  ASSERT_EQ(found.messages.size(), exact.messages.size());
  for (std::size_t i = 0; i < exact.messages.size(); ++i) {
    const model::PointToPoint &a = found.messages[i], &b = exact.messages[i];
    EXPECT_EQ(std::tie(a.communicator,
                       a.library,
                       a.path,
                       a.from,
                       a.to,
                       a.calls,
                       a.bytes,
                       a.transfer_ns,
                       a.late_sender_ns,
                       a.late_receiver_ns,
                       a.late_senders,
                       a.late_receivers,
                       a.bytes_per_s),
              std::tie(b.communicator,
                       b.library,
                       b.path,
                       b.from,
                       b.to,
                       b.calls,
                       b.bytes,
                       b.transfer_ns,
                       b.late_sender_ns,
                       b.late_receiver_ns,
                       b.late_senders,
                       b.late_receivers,
                       b.bytes_per_s));
  }
  for (std::size_t i = 0; i < exact.ranks.size(); ++i) {
    const model::RankWork &a = found.ranks[i].work, &b = exact.ranks[i].work;
    EXPECT_TRUE(a.is_known);
    EXPECT_EQ(found.ranks[i].card, exact.ranks[i].card);
    EXPECT_EQ(std::tie(a.kernels,
                       a.kernel_ns,
                       a.kernel_threads,
                       a.copied_bytes,
                       a.tokens,
                       a.paced_kernel_ns,
                       a.paced_cpu_ns,
                       a.cpu_ranges,
                       a.slower_ranges),
              std::tie(b.kernels,
                       b.kernel_ns,
                       b.kernel_threads,
                       b.copied_bytes,
                       b.tokens,
                       b.paced_kernel_ns,
                       b.paced_cpu_ns,
                       b.cpu_ranges,
                       b.slower_ranges));
    for (const auto value : {&model::RankWork::kernel_pace,
                             &model::RankWork::cpu_pace,
                             &model::RankWork::sm_clock_hz,
                             &model::RankWork::clock_limited}) {
      EXPECT_EQ(std::isnan(a.*value), std::isnan(b.*value));
      if (!std::isnan(b.*value)) {
        EXPECT_NEAR(a.*value, b.*value, 1e-12 * b.*value);
      }
    }
  }
  const auto counts = [](const model::Report& report) {
    std::map<std::string_view, std::uint64_t> sums;
    for (const model::Loss& loss : report.losses)
      sums[loss.kind.id()] += loss.count;
    return sums;
  };
  EXPECT_EQ(counts(found), counts(exact));
  const auto of_ranks = [](const model::Report& report) {
    std::map<std::string_view, std::string> texts;
    for (const model::Verdict& verdict : report.verdict)
      for (const char* kind : {"straggler", "uneven_work", "slow_gpu", "slow_host", "slow_link"})
        if (verdict.kind == kind)
          texts[kind] = verdict.text;
    return texts;
  };
  EXPECT_EQ(of_ranks(found), of_ranks(exact));
}

std::string text_of(const model::MemoryPart& part) {
  return fmt::format("{} of {}{}: {} in {}; ",
                     model::memory_use_name(part.use),
                     part.owner,
                     part.is_of_time ? "?" : "",
                     part.bytes,
                     part.blocks);
}

/// All but the curve over time.
std::string text_of(const model::DeviceMemory& memory) {
  std::string text = fmt::format(
      "process {} GPU {} {} {}: {} allocations, {} older, {} at the end, peak {}, reserved {} and "
      "{}, {} steps, {} "
      "owned; ",
      memory.process,
      memory.device,
      memory.allocator,
      memory.sizes,
      memory.allocations,
      memory.older_bytes,
      memory.end_bytes,
      memory.peak_bytes,
      memory.peak_reserved_bytes.value_or(-1),
      memory.reserved_at_peak_bytes.value_or(-1),
      memory.steps,
      memory.owned_share);
  for (const auto* parts : {&memory.uses, &memory.parts})
    for (const model::MemoryPart& part : *parts)
      text += text_of(part);
  if (const auto& growth = memory.growth)
    text += fmt::format(
        "grows by {} over {}, {}; ", growth->bytes_per_step, growth->steps, growth->owner);
  if (const auto& failure = memory.failure)
    text += fmt::format("{} asked for {} with {} in use, {} reserved, {} free, {} times",
                        failure->owner,
                        failure->asked_bytes,
                        failure->in_use_bytes,
                        failure->reserved_bytes,
                        failure->free_bytes,
                        failure->count);
  return text;
}

std::vector<std::string> verdicts_on_memory(const model::Report& report) {
  std::vector<std::string> texts;
  for (const model::Verdict& verdict : report.verdict)
    for (const char* kind : {"out_of_memory", "memory_grows", "memory_fragmented", "peak_memory"})
      if (verdict.kind == kind)
        texts.push_back(verdict.text);
  return texts;
}

TEST(Digests, SayWhoseTheMemoryIs) {
  for (const bool hosts : {false, true}) {
    const Plan plan{.hosts = hosts, .memory = true};
    const model::Report found = from_digest(merged(plan, {0, 1, 2, 3, 4})),
                        exact = from_recordings(plan);
    expect_same(found, exact);
    ASSERT_EQ(found.memory.size(), 8u);
    ASSERT_EQ(exact.memory.size(), 8u);
    for (std::size_t i = 0; i < exact.memory.size(); ++i) {
      EXPECT_EQ(text_of(found.memory[i]), text_of(exact.memory[i]));
      EXPECT_NEAR(found.memory[i].peak_at_ns, exact.memory[i].peak_at_ns, hosts ? 1000 : 0);
      EXPECT_FALSE(found.memory[i].parts.empty());
    }
    EXPECT_TRUE(found.memory[5].failure);
    for (std::size_t r = 0; r < found.regions.size(); ++r) {
      ASSERT_TRUE(found.regions[r].memory && exact.regions[r].memory);
      const model::RegionMemory &a = *found.regions[r].memory, &b = *exact.regions[r].memory;
      EXPECT_EQ(std::tie(a.allocations, a.allocated_bytes, a.peak_bytes, a.held_bytes),
                std::tie(b.allocations, b.allocated_bytes, b.peak_bytes, b.held_bytes))
          << exact.regions[r].path.back();
    }
    EXPECT_EQ(verdicts_on_memory(found), verdicts_on_memory(exact));
    EXPECT_FALSE(verdicts_on_memory(found).empty());
  }
  const model::Report without = from_digest(merged({}, {0, 1, 2, 3, 4}));
  EXPECT_TRUE(without.memory.empty());
  EXPECT_FALSE(without.regions.at(0).memory);
}

TEST(Digests, SayWhatTheRecordingsSay) {
  for (const Plan& plan :
       {Plan{},
        Plan{.without = true},
        Plan{.ranks = 7, .hosts = false, .without = true},
        Plan{.ranks = 2, .gpu = false, .hosts = false, .unlike = false},
        Plan{.hosts = false, .beside = 5, .paces = true},
        Plan{.steps = 40, .straggler = 9, .hosts = false, .messages = true, .paces = true},
        Plan{.ranks = 4, .gpu = false, .hosts = false, .messages = true},
        Plan{.hosts = false, .messages = true},
        Plan{.ranks = 9, .steps = 150, .layers = 3, .straggler = 0, .hosts = false}}) {
    std::vector<std::uint32_t> order(plan.ranks);
    for (std::uint32_t i = 0; i < plan.ranks; ++i)
      order[i] = i;
    const model::Report report = from_digest(merged(plan, order));
    expect_same(report, from_recordings(plan));
    if (plan.gpu) {
      EXPECT_GT(report.collectives.at(0).hidden_share.value_or(0), 0);
    }
    EXPECT_EQ(report.messages.empty(), !plan.messages);
    if (plan.paces) {
      EXPECT_GT(report.ranks.at(1).work.kernel_pace, 1.1);
      EXPECT_EQ(report.ranks.at(2).work.sm_clock_hz, 1.3e9F);
      EXPECT_GT(report.ranks.at(0).work.cpu_ranges, 0);
    }
  }
}

TEST(Digests, BringMessagesOfSeveralHostsToOneClock) {
  const Plan plan{.messages = true};
  const model::Report found = from_digest(merged(plan, {0, 1, 2, 3, 4})),
                      exact = from_recordings(plan);
  ASSERT_EQ(found.messages.size(), exact.messages.size());
  using Key = std::tuple<std::string, std::vector<std::string>, std::uint32_t, std::uint32_t>;
  std::map<Key, const model::PointToPoint*> rows;
  for (const model::PointToPoint& row : exact.messages)
    rows[{row.library, row.path, row.from, row.to}] = &row;
  for (const model::PointToPoint& row : found.messages) {
    const model::PointToPoint& other = *rows.at({row.library, row.path, row.from, row.to});
    EXPECT_EQ(row.calls, other.calls);
    for (const auto ns : {&model::PointToPoint::transfer_ns,
                          &model::PointToPoint::late_sender_ns,
                          &model::PointToPoint::late_receiver_ns})
      EXPECT_NEAR(row.*ns,
                  other.*ns,
                  2.0 * static_cast<double>(row.calls));  // to the nanosecond, each
  }
}

const model::Communication& of_steps(const model::Report& report) {
  const auto step =
      std::find_if(report.regions.begin(), report.regions.end(), [](const model::Region& r) {
        return !r.process && r.path.back() == "step";
      });
  return *step->communication;
}

TEST(Digests, CloseShortGapsBetweenManyKernelsBesideACall) {
  const Plan plan{.steps = 40, .hosts = false, .beside = 20};
  const model::Report found = from_digest(merged(plan, {0, 1, 2, 3, 4})),
                      exact = from_recordings(plan);
  const model::Communication &a = of_steps(found), &b = of_steps(exact);
  EXPECT_EQ(std::tie(a.calls, a.time_ns, a.overlap_ns), std::tie(b.calls, b.time_ns, b.overlap_ns));
  EXPECT_GT(b.wait_ns, 0);
  EXPECT_NEAR(a.wait_ns, b.wait_ns, 0.1 * b.time_ns);
  EXPECT_NEAR(a.wait_ns + a.transfer_ns, b.wait_ns + b.transfer_ns, 1e-6);
}

TEST(Digests, MergeInAnyOrderAndGroupingToTheSameBytes) {
  const Plan plan{.ranks = 7, .messages = true, .memory = true, .paces = true};
  std::vector<std::uint32_t> order{0, 1, 2, 3, 4, 5, 6};
  const auto first = encode(merged(plan, order));
  ASSERT_TRUE(first);
  for (int i = 0; i < 6; ++i) {
    std::next_permutation(order.begin(), order.end());
    std::rotate(order.begin(), order.begin() + 3, order.end());
    const auto again = encode(merged(plan, order, i % 2 == 0));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *first);
  }
}

/// As many digests are merged: read side by side.
std::optional<Digest> side_by_side(const std::vector<std::string>& files) {
  std::vector<Reading> open(files.size());
  for (std::size_t i = 0; i < files.size(); ++i)
    if (!open[i].open(files[i], "file"))
      return std::nullopt;
  Merger merger;
  if (!merger.add(open))
    return std::nullopt;
  return merger.take();
}

TEST(Digests, MergeSideBySideToTheSameBytes) {
  const Plan plan{.ranks = 5, .without = true, .messages = true, .memory = true};
  std::vector<std::string> files;
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank)
    files.push_back(encode(made(plan, rank)).value());
  const auto all = side_by_side(files);
  ASSERT_TRUE(all);
  EXPECT_EQ(encode(*all).value(), encode(merged(plan, {0, 1, 2, 3, 4})).value());
}

TEST(Digests, RefuseWhatDoesNotFitTogetherWhereverItStands) {
  const Plan plan{.ranks = 3};
  const std::string good = encode(made(plan, 0)).value();
  Digest region = made(plan, 1), tail = made(plan, 2),
         message = made({.ranks = 3, .messages = true}, 1), out;
  region.regions.back().of_processes.sum = -5;
  tail.open.front().spans = {{10, 5}};
  message.messaging.front().ends.front().call = 99'999;
  for (Digest& wrong : {std::ref(region), std::ref(tail), std::ref(message)}) {
    const std::string file = encode(wrong).value();
    EXPECT_FALSE(decode(file, "wrong", out));
    EXPECT_TRUE(out.regions.empty());
    EXPECT_FALSE(side_by_side({good, file}));
  }
}

TEST(Digests, SayNothingOfWhatTheyLack) {
  const model::Report report = from_digest(merged({}, {0, 1, 2, 3, 4}));
  EXPECT_TRUE(report.activity.empty());
  const auto told = [&](std::string_view what) {
    return std::any_of(report.notes.begin(), report.notes.end(), [&](const std::string& note) {
      return note.find(what) != std::string::npos;
    });
  };
  for (const char* what : {"timelines", "single processes"})
    EXPECT_TRUE(told(what)) << what;
}

TEST(Digests, OfNothingChangeNothing) {
  const Plan plan{.ranks = 3};
  Digest nothing;
  nothing.losses.push_back({7, "ranks_unreadable", "nothing was captured", 1});
  const auto front = encode(merge(merge(merge(Digest{}, nothing), made(plan, 0)), made(plan, 1)));
  const auto back = encode(merge(made(plan, 1), merge(made(plan, 0), merge(nothing, Digest{}))));
  EXPECT_EQ(*front, *back);
  Digest read;
  ASSERT_TRUE(decode(*front, "merged", read));
  EXPECT_EQ(read.begin_ns, merged(plan, {0, 1}).begin_ns);
  EXPECT_TRUE(std::any_of(
      read.losses.begin(), read.losses.end(), [](const RankLoss& loss) { return loss.rank == 7; }));
}

TEST(Digests, AreReadAsTheyWereWritten) {
  const Plan plan{.ranks = 4, .messages = true, .memory = true, .paces = true};
  base::TemporaryFolder folder("digest");
  Digest reused = made(plan, 2);  // memory that held something else
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank) {
    const auto file = folder.path() / kFileName;
    ASSERT_TRUE(write(file, made(plan, rank)));
    ASSERT_TRUE(read(file, reused));
    EXPECT_EQ(encode(reused).value(), encode(made(plan, rank)).value());
    EXPECT_LT(std::filesystem::file_size(file), 20'000u);
  }
}

TEST(Digests, RefuseWhatIsDamaged) {
  const std::string good = encode(made({}, 1)).value();
  Digest out;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{23}, std::size_t{24}, good.size() - 1}) {
    const auto read = decode(std::string_view(good).substr(0, size), "cut", out);
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code, base::Code::kBadData);
  }
  std::string other = good;
  for (const char version : {4, 6}) {
    other[8] = version;
    EXPECT_NE(decode(other, "other", out).error().what.find("version " + std::to_string(version)),
              std::string::npos);
  }
  for (std::size_t at = 24; at < good.size(); at += 37) {
    std::string wrong = good;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
    (void)decode(wrong, "wrong", out);  // checked by zstd's own sum, nearly always
  }
}

TEST(Digests, OfVersion5AreReadAsTheyWereWritten) {
  const Plan plan{.ranks = 2,
                  .steps = 4,
                  .layers = 2,
                  .messages = true,
                  .paces = true};  // as the files were recorded
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank) {
    Digest before, now = made(plan, rank);
    const auto golden = std::filesystem::path(GOLDEN) / ("v5-" + std::to_string(rank) + ".rsd");
    if (std::getenv("RANGESCOPE_RECORD") != nullptr) {
      ASSERT_TRUE(base::write_file(golden, encode(now).value()));
    }
    ASSERT_TRUE(read(golden, before));
    now.tool = before.tool;
    ASSERT_EQ(before.losses.size(), now.losses.size());
    for (std::size_t i = 0; i < now.losses.size(); ++i)
      now.losses[i].detail = before.losses[i].detail;  // their words
    EXPECT_EQ(encode(before).value(), encode(now).value());
    EXPECT_FALSE(before.messaging.empty());
    EXPECT_FALSE(before.works.empty());
    EXPECT_EQ(before.clocks.empty(), rank != 0);
  }
}

TEST(Digests, HoldNumbersOfEveryLength) {
  Digest digest = made({.ranks = 1, .steps = 3, .layers = 1}, 0), read;
  std::uint64_t value = 0;
  for (int bits = 0; bits <= 64; ++bits, value = value << 1 | 1)
    for (const std::uint64_t count : {value, value + 1})
      digest.losses.push_back({0, "", "", count});
  ASSERT_TRUE(decode(encode(digest).value(), "numbers", read));
  std::sort(digest.losses.begin(), digest.losses.end());
  EXPECT_EQ(read.losses, digest.losses);
}

// The work of such a rank takes fifteen bytes, and hardly anything follows it.
TEST(Digests, OfManyRanksWithoutGpuWorkAreReadBack) {
  Digest digest, read;
  digest.names = {""};
  for (std::uint32_t rank = 0; rank < 100; ++rank)
    digest.works.push_back({.rank = rank});
  const auto file = encode(digest);
  ASSERT_TRUE(file);
  const auto decoded = decode(*file, "ranks", read);
  ASSERT_TRUE(decoded) << base::to_string(decoded.error());
  EXPECT_EQ(read.works.size(), 100u);
}

TEST(Digests, ThinWhatIsTooMuchAndSayWhatRemains) {
  const Plan plan{
      .ranks = 3, .steps = 6000, .layers = 1, .gpu = false, .hosts = false, .unlike = false};
  const Digest digest = made(plan, 0);
  ASSERT_EQ(digest.collectives.size(), 1u);
  EXPECT_EQ(digest.collectives[0].made_calls, 6000u);
  EXPECT_EQ(digest.collectives[0].shift, 1u);
  EXPECT_EQ(digest.collectives[0].calls.size(), 3000u);
  const model::Report found = from_digest(merged(plan, {0, 1, 2})), exact = from_recordings(plan);
  ASSERT_EQ(found.collectives.size(), 1u);
  EXPECT_EQ(found.collectives[0].calls, 3000);
  EXPECT_NEAR(found.collectives[0].wait_ns * 2,
              exact.collectives[0].wait_ns,
              0.02 * exact.collectives[0].wait_ns);
  const auto step = std::find_if(found.regions.begin(),
                                 found.regions.end(),
                                 [](const model::Region& r) { return r.path.back() == "step"; });
  ASSERT_NE(step, found.regions.end());
  EXPECT_EQ(step->ranks->compared, 750);
  EXPECT_EQ(step->communication->calls, 18000);  // those that are kept stand for all
  EXPECT_NEAR(
      step->communication->wait_ns, of_steps(exact).wait_ns, 0.02 * of_steps(exact).wait_ns);
  EXPECT_EQ(step->occurrences, 18000);
  EXPECT_TRUE(std::any_of(found.notes.begin(), found.notes.end(), [](const std::string& note) {
    return note.find("every 2nd call") != std::string::npos;
  }));
}

TEST(Digests, StaySmallWhereCallsAndMessagesAreMany) {
  const Plan plan{
      .ranks = 2, .steps = 4000, .layers = 1, .unlike = false, .beside = 10, .messages = true};
  const Digest digest = made(plan, 0);
  EXPECT_GT(digest.collectives.at(0).calls.size() + digest.messaging.at(0).calls.size(), 4000u);
  EXPECT_LT(encode(digest).value().size(), 400u << 10);
}

TEST(Digests, KeepTheSameMessagesAtBothEnds) {
  const Plan plan{.ranks = 4,
                  .steps = 3000,
                  .layers = 1,
                  .gpu = false,
                  .hosts = false,
                  .unlike = false,
                  .messages = true};
  const Digest digest = made(plan, 0);
  ASSERT_EQ(digest.messaging.size(), 1u);
  EXPECT_EQ(digest.messaging[0].shift, 2u);
  EXPECT_LE(digest.messaging[0].ends.size(), kMostKeptEnds);
  EXPECT_LT(encode(digest).value().size(), 150'000u);
  const model::Report found = from_digest(merged(plan, {0, 1, 2, 3})),
                      exact = from_recordings(plan);
  ASSERT_EQ(found.messages.size(), exact.messages.size());
  for (const model::PointToPoint& row : exact.messages) {
    const auto same =
        std::find_if(found.messages.begin(), found.messages.end(), [&](const auto& one) {
          return std::tie(one.path, one.from, one.to) == std::tie(row.path, row.from, row.to);
        });
    ASSERT_NE(same, found.messages.end());
    const double calls = static_cast<double>(row.calls),
                 scatter = 3 * std::sqrt(3 / calls);  // one in four
    EXPECT_NEAR(static_cast<double>(same->calls), calls, scatter * calls);
    EXPECT_NEAR(same->bytes, row.bytes, scatter * row.bytes);
    EXPECT_NEAR(same->late_sender_ns, row.late_sender_ns, scatter * row.late_sender_ns);
    EXPECT_NEAR(same->late_receiver_ns, row.late_receiver_ns, scatter * row.late_receiver_ns);
    if (row.bytes_per_s) {
      EXPECT_NEAR(*same->bytes_per_s, *row.bytes_per_s, 0.1 * *row.bytes_per_s);
    }
  }
  const model::Communication &a = of_steps(found), &b = of_steps(exact);
  EXPECT_NEAR(a.time_ns, b.time_ns, 0.02 * b.time_ns);
  EXPECT_NEAR(a.wait_ns, b.wait_ns, 0.02 * b.wait_ns);
  EXPECT_NEAR(static_cast<double>(a.calls),
              static_cast<double>(b.calls),
              0.05 * static_cast<double>(b.calls));
  const auto unmatched = [](const model::Report& report) {
    for (const model::Loss& loss : report.losses)
      if (loss.kind.id() == "messages_unmatched")
        return static_cast<double>(loss.count);
    return 0.0;
  };
  EXPECT_EQ(unmatched(exact), 375);
  EXPECT_NEAR(unmatched(found), 375, 0.3 * 375);
  EXPECT_TRUE(std::any_of(found.notes.begin(), found.notes.end(), [](const std::string& note) {
    return note.starts_with("messages rest on one in 4");
  }));
}

}  // namespace
}  // namespace rangescope::analyze::tally
