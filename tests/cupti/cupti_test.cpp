// The injected library against stand-ins of CUPTI: what it writes is read back and compared with
// what the victim did, or with what a real CUPTI delivered on an H200 (recorded/).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "run.hpp"

namespace rangescope {
namespace {

// What the victim's scene "zoo" does.
const std::map<std::string, int> kZooPaths = {{"", 1},
                                              {"/step/layer", 6},
                                              {"/worker", 1},
                                              {"/graph_replay|/captured_layer", 4},
                                              {"/graph_replay|", 4}};

// What the recorded program did.
constexpr std::size_t kZooKernels = 57, kZooGraphKernels = 8, kZooCopies = 4, kZooMemsets = 1;

class Zoo : public testing::TestWithParam<Environment> {};

TEST_P(Zoo, EverythingTheVictimDidIsThere) {
  const Recorded zoo = run("zoo", GetParam());
  const model::Session& s = zoo.session;
  EXPECT_EQ(zoo.status, 0);
  EXPECT_EQ(zoo.kernels("gemm"), 1u + 3u + 1u + 4u);
  EXPECT_EQ(zoo.kernels("reduce"), 3u + 4u);
  EXPECT_EQ(s.copies.size(), 1u);
  EXPECT_EQ(s.copies.at(0).bytes, 4096u);
  EXPECT_EQ(s.copies.at(0).kind, model::CopyKind::kHostToDevice);
  EXPECT_EQ(s.memsets.size(), 1u);
  EXPECT_EQ(s.synchronizations.size(), 4u);
  ASSERT_EQ(s.devices.size(), 1u);
  EXPECT_EQ(s.strings.view(s.devices[0].name), "Stand-in GPU");
  EXPECT_EQ(s.strings.view(s.devices[0].chip), "GH100");
  std::set<std::uint32_t> threads;
  for (const model::Kernel& kernel : s.kernels) {
    ASSERT_NE(kernel.launch, model::kNone);
    const model::Launch& launch = s.launches.at(kernel.launch);
    threads.insert(launch.thread);
    EXPECT_GE(kernel.start_ns, launch.start_ns);
    // What the victim asked for, to the nanosecond, also where CUPTI's clock is not ours.
    const std::int64_t took = kernel.end_ns - kernel.start_ns;
    if (s.strings.view(s.kernel_names[kernel.name].short_name) == "reduce") {
      EXPECT_EQ(took, 1000);
    } else {
      EXPECT_TRUE(took == 2000 || took == 3000 || took == 5000) << took;
    }
    EXPECT_EQ(
        launch.kind,
        kernel.graph_node == model::kNone ? model::LaunchKind::kKernel : model::LaunchKind::kGraph);
    EXPECT_EQ(s.kernel_shapes.at(kernel.shape).block[0], 128u);
    EXPECT_EQ(s.streams.at(kernel.stream).device, 0u);
  }
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_EQ(s.graph_nodes.size(), 2u);
  EXPECT_EQ(zoo.paths(), kZooPaths);
  for (const model::Loss& loss : s.losses)
    ADD_FAILURE() << loss.kind.id() << ": " << loss.detail;
}

INSTANTIATE_TEST_SUITE_P(Releases,
                         Zoo,
                         testing::Values(Environment{},
                                         Environment{{"STANDIN_VERSION", "26"}},
                                         Environment{{"STANDIN_VERSION", "28"}},
                                         Environment{{"STANDIN_VERSION", "130000"}},
                                         Environment{{"RANGESCOPE_LAUNCH_RECORDS", "callback"}},
                                         Environment{{"RANGESCOPE_CUPTI", CUPTI_OLD},
                                                     {"STANDIN_VERSION", "19"}}));

TEST(Cupti, CapturesAreCalls) {
  const Recorded zoo = run("zoo");
  std::map<std::string, int> calls;
  for (const model::Launch& launch : zoo.session.launches) {
    if (launch.kind != model::LaunchKind::kOther)
      continue;
    ++calls[std::string(zoo.session.strings.view(launch.name))];
    EXPECT_GE(launch.end_ns, launch.start_ns);
  }
  EXPECT_EQ(calls["cuStreamBeginCapture_v2"], 1);
  EXPECT_EQ(calls["cuStreamEndCapture"], 1);
  EXPECT_EQ(calls["cuGraphInstantiateWithFlags"], 1);
}

TEST(Cupti, WholeGraphsAreOneSpan) {
  const Recorded zoo = run("zoo", {{"RANGESCOPE_CUDA_GRAPHS", "graph"}});
  ASSERT_EQ(zoo.session.graph_launches.size(), 4u);
  EXPECT_EQ(zoo.session.kernels.size(), 1u + 6u + 1u);
  EXPECT_EQ(zoo.session.graph_launches[0].kernel_nodes, 2u);
  EXPECT_NE(zoo.session.graph_launches[0].launch, model::kNone);
}

// Real activity buffers of an H200: 12.8 and 13.0 write structs of different sizes.
TEST(Cupti, RecordedBuffersOfBothFamilies) {
  for (const auto& [file, version] :
       {std::pair{"zoo-13.0.1-node.buffers", "130001"}, std::pair{"zoo-12.8-node.buffers", "26"}}) {
    const Recorded zoo =
        run("start",
            {{"STANDIN_PLAY", std::string(RECORDED "/") + file}, {"STANDIN_VERSION", version}});
    const model::Session& s = zoo.session;
    EXPECT_EQ(s.kernels.size(), kZooKernels) << file;
    EXPECT_EQ(zoo.kernels("gemm_like"), 26u) << file;
    EXPECT_EQ(zoo.kernels("softmax_like"), 21u) << file;
    EXPECT_EQ(zoo.kernels("copy_like"), 8u) << file;
    EXPECT_EQ(zoo.kernels("reduce_like"), 2u) << file;
    EXPECT_EQ(s.copies.size(), kZooCopies) << file;
    EXPECT_EQ(s.memsets.size(), kZooMemsets) << file;
    std::size_t graph_kernels = 0;
    for (const model::Kernel& kernel : s.kernels) {
      graph_kernels += kernel.graph_node != model::kNone ? 1 : 0;
      EXPECT_GT(kernel.end_ns - kernel.start_ns, 500) << file;
      EXPECT_LT(kernel.end_ns - kernel.start_ns, 100000) << file;
    }
    EXPECT_EQ(graph_kernels, kZooGraphKernels) << file;
    for (const model::Copy& copy : s.copies)
      EXPECT_EQ(copy.bytes, 256u * 256u * 4u) << file;
    ASSERT_FALSE(s.devices.empty());
    EXPECT_EQ(s.devices[0].sm_count, 132u) << file;
    EXPECT_EQ(s.devices[0].compute_major, 9u) << file;
  }
  for (const auto& [file, version] : {std::pair{"zoo-13.0.1-graph.buffers", "130001"},
                                      std::pair{"zoo-12.8-graph.buffers", "26"}}) {
    const Recorded zoo = run("start",
                             {{"STANDIN_PLAY", std::string(RECORDED "/") + file},
                              {"STANDIN_VERSION", version},
                              {"RANGESCOPE_CUDA_GRAPHS", "graph"}});
    EXPECT_EQ(zoo.session.kernels.size(), kZooKernels - kZooGraphKernels) << file;
    EXPECT_EQ(zoo.session.graph_launches.size(), 4u) << file;
  }
}

TEST(Cupti, ManyLaunchesInLittleSpace) {
  const Recorded many = run("many");
  EXPECT_EQ(many.session.kernels.size(), 20000u);
  EXPECT_LT(many.bytes, 20000u * 48u + 8192u);
  const Recorded threads = run("threads", {{"RANGESCOPE_LAUNCH_RECORDS", "callback"}});
  EXPECT_EQ(threads.session.kernels.size(), 10000u);
  EXPECT_EQ(threads.session.threads.size(), 50u);
}

TEST(Cupti, AnOffsetClockIsCorrected) {
  const Recorded zoo = run("zoo", {{"RANGESCOPE_CUPTI", CUPTI_OLD}, {"STANDIN_VERSION", "20"}});
  EXPECT_EQ(zoo.session.clock.gpu.substr(0, 7), "offset ");
  ASSERT_FALSE(zoo.session.kernels.empty());
  for (const model::Kernel& kernel : zoo.session.kernels) {
    ASSERT_NE(kernel.launch, model::kNone);
    const std::int64_t latency = kernel.start_ns - zoo.session.launches[kernel.launch].start_ns;
    EXPECT_GT(latency, -20000);
    EXPECT_LT(latency, 1000000000);
  }
}

TEST(Cupti, WithoutCuptiTheProgramRunsAndTheCaptureSaysWhy) {
  const std::map<std::string, std::pair<Environment, std::string>> cases = {
      {"missing", {{{"RANGESCOPE_CUPTI", "/nonexistent/libcupti.so"}}, "cannot be loaded"}},
      {"too old", {{{"STANDIN_VERSION", "17"}}, "is CUPTI 11.6"}},
      {"too new", {{{"STANDIN_VERSION", "140000"}}, "is CUPTI 14.0.0"}},
      {"taken", {{{"STANDIN_FAULT", "subscriber_taken"}}, "held by CUPTI for Kineto"}},
      {"taken, old",
       {{{"STANDIN_FAULT", "subscriber_taken"},
         {"RANGESCOPE_CUPTI", CUPTI_OLD},
         {"STANDIN_VERSION", "20"}},
        "held by another tool"}},
      {"permission", {{{"STANDIN_FAULT", "no_permission"}}, "NVreg_RestrictProfilingToAdminUsers"}},
      {"no kernels", {{{"STANDIN_FAULT", "no_kernels"}}, "refused to trace kernels"}}};
  for (const auto& [name, what] : cases) {
    const Recorded exit_code = run("exit_code", what.first);
    EXPECT_EQ(WEXITSTATUS(exit_code.status), 42) << name;
    const model::Loss* loss = exit_code.loss("gpu_unavailable");
    ASSERT_NE(loss, nullptr) << name;
    EXPECT_NE(loss->detail.find(what.second), std::string::npos) << name << ": " << loss->detail;
    EXPECT_TRUE(exit_code.session.kernels.empty()) << name;
  }
}

TEST(Cupti, TheProgramsOwnProfilerRecordsAsWithoutUs) {
  constexpr int kSeen = 10, kRefused = 101;
  Environment environment = {{"STANDIN_KINETO", KINETO}};
  const Recorded gives_way = run("kineto", environment);
  EXPECT_EQ(WEXITSTATUS(gives_way.status), kSeen);
  EXPECT_EQ(gives_way.kernels("gemm"), 5u);  // until it began
  EXPECT_EQ(gives_way.session.ranges.size(), 20u);
  ASSERT_EQ(gives_way.session.gpu_pauses.size(), 1u);
  EXPECT_EQ(gives_way.session.gpu_pauses[0].end_ns, model::kOpen);
  const model::Loss* loss = gives_way.loss("cupti_let_go");
  ASSERT_NE(loss, nullptr);
  EXPECT_EQ(loss->detail.find("libstandin_kineto.so began "),
            loss->detail.find("libstandin_kineto"));

  environment["RANGESCOPE_GIVE_WAY"] = "off";
  const Recorded keeps = run("kineto", environment);
  EXPECT_EQ(WEXITSTATUS(keeps.status), kRefused);
  EXPECT_EQ(keeps.kernels("gemm"), 20u);
}

// From CUDA 13.3 on, whoever comes first; with one that does not share, as before.
TEST(Cupti, ToolsThatShareCuptiRecordSideBySide) {
  const Environment shared = {{"STANDIN_KINETO", KINETO},
                              {"STANDIN_VERSION", "130300"},
                              {"STANDIN_SHARES", "1"},
                              {"RANGESCOPE_CUPTI_SHARED", "on"}};
  for (const bool they_are_first : {false, true}) {
    Environment environment = shared;
    if (they_are_first)
      environment["STANDIN_SHARES_FIRST"] = "1";
    const Recorded both = run("kineto", environment);
    EXPECT_EQ(WEXITSTATUS(both.status), they_are_first ? 15 : 10);
    EXPECT_EQ(both.kernels("gemm"), 20u);
    EXPECT_EQ(both.paths().at("/step"), 20);
    EXPECT_EQ(both.loss("cupti_let_go"), nullptr);
    for (const model::Kernel& kernel : both.session.kernels)  // one clock
      EXPECT_GT(kernel.start_ns, both.session.launches.at(kernel.launch).start_ns - 20000);
  }
  Environment alone = shared;
  alone.erase("STANDIN_SHARES");
  const Recorded gives_way = run("kineto", alone);
  EXPECT_EQ(WEXITSTATUS(gives_way.status), 10);
  EXPECT_EQ(gives_way.kernels("gemm"), 5u);
  alone["STANDIN_SHARES_FIRST"] = "1";
  EXPECT_NE(run("kineto", alone).loss("gpu_unavailable"), nullptr);
}

TEST(Cupti, DroppedAndUnfinishedWorkIsCounted) {
  const Recorded dropped = run("many", {{"STANDIN_FAULT", "drop"}});
  ASSERT_NE(dropped.loss("dropped_gpu_records"), nullptr);
  EXPECT_GT(dropped.loss("dropped_gpu_records")->count, 10000u);
  const Recorded unfinished = run("zoo", {{"STANDIN_NEVER_ENDS", "1"}});
  ASSERT_NE(unfinished.loss("unfinished_gpu_work"), nullptr);
  EXPECT_EQ(unfinished.loss("unfinished_gpu_work")->count, 16u);
}

TEST(Cupti, SizeLimit) {
  const Recorded small = run("many", {{"RANGESCOPE_MAX_CAPTURE_SIZE", "200000"}});
  EXPECT_EQ(small.status, 0);
  EXPECT_LT(small.bytes, 210000u);
  ASSERT_NE(small.loss("gpu_capture_size"), nullptr);
  EXPECT_GT(small.loss("gpu_capture_size")->count, 1000u);
}

TEST(Cupti, LaunchesByCallbackStandInTheSameRanges) {
  EXPECT_EQ(run("zoo", {{"RANGESCOPE_LAUNCH_RECORDS", "callback"}}).paths(), kZooPaths);
}

TEST(Cupti, AKilledProcessKeepsWhatWasFlushed) {
  const Recorded killed = run("killed", {{"RANGESCOPE_FLUSH_INTERVAL", "100ms"}});
  EXPECT_EQ(WTERMSIG(killed.status), SIGKILL);
  EXPECT_GE(killed.session.kernels.size(), 20000u);
  ASSERT_NE(killed.loss("gpu_stream_not_closed"), nullptr);
  EXPECT_NE(killed.loss("gpu_stream_not_closed")->detail.find("100 ms"), std::string::npos);
}

// Flushes hold up launches: a program that fills buffers by itself is left alone. Of its seven
// turns the flusher may find a few without a full buffer where the machine is loaded.
TEST(Cupti, ABusyProgramIsNotFlushed) {
  const fs::path log =
      fs::temp_directory_path() / ("rangescope-flushes-" + std::to_string(getpid()));
  const Recorded busy =
      run("busy", {{"RANGESCOPE_FLUSH_INTERVAL", "200ms"}, {"STANDIN_FLUSH_LOG", log.string()}});
  std::ifstream file(log);
  const auto flushes = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  fs::remove(log);
  EXPECT_EQ(busy.status, 0);
  EXPECT_GE(busy.session.kernels.size(), 10000u);
  EXPECT_GE(flushes, 1);  // at exit
  EXPECT_LE(flushes, 4);
}

// What the capture says last of where kernel times come from.
std::string times_of(const Recorded& recorded) {
  const std::string key = std::string("kernel_times") + '\0';
  const std::size_t at = recorded.gpu_bytes.rfind(key);
  return at == std::string::npos ? "" : recorded.gpu_bytes.c_str() + at + key.size();
}

TEST(Cupti, KernelsAreTimedByTheHardwareThatCan) {
  const Environment blackwell = {{"STANDIN_BLACKWELL", "1"}, {"STANDIN_VERSION", "130401"}};
  const Recorded zoo = run("zoo", blackwell);
  EXPECT_EQ(times_of(zoo), "hardware");
  EXPECT_EQ(zoo.paths(), kZooPaths);
  EXPECT_TRUE(zoo.session.losses.empty());
  const auto with = [&](const std::string& name, const std::string& value) {
    Environment changed = blackwell;
    changed[name] = value;
    return changed;
  };
  const std::vector<std::pair<Environment, std::string>> cases = {
      {{{"STANDIN_VERSION", "130401"}}, "software: CUPTI_ERROR_SOMETHING"},  // another chip
      {with("STANDIN_VERSION", "130001"),
       "software: the hardware trace of CUPTI before 13.4.1 can crash programs"},
      {with("RANGESCOPE_CUPTI", CUPTI_OLD), "software: this CUPTI has no hardware trace"},
      {with("RANGESCOPE_HARDWARE_TIMES", "off"), "software: RANGESCOPE_HARDWARE_TIMES=off"},
      {with("RANGESCOPE_COUNTERS", "/nonexistent"), "software: counters are collected"}};
  for (const auto& [environment, how] : cases) {
    const Recorded one = run("zoo", environment);
    EXPECT_EQ(times_of(one), how);
    EXPECT_EQ(one.paths(), kZooPaths);
  }
  Environment asked = with("STANDIN_VERSION", "130001");
  asked["RANGESCOPE_HARDWARE_TIMES"] = "on";
  EXPECT_EQ(times_of(run("zoo", asked)), "hardware");
  // What the hardware holds is asked for also while a program fills buffers: at all of its thirty
  // turns but few.
  const fs::path log =
      fs::temp_directory_path() / ("rangescope-flushes-" + std::to_string(getpid()));
  Environment often = with("RANGESCOPE_FLUSH_INTERVAL", "50ms");
  often["STANDIN_FLUSH_LOG"] = log.string();
  EXPECT_GE(run("busy", often).session.kernels.size(), 10000u);
  std::ifstream file(log);
  EXPECT_GE(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 6);
  fs::remove(log);
}

TEST(Cupti, EndsThatRunNoExitHandlers) {
  EXPECT_EQ(WEXITSTATUS(run("quick_exit").status), 3);
  EXPECT_EQ(run("reset").session.kernels.size(),
            10u);  // context destruction flushes, even before _exit
}

TEST(Cupti, TheChildOfAForkLeavesTheStreamAlone) {
  const Recorded forked = run("fork");
  EXPECT_EQ(forked.status, 0) << "the child ends";
  EXPECT_EQ(forked.session.kernels.size(), 20u);
  EXPECT_EQ(forked.streams, 1u);
  EXPECT_EQ(forked.loss("torn_tail"), nullptr);
}

TEST(Cupti, AProgramThatClosesEveryDescriptor) {
  const Recorded closes = run("closes_descriptors");
  EXPECT_EQ(closes.status, 0);
  EXPECT_EQ(closes.session.kernels.size(), 100u);
}

TEST(Cupti, AProgramWithoutCudaHasNoStream) {
  const Recorded nothing = run("nothing");
  EXPECT_EQ(nothing.status, 0);
  EXPECT_EQ(nothing.streams, 0u);
  EXPECT_FALSE(nothing.recorded);
}

}  // namespace
}  // namespace rangescope
