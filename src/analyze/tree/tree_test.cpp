#include "analyze/tree/tree.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace tree_test {

using model::RangeKind;
using testing::SessionBuilder;

/// "path: occurrences wall exclusive", one line a region, two blanks a level.
std::string text_of(const model::Report& report) {
  std::string text;
  for (const model::Region& region : report.regions) {
    text += std::string(region.depth * 2, ' ') + (region.kind == RangeKind::kStartEnd ? "~" : "") +
            (region.domain.empty() ? "" : region.domain + "@") + region.path.back() + ": " +
            std::to_string(region.occurrences);
    if (region.unclosed)
      text += "+" + std::to_string(region.unclosed);
    text += " " + std::to_string(static_cast<std::int64_t>(region.wall.inclusive_ns)) + " " +
            std::to_string(static_cast<std::int64_t>(region.wall.exclusive_ns));
    if (region.process)
      text += " p" + std::to_string(*region.process);
    if (region.thread)
      text += " t" + std::to_string(*region.thread);
    text += "\n";
  }
  return text;
}

std::string tree_text(const model::Session& session, const Options& options = {}) {
  const auto report = analyze(session, options);
  return report ? text_of(*report) : base::to_string(report.error());
}

TEST(Tree, PathsOfOneNameUnderDifferentParentsAreDifferentRegions) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "prefill", 0, 100);
  b.range(t, "layer0", 10, 40);
  b.range(t, "decode", 100, 200);
  b.range(t, "layer0", 110, 120);
  b.range(t, "layer0", 130, 150);
  EXPECT_EQ(tree_text(b.session),
            "prefill: 1 100 70\n"
            "  layer0: 1 30 30\n"
            "decode: 1 100 70\n"
            "  layer0: 2 30 30\n");
}

TEST(Tree, DomainsNestSeparatelyUnlessAskedOtherwise) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "decode_all", 0, 100, "LLM");
  b.range(t, "decode", 10, 50);
  EXPECT_EQ(tree_text(b.session), "decode: 1 40 40\nLLM@decode_all: 1 100 100\n");
  Options nested;
  nested.domains = Domains::kNested;
  EXPECT_EQ(tree_text(b.session, nested), "LLM@decode_all: 1 100 60\n  decode: 1 40 40\n");
}

TEST(Tree, RecordingOrderDecidesWhereTimesAreEqual) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "outer", 5, 9);
  b.range(t, "inner", 5, 9);
  b.range(t, "zero", 9, 9);
  EXPECT_EQ(tree_text(b.session), "outer: 1 4 0\n  inner: 1 4 4\n    zero: 1 0 0\n");
}

TEST(Tree, RowsThatAreOutOfOrderAreSorted) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "inner", 20, 30);
  b.range(t, "outer", 0, 100);
  b.range(t, "later", 40, 50);
  EXPECT_EQ(tree_text(b.session), "outer: 1 100 80\n  inner: 1 10 10\n  later: 1 10 10\n");
}

TEST(Tree, AnUnclosedRangeHoldsWhatFollowsAndIsNotInTheStatistics) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "serve", 10, model::kOpen);
  b.range(t, "step", 20, 30);
  b.range(t, "step", 40, 60);
  const auto report = analyze(b.session);
  EXPECT_EQ(text_of(*report), "serve: 0+1 0 0\n  step: 2 30 30\n");
  ASSERT_EQ(report->losses.size(), 1u);
  EXPECT_EQ(report->losses[0].kind.id(), "unclosed_range");
  EXPECT_EQ(report->losses[0].count, 1u);
  for (const char* tag : {"wall_ns.inclusive", "wall_ns.min", "wall_ns.share"})
    EXPECT_FALSE(model::value_of(report->regions[0], tag)) << tag << ": absent, not 0";
}

TEST(Tree, AForgottenPopIsOneRegionHoweverOften) {
  for (const bool numbered : {false, true}) {
    SessionBuilder b;
    const auto t = b.thread(b.process(1), 1);
    b.range(t, "main", 0, model::kOpen);
    for (int i = 0; i < 20000; ++i) {
      b.range(t, numbered ? "step " + std::to_string(i) : "step", 10 * i + 1, model::kOpen);
      b.range(t, "work", 10 * i + 2, 10 * i + 6);
    }
    const auto report = analyze(b.session);
    const std::string first = numbered ? "step 0" : "step";
    EXPECT_EQ(text_of(*report),
              "main: 0+1 0 0\n  " + first + ": 0+20000 0 0\n    work: 20000 80000 80000\n");
    ASSERT_EQ(report->losses.size(), 2u);
    EXPECT_EQ(report->losses[1].kind.id(), "unbalanced_ranges");
    EXPECT_EQ(report->losses[1].count, 20000u);
    EXPECT_TRUE(
        report->losses[1].detail.starts_with("20,000 ranges '" + first + "' of one thread pushed"))
        << report->losses[1].detail;
  }
}

TEST(Tree, ProcessesThatLeaveAFewRangesOpenAreAsRecorded) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  for (int i = 0; i < 3; ++i)
    b.range(t, "f", i, model::kOpen);
  EXPECT_EQ(tree_text(b.session), "f: 0+1 0 0\n  f: 0+1 0 0\n    f: 0+1 0 0\n");
}

TEST(Tree, ARangeIsFoundByItsNameAsPrinted) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "a/b", 0, 50);
  b.range(t, "inner", 10, 20);
  b.range(t, "other", 60, 80);
  const auto shown = [&](const std::string& include, const std::vector<std::string>& exclude = {}) {
    Options options;
    options.ranges = *model::RangeSelection::parse({include}, exclude);
    return tree_text(b.session, options);
  };
  EXPECT_EQ(shown("a/b"), "a/b: 1 50 40\n  inner: 1 10 10\n");
  EXPECT_EQ(shown("a/b", {"inner"}), "a/b: 1 50 40\n");
  EXPECT_EQ(shown("a/b > inner"), "inner: 1 10 10\n");
}

TEST(Tree, AChainThatIsOneRowIsFoundAsPrinted) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "main", 0, 100);
  b.range(t, "run", 10, 90);
  b.range(t, "layer_0", 20, 40);
  b.range(t, "layer_1", 50, 80);
  const auto shown = [&](const std::vector<std::string>& include,
                         const std::vector<std::string>& exclude) {
    Options options;
    options.ranges = *model::RangeSelection::parse(include, exclude);
    return tree_text(b.session, options);
  };
  EXPECT_EQ(shown({"run > layer_# x2"}, {}), "layer_0: 1 20 20\nlayer_1: 1 30 30\n");
  EXPECT_EQ(shown({}, {"run > layer_# x2"}), "main: 1 100 20\n  run: 1 80 30\n");
  EXPECT_EQ(shown({"layer_# x2"}, {"layer_1"}), "layer_0: 1 20 20\n");
}

TEST(Tree, DeepRecursionEndsAtADepthAndCountsNoTimeTwice) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  for (int i = 0; i < 1000; ++i)
    b.range(t, "f", i, 2000 - i);
  const auto report = analyze(b.session);
  ASSERT_EQ(report->regions.size(), kDeepest);
  EXPECT_EQ(report->regions.front().wall.inclusive_ns, 2000);
  EXPECT_EQ(report->regions.back().occurrences, 1000 - static_cast<std::int64_t>(kDeepest) + 1);
  EXPECT_EQ(report->regions.back().wall.inclusive_ns,
            2000 - 2 * (static_cast<double>(kDeepest) - 1));
  double exclusive = 0;
  for (const auto& region : report->regions)
    exclusive += region.wall.exclusive_ns;
  EXPECT_EQ(exclusive, 2000);
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_EQ(report->notes[0], "872 ranges nested deeper than 128 are counted at that depth");
}

TEST(Tree, ARangeThatCrossesAnotherIsNotInsideIt) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "outer", 0, 100);
  b.range(t, "A", 5, 20);
  b.range(t, "B", 15, 30);  // crosses A
  b.range(t, "C", 16, 18);  // in both: the later one holds it
  const auto report = analyze(b.session);
  EXPECT_EQ(text_of(*report), "outer: 1 100 75\n  A: 1 15 15\n  B: 1 15 13\n    C: 1 2 2\n");
  ASSERT_EQ(report->losses.size(), 1u);
  EXPECT_EQ(report->losses[0].kind.id(), "crossing_range");
}

TEST(Tree, RangesThatTouchAreSiblings) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "A", 0, 10);
  b.range(t, "B", 10, 20);
  EXPECT_EQ(tree_text(b.session), "A: 1 10 10\nB: 1 10 10\n");
  EXPECT_TRUE(analyze(b.session)->losses.empty());
}

TEST(Tree, StartEndRangesOverlayAndDoNotNest) {
  SessionBuilder b;
  const auto p = b.process(1);
  const auto t = b.thread(p, 1), u = b.thread(p, 2);
  b.range(t, "request", 0, 50, "", RangeKind::kStartEnd);
  b.session.ranges.back().end_thread = u;
  b.range(t, "request", 10, 60, "", RangeKind::kStartEnd);
  b.range(t, "decode", 20, 30);
  EXPECT_EQ(tree_text(b.session), "decode: 1 10 10\n~request: 2 100 100\n");
}

TEST(Tree, ProcessesAndThreadsHaveRegionsOfTheirOwn) {
  SessionBuilder b;
  const auto p = b.process(1), q = b.process(2);
  const auto t = b.thread(p, 11), u = b.thread(p, 12), v = b.thread(q, 21);
  b.range(t, "step", 0, 10);
  b.range(u, "step", 5, 25);
  b.range(v, "step", 0, 40);
  b.range(v, "io", 10, 20);
  EXPECT_EQ(tree_text(b.session),
            "step: 3 70 60\n  io: 1 10 10\n"
            "step: 2 30 30 p0\n"
            "step: 1 40 30 p1\n  io: 1 10 10 p1\n");
  Options options;
  options.aggregate = false;
  options.per_process = false;
  options.per_thread = true;
  EXPECT_EQ(
      tree_text(b.session, options),
      "step: 2 30 30 p0\nstep: 1 40 30 p1\n  io: 1 10 10 p1\n"
      "step: 1 10 10 p0 t11\nstep: 1 20 20 p0 t12\nstep: 1 40 30 p1 t21\n  io: 1 10 10 p1 t21\n");
  const auto report = analyze(b.session);
  EXPECT_EQ(report->regions[0].threads, 3);
  EXPECT_EQ(report->regions[0].processes, 2);
  EXPECT_EQ(report->processes[1].ranges, 2);
}

TEST(Tree, DamagedRangesAreLeftOutAndCounted) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "good", 0, 10);
  b.range(t, "backward", 10, 5);
  b.range(77, "foreign", 0, 5);
  b.session.ranges.push_back({std::numeric_limits<std::int64_t>::min(),
                              std::numeric_limits<std::int64_t>::max() - 1,
                              0,
                              t});
  const auto report = analyze(b.session);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->losses.size(), 2u);
  EXPECT_EQ(report->losses[0].kind.id(), "backward_range");
  EXPECT_EQ(report->losses[1].kind.id(), "foreign_range");
}

TEST(Statistics, AreThoseOfTheOccurrences) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  for (int i = 1; i <= 10; ++i)
    b.range(t, "step", i * 100, i * 100 + i);
  const auto report = analyze(b.session);
  const model::Spread& s = report->regions[0].wall.per_occurrence_ns;
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.median, 5.5);
  EXPECT_DOUBLE_EQ(s.p95, 9.55);  // numpy.percentile(range(1, 11), 95)
  EXPECT_DOUBLE_EQ(s.max, 10);
  EXPECT_DOUBLE_EQ(s.mean, 5.5);
  EXPECT_DOUBLE_EQ(s.stddev, 3.0276503540974917);  // numpy.std(range(1, 11), ddof=1)
  EXPECT_DOUBLE_EQ(report->regions[0].wall.share, 55.0 / 1010);
  EXPECT_EQ(report->regions[0].samples.size(), 10u);
  EXPECT_DOUBLE_EQ(report->regions[0].samples[2].at_ns, 300);
  EXPECT_DOUBLE_EQ(report->regions[0].samples[2].wall_ns, 3);
}

TEST(Statistics, HistogramsWhereAskedFor) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  std::int64_t now = 0;
  for (const std::int64_t length : {1'000, 1'001, 10'000, 20'000, 200'000'000, 1'000}) {
    b.range(t, "step", now, now + length);
    now += 1'000'000'000;
  }
  EXPECT_TRUE(analyze(b.session)->regions[0].wall.histogram.empty());
  Options options;
  options.histograms = true;
  const auto report = analyze(b.session, options);
  const auto& bins = report->regions[0].wall.histogram;
  ASSERT_EQ(bins.size(), model::kLengthBounds.size() + 1);
  EXPECT_EQ((std::vector<std::uint64_t>{bins[0], bins[1], bins[2]}),
            (std::vector<std::uint64_t>{2, 2, 1}))
      << "up to 1 us, 10 us, 25 us; bounds are inside";
  EXPECT_EQ(bins[14], 1u) << "up to 250 ms";
  EXPECT_TRUE(std::is_sorted(model::kLengthBounds.begin(), model::kLengthBounds.end()));
}

TEST(Filter, PicksRegionsAndKeepsTheirNumbers) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "decode", 0, 100);
  b.range(t, "layer0", 10, 20);
  b.range(t, "attention", 12, 15);
  b.range(t, "prefill", 200, 300);
  b.range(t, "request", 0, 300, "", RangeKind::kStartEnd);
  const auto with = [&](const std::vector<std::string>& include,
                        const std::vector<std::string>& exclude) {
    Options options;
    options.ranges = *model::RangeSelection::parse(include, exclude);
    return tree_text(b.session, options);
  };
  EXPECT_EQ(with({"decode/"}, {}), "decode: 1 100 90\n  layer0: 1 10 7\n    attention: 1 3 3\n");
  EXPECT_EQ(with({"decode]"}, {}), "decode: 1 100 90\n");
  EXPECT_EQ(with({"layer0/"}, {}),
            "layer0: 1 10 7\n  attention: 1 3 3\n");  // the whole path stands in `path`
  EXPECT_EQ(with({"decode/"}, {"layer0/"}), "decode: 1 100 90\n");
  EXPECT_EQ(with({}, {"decode/"}), "prefill: 1 100 100\n~request: 1 300 300\n");
  EXPECT_EQ(with({"request"}, {}), "~request: 1 300 300\n");
  EXPECT_EQ(with({"regex:^(prefill|layer.)$]"}, {}), "layer0: 1 10 7\nprefill: 1 100 100\n");
}

TEST(Filter, ThatMatchesNothingNamesTheNearestAndInventsNoRow) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "decode", 0, 100);
  b.range(t, "prefill", 200, 300);
  Options options;
  options.ranges = *model::RangeSelection::parse({"decod/"});
  auto report = analyze(b.session, options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, base::Code::kNothingCaptured);
  EXPECT_EQ(report.error().what, "no range matches 'decod/'");
  EXPECT_EQ(report.error().hint, "Use one of the ranges seen: 'decode/', 'prefill/'.");
  options.ranges =
      *model::RangeSelection::parse({"decode,prefill"});  // ncu's grammar: start/end ranges
  EXPECT_EQ(analyze(b.session, options).error().hint,
            "Use one of the ranges seen: 'decode/', 'prefill/'. For several ranges repeat the "
            "option: --include decode "
            "--include prefill.");
  options.ranges = *model::RangeSelection::parse({"decode/"}, {"decode/"});
  EXPECT_EQ(analyze(b.session, options).error().code, base::Code::kNothingCaptured);
  options.ranges = *model::RangeSelection::parse({"decode", "nosuch"});
  report = analyze(b.session, options);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("'nosuch' matched no range"), std::string::npos);
}

// --- against brute force
// -------------------------------------------------------------------------------------------

struct Oracle {
  std::int64_t occurrences = 0, unclosed = 0;
  std::vector<std::int64_t> lengths;
  std::int64_t exclusive = 0;
};

/// O(n^2), straight from docs/design/region-tree.md.
std::map<std::string, Oracle> brute_force(const model::Session& s, bool nested) {
  const std::size_t n = s.ranges.size();
  const auto precedes = [&](std::size_t a, std::size_t b) {
    const auto &x = s.ranges[a], &y = s.ranges[b];
    return std::tuple(x.start_ns, -x.end_ns, a) < std::tuple(y.start_ns, -y.end_ns, b);
  };
  std::vector<std::size_t> parent(n, n);
  for (std::size_t r = 0; r < n; ++r) {
    const auto& range = s.ranges[r];
    if (range.kind == RangeKind::kStartEnd)
      continue;
    for (std::size_t p = 0; p < n; ++p) {
      const auto& other = s.ranges[p];
      if (other.kind == RangeKind::kStartEnd || other.thread != range.thread || !precedes(p, r))
        continue;
      if (!nested && other.domain != range.domain)
        continue;
      if (other.start_ns > range.start_ns || other.end_ns < range.end_ns)
        continue;
      if (parent[r] == n || precedes(parent[r], p))
        parent[r] = p;
    }
  }
  const auto path = [&](std::size_t r) {
    std::string text;
    for (std::size_t p = r; p != n; p = parent[p]) {
      text = std::to_string(s.ranges[p].domain) + "@" +
             std::string(s.strings.view(s.ranges[p].name)) + ">" + text;
    }
    return (s.ranges[r].kind == RangeKind::kStartEnd ? "~" : "") + text;
  };
  std::map<std::string, Oracle> regions;
  for (std::size_t r = 0; r < n; ++r) {
    const auto& range = s.ranges[r];
    Oracle& region = regions[path(r)];
    if (range.end_ns == kOpen) {
      ++region.unclosed;
      continue;
    }
    ++region.occurrences;
    region.lengths.push_back(range.end_ns - range.start_ns);
    for (std::int64_t t = range.start_ns; t < range.end_ns;
         ++t) {  // times are small in these traces
      bool covered = false;
      for (std::size_t c = 0; c < n && !covered; ++c) {
        covered = parent[c] == r && s.ranges[c].start_ns <= t && t < s.ranges[c].end_ns;
      }
      if (!covered)
        ++region.exclusive;
    }
  }
  return regions;
}

double quantile_of_tree(std::vector<std::int64_t> v, double p) {
  std::sort(v.begin(), v.end());
  const double h = static_cast<double>(v.size() - 1) * p;
  const auto low = static_cast<std::size_t>(h);
  const std::size_t high = std::min(low + 1, v.size() - 1);
  return static_cast<double>(v[low]) +
         (h - static_cast<double>(low)) * static_cast<double>(v[high] - v[low]);
}

TEST(TreeProperty, AgreesWithBruteForceOnRandomTraces) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int trial = 0; trial < 300; ++trial) {
    SessionBuilder b;
    std::vector<std::uint32_t> threads;
    for (int p = 0; p < 2; ++p) {
      const auto process = b.process(static_cast<std::uint32_t>(p + 1));
      for (int t = 0; t < 2; ++t)
        threads.push_back(b.thread(process, static_cast<std::uint32_t>(t)));
    }
    const int ranges = pick(60), horizon = 8 + pick(60);
    for (int i = 0; i < ranges; ++i) {
      const int start = pick(horizon), length = pick(3) == 0 ? 0 : pick(horizon);
      const bool open = pick(12) == 0;
      b.range(threads[static_cast<std::size_t>(pick(4))],
              std::string(1, static_cast<char>('a' + pick(4))),
              start,
              open ? model::kOpen : start + length,
              pick(4) == 0 ? "D" : "",
              pick(6) == 0 ? RangeKind::kStartEnd : RangeKind::kPushPop);
    }
    for (const bool nested : {false, true}) {
      Options options;
      options.per_process = false;
      options.domains = nested ? Domains::kNested : Domains::kSeparate;
      const auto report = analyze(b.session, options);
      ASSERT_TRUE(report);
      const auto expected = brute_force(b.session, nested);
      ASSERT_EQ(report->regions.size(), expected.size());
      std::vector<std::string> keys(report->regions.size());
      for (const model::Region& region : report->regions) {
        std::uint32_t domain = 0;
        for (std::uint32_t d = 0; d < b.session.domains.size(); ++d) {
          if (b.session.strings.view(b.session.domains[d].name) == region.domain)
            domain = d;
        }
        std::string& key = keys[region.id];
        key = (region.parent == kNone ? "" : keys[region.parent]) + std::to_string(domain) + "@" +
              region.path.back() + ">";
        if (region.kind == RangeKind::kStartEnd)
          key = "~" + key;
        const auto found = expected.find(key);
        ASSERT_NE(found, expected.end()) << key;
        const Oracle& oracle = found->second;
        EXPECT_EQ(region.occurrences, oracle.occurrences) << key;
        EXPECT_EQ(region.unclosed, oracle.unclosed) << key;
        EXPECT_EQ(region.wall.exclusive_ns, static_cast<double>(oracle.exclusive))
            << key << " trial " << trial;
        if (oracle.lengths.empty())
          continue;
        EXPECT_DOUBLE_EQ(region.wall.per_occurrence_ns.median,
                         quantile_of_tree(oracle.lengths, 0.5));
        EXPECT_DOUBLE_EQ(region.wall.per_occurrence_ns.p95, quantile_of_tree(oracle.lengths, 0.95));
      }
    }
  }
}

}  // namespace tree_test
}  // namespace rangescope::analyze
