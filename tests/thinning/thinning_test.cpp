// Random programs, read with every range listed and with a few of each path: the reports are the
// same but for medians and percentiles, which are within the error that the report states, and for
// what only a listed range can show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>

#include "analyze/analyze.hpp"
#include "analyze/names/fold.hpp"
#include "analyze/names/nest.hpp"
#include "analyze/tally/make.hpp"
#include "analyze/tally/report.hpp"
#include "read/join.hpp"
#include "read/native/trace.hpp"
#include "wire/native.hpp"

namespace rangescope {
namespace {

namespace record = wire::native;
using record::Type;

constexpr std::int64_t kBegin = 1'000'000'000'000;

/// A capture file in memory, a stream a thread, written as the injected library writes: short
/// records where they fit.
class Capture {
 public:
  explicit Capture(std::uint32_t pid) {
    record::FileHeader header{};
    std::memcpy(header.magic, record::kMagic, sizeof header.magic);
    header.major = record::kMajor;
    header.header_bytes = 4096;
    header.pid = pid;
    header.monotonic_ns = kBegin;
    header.realtime_ns = 5;
    append(header);
  }
  record::FileHeader& header() { return *reinterpret_cast<record::FileHeader*>(bytes_.data()); }

  void thread(std::uint32_t tid) {
    close();
    tid_ = tid;
    ++stream_;
    sequence_ = 0;
    open();
    for (const auto& [name, id] : names_)
      string(name, id);
  }
  void push(const std::string& name,
            std::int64_t at,
            bool color = false,
            const std::string& domain = "") {
    const auto [known, fresh] =
        names_.try_emplace(name, static_cast<std::uint32_t>(names_.size() + 1));
    if (fresh)
      string(name, known->second);
    std::uint32_t scope = 0;
    if (!domain.empty()) {
      const auto [of, made] =
          domains_.try_emplace(domain, static_cast<std::uint32_t>(domains_.size() + 1));
      scope = of->second;
      if (made)
        put(Type::kDomain, scope, text(domain));
    }
    room();
    if (!color && scope == 0 && latest_ >= 0 &&
        record::ShortPush::fits(static_cast<std::uint64_t>(at - latest_), known->second)) {
      put(Type::kShortPush,
          record::ShortPush{static_cast<std::uint32_t>(at - latest_), known->second}.value(),
          {});
    } else {
      std::string more = word(static_cast<std::uint64_t>(kBegin + at));
      if (scope != 0)
        more += word(scope);
      if (color)
        more += word(0xff00ff00 + (at & 1));
      put(Type::kPush,
          known->second,
          more,
          static_cast<std::uint8_t>((color ? record::kHasColor : 0) |
                                    (scope != 0 ? record::kHasScope : 0)));
    }
    latest_ = at;
  }
  void pop(std::int64_t at, const std::string& domain = "") {
    room();
    const std::uint32_t scope = domain.empty() ? 0 : domains_.at(domain);
    if (latest_ >= 0)
      put(Type::kShortPop,
          static_cast<std::uint32_t>(at - latest_),
          {},
          static_cast<std::uint8_t>(scope));
    else
      put(Type::kPop, scope, word(static_cast<std::uint64_t>(kBegin + at)));
    latest_ = at;
  }
  void mark(std::int64_t at) { put(Type::kMark, 0, word(static_cast<std::uint64_t>(kBegin + at))); }
  void start_end(std::uint64_t id, std::int64_t from, std::int64_t to) {
    put(Type::kStart, 0, word(static_cast<std::uint64_t>(kBegin + from)) + word(id));
    put(Type::kEnd, 0, word(static_cast<std::uint64_t>(kBegin + to)) + word(id));
  }
  std::span<const std::byte> bytes() {
    close();
    return std::as_bytes(std::span(bytes_));
  }

 private:
  static constexpr std::size_t kChunk = 4096;
  template <class T>
  void append(const T& what) {
    bytes_.append(reinterpret_cast<const char*>(&what), sizeof what);
  }
  static std::string word(std::uint64_t value) {
    return {reinterpret_cast<const char*>(&value), 8};
  }
  static std::string text(const std::string& of) { return word(of.size()) + of; }
  void string(const std::string& name, std::uint32_t id) { put(Type::kString, id, text(name)); }
  void put(Type type, std::uint32_t value, std::string payload, std::uint8_t flags = 0) {
    payload.resize((payload.size() + 7) / 8 * 8);
    append(record::RecordHeader{
        type, flags, static_cast<std::uint16_t>(payload.size() / 8 + 1), value});
    bytes_ += payload;
  }
  void open() {
    chunk_ = bytes_.size();
    append(record::ChunkHeader{record::kChunkMagic, stream_ - 1, sequence_++, tid_, kChunk, {}});
    latest_ = -1;
  }
  void close() {
    if (chunk_ != 0)
      bytes_.resize(chunk_ + kChunk);
    chunk_ = 0;
  }
  void room() {
    if (bytes_.size() - chunk_ + 256 < kChunk)
      return;
    close();
    open();
  }

  std::string bytes_;
  std::size_t chunk_ = 0;
  std::uint32_t stream_ = 0, sequence_ = 0, tid_ = 0;
  std::int64_t latest_ = -1;
  std::map<std::string, std::uint32_t> names_, domains_;
};

struct Program {
  std::mt19937_64 random;
  Capture capture;
  std::int64_t now = 1000;
  std::size_t ranges = 0;
  bool other_domain = false, colors = false, marks = false, opens_for_ever = false;

  Program(unsigned seed, std::uint32_t pid) : random(seed), capture(pid) {}
  int pick(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  std::int64_t pause() {
    const int size = pick(3);
    return size == 0 ? pick(3) : size == 1 ? pick(100) : pick(4000);
  }

  /// One range and what is in it.
  void range(int depth) {
    static const char* kNames[] = {"a", "b", "step 1", "step 22", "x::y", "x::z"};
    const std::string domain = other_domain && pick(5) == 0 ? "D" : "";
    capture.push(kNames[pick(6)], now += 1 + pause(), colors && pick(2) == 0, domain);
    ++ranges;
    for (int i = depth < 4 ? pick(4) : 0; i > 0; --i)
      range(depth + 1);
    if (marks && pick(200) == 0)
      capture.mark(now += 1 + pause());
    now += 1 + pause();
    if (opens_for_ever && pick(500) == 0)
      return;
    capture.pop(now, domain);
  }
  void run(std::uint32_t tid, std::size_t most) {
    capture.thread(tid);
    now = 1000 + pick(5000);
    for (ranges = 0; ranges < most;)
      range(0);
  }
};

model::Session read(std::span<const std::byte> file,
                    std::size_t listed,
                    read::native::Thinning thinning = {}) {
  model::Session session;
  read::native::Losses losses;
  thinning.listed = listed;
  EXPECT_TRUE(
      read::native::read_trace(file, "x", session, losses, listed == 0 ? nullptr : &thinning));
  read::native::order_ranges(session);
  losses.move_to(session.losses);
  session.sources.push_back({"x", "native", "rangescope", "", model::Maker::kRangescope});
  session.begin_ns = kBegin;
  for (const model::Process& process : session.processes)
    session.end_ns = std::max(session.end_ns, process.end_ns);
  return session;
}

model::Report report(model::Session session, analyze::FoldNames fold, const std::string& nest) {
  analyze::Options options;
  options.fold_names = fold;
  options.per_thread = true;
  (void)analyze::NameFolder(fold, {}).fold(session);
  analyze::nest_names(session, nest);
  auto made = analyze::answer(session, options, {});
  EXPECT_TRUE(made);
  return std::move(*made);
}

void expect_near(const model::Spread& exact, const model::Spread& sketched, double error) {
  EXPECT_EQ(exact.min, sketched.min);
  EXPECT_EQ(exact.max, sketched.max);
  EXPECT_DOUBLE_EQ(exact.mean, sketched.mean);
  EXPECT_NEAR(exact.stddev, sketched.stddev, 1e-9 * exact.stddev);
  EXPECT_NEAR(exact.median, sketched.median, error * exact.median);
  EXPECT_NEAR(exact.p95, sketched.p95, error * exact.p95);
}

/// `settled`: which occurrences warmed up is found the same.
void compare(const model::Report& all, const model::Report& few, bool one_thread) {
  ASSERT_EQ(all.regions.size(), few.regions.size());
  EXPECT_EQ(all.processes.front().ranges, few.processes.front().ranges);
  for (std::size_t r = 0; r < all.regions.size(); ++r) {
    const model::Region &a = all.regions[r], &b = few.regions[r];
    SCOPED_TRACE(a.path.back() + " " + std::to_string(r));
    EXPECT_EQ(a.path, b.path);
    EXPECT_EQ(a.domain, b.domain);
    EXPECT_EQ(a.thread, b.thread);
    EXPECT_EQ(a.occurrences, b.occurrences);
    EXPECT_EQ(a.unclosed, b.unclosed);
    EXPECT_EQ(a.threads, b.threads);
    EXPECT_EQ(a.wall.inclusive_ns, b.wall.inclusive_ns);
    EXPECT_EQ(a.wall.exclusive_ns, b.wall.exclusive_ns);
    EXPECT_EQ(a.wall.profiler_ns, b.wall.profiler_ns);
    EXPECT_EQ(a.wall.share, b.wall.share);
    EXPECT_NEAR(a.wall.open_ns, b.wall.open_ns, one_thread ? 0 : 0.25 * a.wall.open_ns);
    EXPECT_EQ(a.wall.unlisted, 0);
    expect_near(a.wall.per_occurrence_ns, b.wall.per_occurrence_ns, b.wall.quantile_error);
    ASSERT_EQ(a.steady.has_value(), b.steady.has_value());
    if (a.steady) {
      EXPECT_EQ(a.steady->occurrences + a.steady->left_out,
                b.steady->occurrences + b.steady->left_out);
    }
    EXPECT_EQ(!a.across, !b.across);
    if (a.across && b.across) {
      EXPECT_EQ(a.across->max_ns, b.across->max_ns);
    }
  }
  ASSERT_EQ(all.outside.has_value(), few.outside.has_value());
  if (all.outside) {
    EXPECT_EQ(all.outside->before_ns, few.outside->before_ns);
    EXPECT_EQ(all.outside->after_ns, few.outside->after_ns);
    if (one_thread) {
      EXPECT_NEAR(all.outside->between_ns, few.outside->between_ns, 1);
    }
  }
  ASSERT_EQ(all.rows.size(), few.rows.size());
  for (std::size_t r = 0; r < all.rows.size(); ++r)
    if (all.rows[r].merged) {
      EXPECT_EQ(all.rows[r].merged->wall.inclusive_ns, few.rows[r].merged->wall.inclusive_ns);
      expect_near(all.rows[r].merged->wall.per_occurrence_ns,
                  few.rows[r].merged->wall.per_occurrence_ns,
                  few.rows[r].merged->wall.quantile_error);
    }
}

TEST(Thinning, LeavesEveryNumberAsItIs) {
  for (unsigned trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    Program program(trial, 7);
    program.other_domain = trial % 3 == 1;
    program.colors = trial % 4 == 1;
    program.marks = trial % 4 == 2;
    program.opens_for_ever = trial % 5 == 4;
    if (trial % 2 == 1) {
      program.capture.header().range_own_ps = 7'000;
      program.capture.header().range_pair_ps = 19'000;
    }
    const std::uint32_t threads = 1 + trial % 3;
    for (std::uint32_t t = 0; t < threads; ++t)
      program.run(100 + t, 1500);
    const auto bytes = program.capture.bytes();
    const auto fold = trial % 7 == 3 ? analyze::FoldNames::kNumbers : analyze::FoldNames::kOff;
    const std::string nest = trial % 10 == 2 ? "::" : "";
    model::Session few = read(bytes, 16);
    EXPECT_GT(few.unlisted.size(), 0u);
    EXPECT_LT(few.ranges.size(), model::count_ranges(few));
    compare(report(read(bytes, 0), fold, nest), report(std::move(few), fold, nest), threads == 1);
  }
}

TEST(Thinning, ListsWhatFollowsTheRunAndTheLongest) {
  Capture capture(7);
  capture.thread(9);
  std::int64_t now = 0;
  for (int i = 0; i < 10'000; ++i) {
    capture.push("f", now += 10);
    capture.pop(now += i % 1000 == 500 ? 5000 + i : 20);
  }
  const model::Session session = read(capture.bytes(), 64);
  EXPECT_LT(session.ranges.size(), 200u);
  std::size_t longest = 0;
  for (const model::Range& range : session.ranges)
    longest += range.end_ns - range.start_ns >= 5000 ? 1 : 0;
  EXPECT_EQ(longest, 1u);  // as many as listed / 64
  EXPECT_EQ(session.ranges.front().start_ns, kBegin + 10);
  EXPECT_EQ(session.ranges.back().end_ns, kBegin + now);
  std::int64_t farthest = 0;
  for (std::size_t i = 1; i < session.ranges.size(); ++i)
    farthest = std::max(farthest, session.ranges[i].start_ns - session.ranges[i - 1].start_ns);
  EXPECT_LT(farthest, now / 8);
}

TEST(Thinning, ListsARangeInWhichSomethingHappened) {
  Capture capture(7);
  capture.thread(9);
  for (int i = 0; i < 1000; ++i) {
    capture.push("outer", 100 * i);
    capture.push("inner", 100 * i + 10);
    capture.pop(100 * i + 20);
    capture.pop(100 * i + 90);
  }
  read::native::Thinning thinning;
  thinning.moments[7].of_process = {kBegin + 50'115};
  thinning.moments[7].of_thread[9] = {kBegin + 60'150};
  thinning.moments[7].of_thread[8] = {kBegin + 70'150};
  const model::Session session = read(capture.bytes(), 16, std::move(thinning));
  const auto listed = [&](std::int64_t at, std::string_view name) {
    return std::any_of(
        session.ranges.begin(), session.ranges.end(), [&](const model::Range& range) {
          return range.start_ns == kBegin + at && session.strings.view(range.name) == name;
        });
  };
  EXPECT_TRUE(listed(50'100, "outer") && listed(50'110, "inner"));
  EXPECT_TRUE(listed(60'100, "outer"));
  EXPECT_FALSE(listed(60'110, "inner"));
  EXPECT_FALSE(listed(70'100, "outer"));  // of another thread
}

TEST(Thinning, FindsTheWarmUp) {
  Capture capture(7);
  capture.thread(9);
  std::int64_t now = 0;
  for (int i = 0; i < 5000; ++i) {
    capture.push("step", now += 10);
    capture.pop(now += i < 3 ? 10'000 : 90 + i % 20);
  }
  const model::Report made = report(read(capture.bytes(), 64), analyze::FoldNames::kOff, "");
  ASSERT_TRUE(made.regions.front().steady);
  EXPECT_EQ(made.regions.front().steady->left_out, 3);
  EXPECT_EQ(made.regions.front().steady->occurrences, 4997);
  EXPECT_EQ(made.regions.front().steady->wall_ns.max, 109);
}

TEST(Thinning, OfAJoinedSessionIsThatOfItsParts) {
  Program a(1, 7), b(2, 8);
  a.run(1, 2000);
  b.run(1, 2000);
  const auto joined = [&](std::size_t listed) {
    std::vector<model::Session> both;
    both.push_back(read(a.capture.bytes(), listed));
    both.push_back(read(b.capture.bytes(), listed));
    return report(read::join(std::move(both)), analyze::FoldNames::kOff, "");
  };
  compare(joined(0), joined(16), false);
}

/// A missing pop: what comes behind it nests ever deeper, and is counted as if it did not.
TEST(Thinning, BoundsWhatNestsInPushesThatAreNeverPopped) {
  Capture capture(7);
  capture.thread(9);
  std::int64_t now = 0;
  for (int i = 0; i < 3000; ++i) {
    capture.push("step", now += 10);
    for (int k = 0; k < 4; ++k) {
      capture.push(k % 2 == 0 ? "layer" : "norm", now += 5);
      capture.push("gemm", now += 3);
      capture.pop(now += 40 + (i * 7 + k) % 19);
      capture.pop(now += 4);
    }
    if (i % 10 != 3)
      capture.pop(now += 20);
  }
  model::Session few = read(capture.bytes(), 16);
  EXPECT_LT(few.ranges.size(), 1500u);
  EXPECT_EQ(model::count_ranges(few), 27'000u);
  compare(report(read(capture.bytes(), 0), analyze::FoldNames::kOff, ""),
          report(std::move(few), analyze::FoldNames::kOff, ""),
          false);
}

/// What ranks have of each region, from all recordings at once and from the digest of each.
TEST(Thinning, LeavesWhatRanksHave) {
  const auto of_rank = [](std::uint32_t rank, std::size_t listed) {
    Program program(30 + rank, 7 + rank);
    program.capture.header().rank_plus_1 = rank + 1;
    program.run(1, 2000 + 900 * rank);
    return read(program.capture.bytes(), listed);
  };
  const auto from_captures = [&](std::size_t listed) {
    std::vector<model::Session> both;
    for (const std::uint32_t rank : {0u, 1u})
      both.push_back(of_rank(rank, listed));
    return report(read::join(std::move(both)), analyze::FoldNames::kOff, "");
  };
  const auto from_digests = [&](std::size_t listed) {
    analyze::tally::Digest all;
    for (const std::uint32_t rank : {0u, 1u}) {
      auto one = analyze::tally::digest_of(of_rank(rank, listed), {});
      EXPECT_TRUE(one);
      all = analyze::tally::merge(all, *one);
    }
    return analyze::tally::report_of(std::move(all), {}, {}).report;
  };
  const model::Report exact = from_captures(0);
  EXPECT_GT(of_rank(0, 16).unlisted.size(), 0u);
  for (const model::Report& found : {from_captures(16), from_digests(0), from_digests(16)}) {
    ASSERT_LE(found.regions.size(), exact.regions.size());
    for (std::size_t r = 0; r < found.regions.size() && !exact.regions[r].process; ++r) {
      const model::Region &a = exact.regions[r], &b = found.regions[r];
      SCOPED_TRACE(a.path.back() + " " + std::to_string(r));
      ASSERT_EQ(a.path, b.path);
      EXPECT_EQ(a.occurrences, b.occurrences);
      EXPECT_EQ(a.wall.per_occurrence_ns.mean, b.wall.per_occurrence_ns.mean);
      EXPECT_EQ(a.wall.per_occurrence_ns.max, b.wall.per_occurrence_ns.max);
      EXPECT_EQ(a.steady->wall_total_ns + a.steady->left_out_ns,
                b.steady->wall_total_ns + b.steady->left_out_ns);
      ASSERT_TRUE(a.ranks && b.ranks);
      EXPECT_EQ(a.ranks->mean_ns, b.ranks->mean_ns);
      EXPECT_EQ(a.ranks->imbalance, b.ranks->imbalance);
      EXPECT_GT(b.ranks->compared, 0);
      EXPECT_LE(b.ranks->compared, a.ranks->compared);
      const auto same = [](double x, double y) {
        return x == y || (std::isnan(x) && std::isnan(y));
      };
      EXPECT_TRUE(std::ranges::equal(a.ranks->by_rank, b.ranks->by_rank, same));
      EXPECT_TRUE(std::ranges::equal(a.ranks->own_by_rank, b.ranks->own_by_rank, same));
    }
  }
}

}  // namespace
}  // namespace rangescope
