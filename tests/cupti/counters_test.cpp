// Counters end to end without a GPU: the injected library drives the stand-in range profiler
// (profiler.cpp says what it counts), and what it writes is read back.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "run.hpp"

namespace rangescope {
namespace {

constexpr const char* kMetrics[] = {"sm__inst_executed.sum",
                                    "dram__bytes.sum",
                                    "gpu__time_duration.sum",
                                    "standin__occurrence.sum"};

// The library with a plan of these lines; the run's folder, for what it leaves.
class Counted {
 public:
  explicit Counted(const std::string& plan) {
    std::string folder = (fs::temp_directory_path() / "rangescope-counted-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    write(plan);
  }
  ~Counted() { fs::remove_all(folder_); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void write(const std::string& plan) {
    std::ofstream out(folder_ / "plan");
    out << "rangescope-counters 1\n";
    for (const char* metric : kMetrics)
      out << "metric " << metric << "\n";
    out << plan;
  }
  [[nodiscard]] fs::path folder() const { return folder_; }
  [[nodiscard]] Recorded run(const std::string& scene,
                             int times,
                             Environment environment = {}) const {
    environment["RANGESCOPE_COUNTERS"] = (folder_ / "plan").string();
    Recorded result;
    run_into(result, scene, environment, std::to_string(times));
    return result;
  }

 private:
  fs::path folder_;
};

std::string path_of(const model::Session& s, const model::Measurement& m) {
  std::string path;
  for (const model::OpenRange& range : m.ranges)
    path += "/" + std::string(s.strings.view(range.name));
  return path;
}

double value(const model::Session& s, const model::Measurement& m, const std::string& metric) {
  for (const model::MetricValue& v : m.values) {
    if (s.metrics[v.metric].name == metric)
      return v.value;
  }
  return -1;
}

void expect_whole(const Recorded& got,
                  const std::string& path,
                  std::size_t rounds,
                  double kernels,
                  double blocks) {
  std::size_t found = 0;
  for (const model::Measurement& m : got.session.measurements) {
    if (path_of(got.session, m) != path || m.scope != model::MeasuredScope::kRange)
      continue;
    ++found;
    EXPECT_EQ(m.values.size(), std::size(kMetrics)) << "never half a set";
    EXPECT_EQ(value(got.session, m, "sm__inst_executed.sum"), 100 * kernels);
    EXPECT_EQ(value(got.session, m, "dram__bytes.sum"), 1000 * blocks);
  }
  EXPECT_EQ(found, rounds) << path;
}

TEST(Counters, EveryRoundOfARange) {
  const Counted counted(
      "per range\nrounds 3\nskip-first 0\ntrace-first 0\ninclude p x - - ndecode\n");
  const Recorded got = counted.run("decode", 40);
  EXPECT_EQ(got.status, 0);
  expect_whole(got, "/decode", 3, 2, 17);
  std::set<double> occurrences;
  for (const auto& m : got.session.measurements)
    occurrences.insert(value(got.session, m, "standin__occurrence.sum"));
  EXPECT_EQ(occurrences.size(), 3u) << "each round from occurrences of its own";
  EXPECT_EQ(got.loss("counters_incomplete"), nullptr);
  EXPECT_EQ(got.loss("gpu_partial"), nullptr) << got.loss("gpu_partial")->detail;
}

// Three passes of the context's and one of the device's: each value from a pass of its own
// configuration.
constexpr const char* kMore =
    "configuration 2\nmetric pcie__read_bytes.sum pcie\nmetric pcie__write_bytes.sum pcie\nper "
    "range\n"
    "skip-first 0\ntrace-first 0\ninclude p x - - ndecode\n";

TEST(Counters, SeveralConfigurationsOnOccurrencesOfTheirOwn) {
  const Counted counted(std::string(kMore) + "rounds 3\n");
  const Recorded got = counted.run("decode", 60);
  EXPECT_EQ(got.status, 0);
  ASSERT_EQ(got.session.measurements.size(), 3u);
  for (const model::Measurement& m : got.session.measurements) {
    EXPECT_EQ(m.values.size(), std::size(kMetrics) + 2) << "never half a set";
    EXPECT_EQ(m.passes, 6u) << "four and two";
    EXPECT_EQ(value(got.session, m, "sm__inst_executed.sum"), 200);
    EXPECT_EQ(value(got.session, m, "dram__bytes.sum"), 17000);
    EXPECT_EQ(value(got.session, m, "pcie__read_bytes.sum"), 14);
    EXPECT_GT(value(got.session, m, "pcie__write_bytes.sum"),
              value(got.session, m, "standin__occurrence.sum"));
  }
  EXPECT_EQ(got.loss("gpu_partial"), nullptr) << got.loss("gpu_partial")->detail;
  const Counted kernels("per kernel\n" + std::string(kMore).replace(
                                             std::string(kMore).find("per range"), 9, "rounds 1"));
  const Recorded each = kernels.run("decode", 60);
  ASSERT_EQ(each.session.measurements.size(), 2u);
  for (const model::Measurement& m : each.session.measurements) {
    EXPECT_EQ(value(each.session, m, "pcie__read_bytes.sum"), 7);
    EXPECT_EQ(value(each.session, m, "sm__inst_executed.sum"), 100);
  }
}

TEST(Counters, AConfigurationThatTheDriverCannotCountIsNamedAndTheOthersGoOn) {
  for (const std::string per : {"range", "kernel"}) {
    std::string plan = std::string(kMore) + "rounds 2\n";
    plan.replace(plan.find("per range"), 9, "per " + per);
    const Counted counted(plan);
    const Recorded got = counted.run("decode", 80, {{"STANDIN_WITHHELD", "pcie__write_bytes.sum"}});
    EXPECT_EQ(got.status, 0);
    ASSERT_NE(got.loss("gpu_partial"), nullptr) << per;
    const std::string told = got.loss("gpu_partial")->detail;
    EXPECT_NE(
        told.find("cannot count pcie__read_bytes.sum, pcie__write_bytes.sum (of pcie) on device 0"),
        std::string::npos)
        << told;
    EXPECT_EQ(got.session.measurements.size(), per == "range" ? 2u : 4u);
    for (const model::Measurement& m : got.session.measurements) {
      EXPECT_EQ(m.values.size(), std::size(kMetrics));
      EXPECT_EQ(m.passes, 4u);
    }
    EXPECT_EQ(got.loss("counters_incomplete"), nullptr);
  }
}

TEST(Counters, LinksWithoutAValueAreNamedAndTheOthersAreThere) {
  std::string plan = std::string(kMore) + "rounds 2\n";
  plan.replace(plan.find("per range"), 0, "metric nvlrx__bytes.sum nvlink\n");
  const Recorded got = Counted(plan).run("decode", 80);
  ASSERT_EQ(got.session.measurements.size(), 2u);
  for (const model::Measurement& m : got.session.measurements) {
    EXPECT_EQ(value(got.session, m, "pcie__read_bytes.sum"), 14);
    EXPECT_EQ(m.values.size(), std::size(kMetrics) + 2);
  }
  ASSERT_NE(got.loss("gpu_partial"), nullptr);
  EXPECT_EQ(got.loss("gpu_partial")->count, 1u) << "once";
  EXPECT_NE(got.loss("gpu_partial")
                ->detail.find("gives no value of nvlrx__bytes.sum (of nvlink) on device 0 (links"),
            std::string::npos)
      << got.loss("gpu_partial")->detail;
}

TEST(Counters, SeveralConfigurationsOverSeveralRuns) {
  Counted counted("");
  const std::string resume = (counted.folder() / "progress").string();
  std::string encoded;
  for (const char c : resume)
    encoded += c == '/' ? std::string("%2F") : std::string(1, c);
  const std::string plan = std::string(kMore) + "rounds 1\nresume " + encoded + "\n";
  for (const char* withheld : {"", "pcie__read_bytes.sum"}) {
    fs::remove(resume);
    Recorded got;
    int runs = 0;
    for (int lacking = -1; lacking != 0 && runs < 20; ++runs) {
      counted.write(plan + (runs == 0 ? "" : "wait 1\n"));
      got = counted.run("decode", 1, {{"STANDIN_WITHHELD", withheld}});
      std::ifstream in(resume);
      std::string word;
      in >> word >> lacking >> lacking;
    }
    ASSERT_EQ(got.session.measurements.size(), 1u) << withheld << " " << runs;
    EXPECT_EQ(value(got.session, got.session.measurements[0], "pcie__read_bytes.sum"),
              withheld[0] == 0 ? 14 : -1);
    EXPECT_EQ(value(got.session, got.session.measurements[0], "dram__bytes.sum"), 17000);
  }
}

TEST(Counters, OnlyEveryNthOccurrence) {
  const Counted counted(
      "per range\nrounds 3\nskip-first 0\nevery 7\ntrace-first 0\ninclude p x - - ndecode\n");
  const Recorded got = counted.run("decode", 120);
  expect_whole(got, "/decode", 3, 2, 17);
  for (const auto& m : got.session.measurements)
    EXPECT_EQ(m.occurrence % 7, 0u) << m.occurrence;
  const Recorded few = counted.run("decode", 15);
  const model::Loss* loss = few.loss("counters_incomplete");
  ASSERT_NE(loss, nullptr);
  EXPECT_NE(loss->detail.find("12 left out by --every"), std::string::npos) << loss->detail;
}

TEST(Counters, TheTimelineComesFirstAndGoesOnAfterwards) {
  const Counted counted(
      "per range\nrounds 1\nskip-first 0\ntrace-first 3\ninclude p x - - ndecode\n");
  const Recorded got = counted.run("decode", 40);
  expect_whole(got, "/decode", 1, 2, 17);
  EXPECT_GE(got.session.kernels.size(), 6u);
  EXPECT_LT(got.session.kernels.size(), 80u);
  ASSERT_EQ(got.session.gpu_pauses.size(), 1u);
  EXPECT_NE(got.session.gpu_pauses[0].end_ns, model::kOpen) << "it goes on after the last round";
  EXPECT_GT(got.session.kernels.back().start_ns, got.session.gpu_pauses[0].end_ns);
  EXPECT_TRUE(got.session.synchronizations.empty())
      << "the program never waits; counters do, in the pause";
}

TEST(Counters, ARangeThatStopsComingDoesNotKeepTheTimelinePaused) {
  const Counted counted(
      "per range\nrounds 9\nskip-first 0\ntrace-first 3\npatience 100\ninclude p x - - ndecode\n");
  const Recorded got = counted.run("stops_coming", 90, {{"STANDIN_PASSES", "4"}});
  ASSERT_FALSE(got.session.gpu_pauses.empty());
  EXPECT_NE(got.session.gpu_pauses.back().end_ns, model::kOpen);
  EXPECT_GT(got.kernels("gemm"), 20u) << "kernels of the range that still comes are recorded again";
  const model::Loss* gave_up = got.loss("counters_gave_up");
  ASSERT_NE(gave_up, nullptr);
  EXPECT_NE(gave_up->detail.find("'decode' stopped occurring after 1 complete round:"),
            std::string::npos)
      << gave_up->detail;
}

TEST(Counters, TooFewOccurrencesGiveNoHalfSetAndSayWhatIsMissing) {
  const Counted counted(
      "per range\nrounds 1\nskip-first 0\ntrace-first 0\ninclude p x - - ndecode\n");
  const Recorded got = counted.run("decode", 3);
  EXPECT_TRUE(got.session.measurements.empty());
  const model::Loss* loss = got.loss("counters_incomplete");
  ASSERT_NE(loss, nullptr);
  EXPECT_NE(loss->detail.find("4 passes are needed"), std::string::npos) << loss->detail;
  EXPECT_NE(loss->detail.find("relaunch"), std::string::npos) << loss->detail;
}

TEST(Counters, APassWithOtherKernelsIsDiscarded) {
  const Counted counted(
      "per range\nrounds 1\nskip-first 0\ntrace-first 0\ninclude p x - - ndecode\n");
  const Recorded got = counted.run("changing", 40);
  expect_whole(got, "/decode", 1, 2, 17);
  ASSERT_NE(got.loss("counters_discarded"), nullptr);
}

TEST(Counters, NestedRangesTakeTurns) {
  const Counted counted(
      "per range\nrounds 1\nskip-first 0\ntrace-first 0\ninclude p x - - nstep\ninclude p x - - "
      "ndecode\n");
  const Recorded got = counted.run("nested", 60);
  expect_whole(got, "/step", 1, 3, 20);
  expect_whole(got, "/step/decode", 1, 2, 17);
  EXPECT_EQ(got.loss("counters_discarded"), nullptr)
      << "what one launches is not taken for the other's";
}

TEST(Counters, ARangeThatComesLateIsMeasuredToo) {
  const Counted counted(
      "per range\nrounds 1\nskip-first 0\ntrace-first 3\ninclude p x - - ndecode\ninclude p x - - "
      "neval\n");
  const Recorded got = counted.run("late", 45);
  expect_whole(got, "/decode", 1, 2, 17);
  expect_whole(got, "/eval", 1, 1, 7);
}

TEST(Counters, EachKernelOfARange) {
  const Counted counted(
      "per kernel\nrounds 1\nskip-first 0\ntrace-first 0\ninclude p x - - ndecode\n");
  const Recorded got = counted.run("decode", 30);
  const model::Session& s = got.session;
  ASSERT_EQ(s.measurements.size(), 2u);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const model::Measurement& m = s.measurements[i];
    EXPECT_EQ(m.scope, model::MeasuredScope::kKernel);
    EXPECT_EQ(m.ordinal, i);
    EXPECT_EQ(s.strings.view(s.kernel_names[m.kernel_name].short_name), i == 0 ? "gemm" : "reduce");
    EXPECT_EQ(s.kernel_shapes[m.shape].grid[0], i == 0 ? 16u : 1u);
    EXPECT_EQ(value(s, m, "sm__inst_executed.sum"), 100);
    EXPECT_EQ(value(s, m, "dram__bytes.sum"), i == 0 ? 16000 : 1000);
  }
}

TEST(Counters, WithCachesFlushedBeforeEachKernelTheProgramsOwnAreTold) {
  const Counted counted(
      "per kernel\nrounds 1\nskip-first 0\ntrace-first 0\ncache flush\ninclude p x - - ndecode\n");
  const Recorded got = counted.run("decode", 30);
  const model::Session& s = got.session;
  EXPECT_EQ(got.loss("gpu_partial"), nullptr) << got.loss("gpu_partial")->detail;
  ASSERT_EQ(s.measurements.size(), 2u);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const model::Measurement& m = s.measurements[i];
    EXPECT_EQ(s.strings.view(s.kernel_names[m.kernel_name].short_name), i == 0 ? "gemm" : "reduce");
    EXPECT_EQ(value(s, m, "dram__bytes.sum"), i == 0 ? 16000 : 1000);
  }
  const Counted whole(
      "per range\nrounds 1\nskip-first 0\ntrace-first 0\ncache flush\ninclude p x - - ndecode\n");
  expect_whole(whole.run("decode", 30), "/decode", 1, 2, 17);
}

TEST(Counters, KernelsOfTwoRangesOneOfWhichIsSeldom) {
  const Counted counted(
      "per kernel\nrounds 1\nskip-first 0\ntrace-first 0\ninclude p x - - nstep\ninclude p x - - "
      "ndecode\n");
  const Recorded got = counted.run("nested", 60);
  EXPECT_EQ(got.loss("gpu_partial"), nullptr) << got.loss("gpu_partial")->detail;
  std::map<std::string, int> kernels;
  for (const auto& m : got.session.measurements)
    ++kernels[path_of(got.session, m)];
  EXPECT_EQ(kernels, (std::map<std::string, int>{{"/step", 3}, {"/step/decode", 2}}));
}

TEST(Counters, KernelsOfAGraphAreLeftAloneAndTheRangeIsMeasured) {
  const Counted kernels(
      "per kernel\nrounds 1\nskip-first 0\ntrace-first 3\ninclude p x - - nreplay\n");
  const Recorded alone = kernels.run("graph", 30);
  EXPECT_TRUE(alone.session.measurements.empty());
  ASSERT_NE(alone.loss("counters_graph"), nullptr);
  EXPECT_EQ(alone.loss("gpu_partial"), nullptr) << "CUPTI is not asked for what it cannot do";
  const Counted both("per both\nrounds 1\nskip-first 0\ntrace-first 3\ninclude p x - - nreplay\n");
  const Recorded got = both.run("graph", 60);
  expect_whole(got, "/replay", 1, 2, 32);
  ASSERT_NE(got.loss("counters_graph"), nullptr);
  ASSERT_FALSE(got.session.gpu_pauses.empty());
  EXPECT_NE(got.session.gpu_pauses.back().end_ns, model::kOpen);
}

TEST(Counters, RunAgainForARangeThatComesOnce) {
  Counted counted("");
  const std::string resume = (counted.folder() / "progress").string();
  std::string encoded;
  for (const char c : resume)
    encoded += c == '/' ? std::string("%2F") : std::string(1, c);
  const std::string plan =
      "per range\nrounds 1\nskip-first 0\ninclude p x - - ndecode\nresume " + encoded + "\n";
  std::vector<std::pair<int, int>> progress;
  Recorded got;
  for (int run = 1; run < 9; ++run) {
    counted.write(plan + (run == 1 ? "trace-first 3\n" : "trace-first 0\nwait 1\n"));
    got = counted.run("decode", 1);
    int lacking = -1, done = -1;
    std::ifstream in(resume);
    std::string word;
    in >> word >> lacking >> lacking >> done;
    progress.emplace_back(lacking, done);
    if (lacking == 0)
      break;
    EXPECT_TRUE(got.session.measurements.empty());
  }
  EXPECT_EQ(progress, (std::vector<std::pair<int, int>>{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {0, 4}}));
  expect_whole(got, "/decode", 1, 2, 17);
  // The same, but the program does other work in the third run: its pass does not count.
  counted.write(plan + "trace-first 0\nwait 1\n");
  fs::remove(resume);
  for (const char* scene : {"decode", "decode", "nested"})
    got = counted.run(scene, 1);
  EXPECT_TRUE(got.session.measurements.empty()) << "step > decode is not decode";
  fs::remove(resume);
  for (const int times : {1, 1, 5})
    got = counted.run("changing", times);
  expect_whole(got, "/decode", 1, 2, 17);
}

TEST(Counters, AShortProgramWaitsForTheHardwareUntilItsFirstRoundIsComplete) {
  const std::string plan =
      "per range\nrounds 9\nskip-first 0\ntrace-first 0\ninclude p x - - ndecode\n";
  const Environment slow = {{"STANDIN_START_MS", "20"}};
  const Counted waits(plan);
  const Recorded got = waits.run("quick", 8, slow);
  expect_whole(got, "/decode", 1, 2, 17);
  const model::Loss* waited = got.loss("counters_waited");
  ASSERT_NE(waited, nullptr);
  EXPECT_GE(waited->count, 4u);
  EXPECT_LE(waited->count, 6u) << "not after the first round";
  const Counted hurries(plan + "arm-wait 0\n");
  const Recorded none = hurries.run("quick", 8, slow);
  EXPECT_TRUE(none.session.measurements.empty());
  const model::Loss* up = none.loss("counters_waited");
  EXPECT_LE(up == nullptr ? 0u : up->count, 1u) << "only until the profiler is up";
}

TEST(Counters, ARangeThatIsCapturedIntoAGraphIsLeftAlone) {
  for (const char* per : {"range", "kernel"}) {
    const Counted counted(std::string("per ") + per +
                          "\nrounds 2\nskip-first 0\ntrace-first 2\ninclude p x - - ndecode\n");
    const Recorded got = counted.run("captured", 60);
    EXPECT_EQ(got.status, 0) << per << ": a capture was broken";
    EXPECT_EQ(got.loss("gpu_partial"), nullptr) << per << ": " << got.loss("gpu_partial")->detail;
    EXPECT_EQ(got.loss("unfinished_gpu_work"), nullptr) << per;
    EXPECT_EQ(got.session.measurements.size(), per == std::string("range") ? 2u : 4u) << per;
    if (per == std::string("range"))
      expect_whole(got, "/decode", 2, 2, 17);
  }
}

TEST(Counters, TheProfilerIsLetGoBeforeTheContextOrTheProgramEnds) {
  for (const char* per : {"range", "kernel"}) {
    const Counted counted(std::string("per ") + per +
                          "\nrounds 9\nskip-first 0\ntrace-first 0\ninclude p x - - ndecode\n");
    for (const char* scene : {"decode", "destroyed"}) {
      for (const int times : {1, 2, 3, 6}) {
        const Recorded got = counted.run(scene, times);
        EXPECT_EQ(got.status, 0) << scene << " " << per << " " << times;
        EXPECT_EQ(got.loss("gpu_partial"), nullptr) << got.loss("gpu_partial")->detail;
      }
    }
  }
}

/// The second configuration takes an object of its own. Where that is refused, the sampler gets the
/// device back.
TEST(Counters, AProfilerThatIsNotMadeAgainLetsTheDeviceGo) {
  const Counted counted(std::string(kMore) + "rounds 9\n");
  const Recorded got = counted.run("aside", 30, {{"STANDIN_FAULT", "counters_again"}});
  ASSERT_NE(got.loss("gpu_partial"), nullptr);
  EXPECT_NE(got.loss("gpu_partial")->detail.find("cuptiRangeProfilerEnable"), std::string::npos)
      << got.loss("gpu_partial")->detail;
  EXPECT_EQ(got.status, 0);
}

TEST(Counters, RefusalsAreTold) {
  const Counted counted(
      "per range\nrounds 1\nskip-first 0\ntrace-first 0\ninclude p x - - ndecode\n");
  for (const auto& [fault, words] : std::map<std::string, std::string>{
           {"counters_denied", "NVreg_RestrictProfilingToAdminUsers"},
           {"counters_busy", "dcgmi"},
           {"counters_stop", "cuptiRangeProfilerStop"}}) {
    const Recorded got = counted.run("decode", 30, {{"STANDIN_FAULT", fault}});
    EXPECT_EQ(got.status, 0) << fault;
    EXPECT_TRUE(got.session.measurements.empty()) << fault;
    ASSERT_NE(got.loss("gpu_partial"), nullptr) << fault;
    EXPECT_NE(got.loss("gpu_partial")->detail.find(words), std::string::npos)
        << got.loss("gpu_partial")->detail;
  }
  for (const char* lines : {"configuration 3\nmetric a.sum\n", "configuration 2\n"}) {
    const Counted numbered(std::string(lines) + "per range\ninclude p x - - ndecode\n");
    EXPECT_NE(numbered.run("decode", 2).loss("gpu_partial"), nullptr) << lines;
  }
  const Counted wrong("per range\nrounds 1\nspeed 9\ninclude p x - - ndecode\n");
  const Recorded got = wrong.run("decode", 2);
  EXPECT_EQ(got.session.kernels.size(), 4u) << "the timeline is there all the same";
  ASSERT_NE(got.loss("gpu_partial"), nullptr);
  EXPECT_NE(got.loss("gpu_partial")->detail.find("line 8: unknown item"), std::string::npos)
      << got.loss("gpu_partial")->detail;
}

}  // namespace
}  // namespace rangescope
