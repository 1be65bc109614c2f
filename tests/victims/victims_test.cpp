// Runs each victim without and with the injected library: the program must behave the same (stdout,
// stderr, exit code or signal), and the capture must hold what the program is known to have opened.
#include <sys/mount.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/fs.hpp"
#include "harness.hpp"

namespace rangescope::victims {
namespace {

class Scenario : public Victim {
 protected:
  model::Session recorded(std::vector<std::string> arguments,
                          const Environment& env = {},
                          bool same = true) {
    arguments.insert(arguments.begin(), RANGESCOPE_VICTIM);
    return recorded_command(arguments, env, same);
  }
};

TEST_F(Scenario, Zoo) {
  const auto session = recorded({"zoo"});
  EXPECT_EQ(show(session),
            "p0: <request> 2\n"
            "p0: prefill 2\n"
            "p0: prefill > layer0 2\n"
            "p0: prefill > layer1 2\n"
            "p0: LLM:decode_all 2\n"
            "p0: decode 6\n"
            "p0: decode > layer0 6\n"
            "p0: decode > layer1 6\n"
            "p0: A 1\n"
            "p0: A > A::A1 1\n"
            "p0: B 1\n"
            "p0: empty 1\n"
            "p0: async 1\n"
            "p0: a/b [x], y@z 1\n"
            "p0: \xe5\xb1\xa4 1\n"
            "p0: attrs 1\n"
            "p0: main_thread 1\n"
            "p0: copies 1\n"
            "p0: graph_capture 1\n"
            "p0: graph_capture > captured_layer 1\n"
            "p0: graph_replay 4\n"
            "p0: worker 1\n"
            "mark done\n");
  ASSERT_EQ(session.attributes.size(), 1u);
  EXPECT_EQ(session.attributes[0].category, 7u);
  EXPECT_EQ(session.attributes[0].color_argb, 0xff112233u);
  EXPECT_EQ(session.attributes[0].payload(), 42);
  ASSERT_EQ(session.categories.size(), 1u);
  EXPECT_EQ(session.strings.view(session.categories[0].name), "compute");
}

TEST_F(Scenario, ValuesThatNvtxDocuments) {
  recorded({"values"}, {}, false);
  EXPECT_EQ(outcome_.out, "0 1 0 2 | 2 0 1 0 | 1 1\n1\n1 1\n");
}

TEST_F(Scenario, PayloadsOfEveryType) {
  const auto session = recorded({"payloads"});
  std::string text;
  for (const model::Mark& m : session.marks) {
    text += m.attributes == model::kNone
                ? "none "
                : std::to_string(session.attributes[m.attributes].payload()) + " ";
  }
  EXPECT_EQ(text,
            "18446744073709551616.000000 -5.000000 0.500000 7.000000 -7.000000 0.250000 none ");
  ASSERT_EQ(session.domains.size(), 2u);
  EXPECT_EQ(session.strings.view(session.domains[1].name), "d\xc3\xa9");
}

TEST_F(Scenario, PayloadExtension) {
  const auto session = recorded({"payload_extension"});
  EXPECT_EQ(show(session),
            "p0: NCCL:init 1\n"
            "p0: NCCL:allgather 1\n"
            "p0: NCCL:allgather >  1\n"
            "p0: NCCL:<allgather> 1\n"
            "mark allgather\n");
}

TEST_F(Scenario, PayloadsOfTheExtensionThatNcclCarries) {
  const auto session = recorded({"nccl_calls"});
  EXPECT_EQ(show(session), "p0: NCCL:ncclCommInitRank 1\np0: NCCL:ncclAllReduce 2\n");
  std::string text;
  for (const auto& field : session.payload_fields)
    text += fmt::format("{}: {} = {:x}\n",
                        session.strings.view(session.ranges[field.range].name),
                        session.strings.view(field.name),
                        field.bits);
  EXPECT_EQ(text,
            "ncclCommInitRank: NCCL communicator ID = feedbeef12345678\n"
            "ncclCommInitRank: No. of ranks = 2\n"
            "ncclCommInitRank: Rank = 1\n"
            "ncclCommInitRank: CUDA device = 1\n"
            "ncclAllReduce: NCCL communicator ID = feedbeef12345678\n"
            "ncclAllReduce: Message size [bytes] = 1000\n"
            "ncclAllReduce: NCCL communicator ID = feedbeef12345678\n"
            "ncclAllReduce: Message size [bytes] = 2000\n");
}

TEST_F(Scenario, Names) {
  const auto session = recorded({"names"});
  EXPECT_EQ(show(session),
            "p0: \xff\xfe bytes 1\n"
            "p0:  3\n"
            "p0: LLL*65536 1\n"
            "p0: MMM*262144 1\n"
            "p0: wide \xe5\xb1\xa4 \xf0\x9f\x98\x80 1\n"
            "p0: www*2000 1\n"
            "p0: names:registered wide 1\n"
            "p0: names: 1\n"
            "! cut_name 1\n");
  ASSERT_EQ(session.threads.size(), 1u);
  EXPECT_EQ(session.strings.view(session.threads[0].name), "the main thread");
}

TEST_F(Scenario, EverNewNamesInOneBuffer) {
  const auto session = recorded({"unique"});
  ASSERT_EQ(session.ranges.size(), 200000u);
  for (std::size_t i : {0u, 49151u, 49152u, 100000u, 199999u}) {
    EXPECT_EQ(session.strings.view(session.ranges[i].name), "step " + std::to_string(i));
  }
}

TEST_F(Scenario, OneEntryForATextThatIsRegisteredAgain) {
  EXPECT_EQ(show(recorded({"register_again"})), "p0: first 1\np0: did not grow 1\n");
}

TEST_F(Scenario, Unbalanced) {
  const auto session = recorded({"unbalanced"});
  EXPECT_EQ(closed(session, "deep"), 3000u);
  EXPECT_EQ(closed(session, "crossing"), 1u);
  EXPECT_EQ(closed(session, "after"), 1u);
  EXPECT_EQ(closed(session, "open"), 1u);
  EXPECT_EQ(closed(session, "never ended"), 0u);
  EXPECT_NE(show(session).find("p0: <crosses threads across> 1\n"), std::string::npos);
  EXPECT_NE(show(session).find("! pop_without_push 2\n"), std::string::npos);
}

TEST_F(Scenario, Fork) {
  EXPECT_EQ(show(recorded({"fork"})), "p0: before 1\np0: after 1\np1: child 3\np2: grandchild 2\n");
}

TEST_F(Scenario, ForkMakesASmallFile) {
  EXPECT_EQ(show(recorded({"fork_file"})), "p0: parent 1\np1: child 1\np1: few pages 1\n");
}

TEST_F(Scenario, ForkInsideARange) {
  const auto session = recorded({"fork_in_range"});
  EXPECT_EQ(show(session),
            "p0: outer 1\n"
            "p0: <span> 1\n"
            "p0: outer > in parent 1\n"
            "p1: in child 1\n"
            "p1: later in child 1\n"
            "! inherited_end 1\n"
            "! inherited_pop 1\n");
  ASSERT_EQ(session.processes.size(), 2u);
  EXPECT_EQ(session.processes[1].parent_pid, session.processes[0].pid);
}

TEST_F(Scenario, ForkThatNoLibrarySees) {
  if (kSanitized)
    GTEST_SKIP() << "sanitizers do not survive a raw clone";
  EXPECT_EQ(show(recorded({"raw_fork"})), "p0: parent 2\np1: raw child 2\n");
}

TEST_F(Scenario, Exec) {
  const auto session = recorded({"exec"});
  EXPECT_EQ(show(session), "p0: before exec 0, 1 open\np1: leaf 1\n");
  ASSERT_EQ(session.processes.size(), 2u);
  EXPECT_EQ(session.processes[0].pid, session.processes[1].pid);
}

TEST_F(Scenario, Spawn) {
  EXPECT_EQ(show(recorded({"spawn"})),
            "p0: spawning 1\np0: spawning > after 1\np1: leaf 1\np2: leaf 1\n");
}

TEST_F(Scenario, DeathsKeepWhatWasWritten) {
  for (const char* how : {"kill", "term", "segv", "abort", "_exit", "exit", "terminate"}) {
    SCOPED_TRACE(how);
    std::error_code error;
    fs::remove_all(folder_ / "captures", error);
    EXPECT_EQ(show(recorded({how})), "p0: done 1000\np0: dying 0, 1 open\np0: dying > last 1\n");
    EXPECT_FALSE(outcome_.ended.empty());
  }
}

TEST_F(Scenario, ThrowThroughRanges) {
  EXPECT_EQ(show(recorded({"throw"})), "p0: outer 1\np0: outer > inner 1\np0: caught 1\n");
}

TEST_F(Scenario, TwoThousandThreadsAtOnce) {
  const int count = kSanitized ? 200 : 2000;
  const auto session = recorded({"threads", std::to_string(count)});
  EXPECT_EQ(closed(session, "thread"), static_cast<std::size_t>(count));
  EXPECT_EQ(closed(session, "work"), static_cast<std::size_t>(count));
  EXPECT_EQ(session.threads.size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(session.losses.empty()) << show(session);
}

TEST_F(Scenario, TwoThousandThreadsInTurnShareChunks) {
  const auto session = recorded({"threads_in_turn"});
  EXPECT_EQ(closed(session, "short"), 2000u);
  std::uintmax_t bytes = 0;  // on disk: the file itself is as large as it may become
  for (const auto& file : fs::directory_iterator(folder_ / "captures")) {
    struct stat found {};
    ASSERT_EQ(::stat(file.path().c_str(), &found), 0);
    bytes += static_cast<std::uintmax_t>(found.st_blocks) * 512;
  }
  EXPECT_LT(bytes, 1024u * 1024u);
}

TEST_F(Scenario, SignalStorm) {
  if (kHandlersAreCalls)
    GTEST_SKIP() << "ThreadSanitizer calls handlers as functions (harness.hpp)";
  const auto session = recorded({"signals"});
  EXPECT_EQ(closed(session, "calm"), 5u);
  EXPECT_EQ(closed(session, "drop"), closed(session, "storm"));
  EXPECT_GT(closed(session, "handler"), 100u);
  for (const model::Range& range : session.ranges)
    EXPECT_NE(range.end_ns, model::kOpen);
  for (const model::Loss& loss : session.losses)
    EXPECT_EQ(loss.kind.id(), "reentrant_event");
}

TEST_F(Scenario, PluginsComeAndGo) {
  EXPECT_EQ(show(recorded({"dlopen", RANGESCOPE_CLIENT})), "p0: main 2\np0: plugin 20\n");
}

TEST_F(Scenario, BeforeMainAndAfterExit) {
  EXPECT_EQ(show(recorded({"atexit"}, {{"VICTIM_EARLY", "1"}})),
            "p0: before main 1\np0: main 1\np0: atexit 1\np0: static destructor 1\n");
}

TEST_F(Scenario, TenMillionEvents) {
  const std::size_t pairs = kSanitized ? 100000 : 5000000;
  const auto session = recorded({"many", std::to_string(pairs)});
  EXPECT_EQ(closed(session, "step"), pairs);
  EXPECT_TRUE(session.losses.empty()) << show(session);
}

TEST_F(Scenario, CaptureSizeIsBounded) {
  const auto session = recorded({"many", "100000"}, {{"RANGESCOPE_MAX_CAPTURE_SIZE", "262144"}});
  EXPECT_TRUE(has_loss(session, "size_limit"));
  EXPECT_GT(closed(session, "step"), 3000u);
  for (const auto& file : fs::directory_iterator(folder_ / "captures"))
    EXPECT_LE(file.file_size(), 262144u);
}

// A run of four times what fits: the capture spans it, and what was left out is counted to the last
// range.
TEST_F(Scenario, ALongRunIsThinnedToTheEnd) {
  constexpr std::uint64_t kPairs = 4'000'000, kRoom = 16 << 20;
  const auto session = recorded({"many", std::to_string(kPairs)},
                                {{"RANGESCOPE_MAX_CAPTURE_SIZE", std::to_string(kRoom)}});
  const std::uint64_t steps = closed(session, "step");
  EXPECT_GT(steps, kRoom / 2 / 16);
  EXPECT_LT(steps, kRoom / 16);
  ASSERT_EQ(closed(session, "all"), 1u);
  std::int64_t begin = INT64_MAX, end = 0, last = 0;
  for (const model::Range& range : session.ranges) {
    begin = std::min(begin, range.start_ns);
    end = std::max(end, range.end_ns);
    if (session.strings.view(range.name) == "step")
      last = std::max(last, range.end_ns);
  }
  EXPECT_GT(last - begin, (end - begin) / 10 * 9);
  ASSERT_EQ(session.losses.size(), 1u);
  EXPECT_EQ(session.losses[0].kind.id(), "size_limit");
  EXPECT_EQ(session.losses[0].count + steps, kPairs);
  EXPECT_NE(session.losses[0].detail.find("% of all) left out beyond half"), std::string::npos)
      << session.losses[0].detail;
}

// Limits that the program sets itself later cost nothing of the capture: it has its size, and takes
// no descriptor.
TEST_F(Scenario, OwnLimitOnFileSize) {
  EXPECT_EQ(show(recorded({"file_limit"})), "p0: early 1\np0: many 100000\n");
}

// A kernel with pages of 64 KiB (arm64) refuses offsets between them: every chunk was lost there.
TEST_F(Scenario, PagesOf64KiB) {
  if (kSanitized)
    GTEST_SKIP() << "sanitizers map memory before anything that is preloaded";
  const auto session = recorded({"many", "200000"}, {{"LD_PRELOAD", RANGESCOPE_LARGE_PAGES}});
  EXPECT_EQ(show(session), "p0: all 1\np0: all > step 200000\n");
}

TEST_F(Scenario, NoDescriptorsLeft) {
  EXPECT_EQ(show(recorded({"no_files"})), "p0: early 1\np0: many 100000\n");
}

TEST_F(Scenario, NoMemoryLeft) {
  if (kSanitized)
    GTEST_SKIP() << "sanitizers need address space";
  const auto session = recorded({"no_memory"});
  EXPECT_EQ(closed(session, "early"), 1u);
  EXPECT_TRUE(has_loss(session, "no_memory")) << show(session);
}

TEST_F(Scenario, AllDescriptorsClosed) {
  if (kSanitized)
    GTEST_SKIP() << "sanitizers keep descriptors";
  const auto session = recorded({"close_all"});
  EXPECT_EQ(show(session), "p0: early 1\np0: many 5000\n");
}

TEST_F(Scenario, FullDisk) {
  const fs::path captures = folder_ / "captures";
  fs::create_directory(captures);
  if (mount("rangescope", captures.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "mounting a small tmpfs is not allowed here";
  const auto session = recorded({"many", "100000"});
  umount2(captures.c_str(), MNT_DETACH);
  EXPECT_EQ(outcome_.ended, "exit 0");
  EXPECT_TRUE(has_loss(session, "disk_full")) << show(session);
  EXPECT_GT(closed(session, "step"), 2000u);
}

TEST_F(Scenario, FolderThatCannotBeWritten) {
  const Outcome plain = run({RANGESCOPE_VICTIM, "zoo"}, {}, folder_);
  for (const std::string place : {"/proc/nowhere", "/dev/null", ""}) {
    EXPECT_EQ(run({RANGESCOPE_VICTIM, "zoo"},
                  {{"NVTX_INJECTION64_PATH", RANGESCOPE_LIBRARY}, {"RANGESCOPE_DIR", place}},
                  folder_),
              plain);
  }
  const Outcome loud = run({RANGESCOPE_VICTIM, "zoo"},
                           {{"NVTX_INJECTION64_PATH", RANGESCOPE_LIBRARY},
                            {"RANGESCOPE_DIR", "/dev/null"},
                            {"RANGESCOPE_VERBOSE", "1"}},
                           folder_);
  EXPECT_EQ(loud.out, plain.out);
  EXPECT_TRUE(loud.err.starts_with("rangescope: nothing is recorded in process ")) << loud.err;
}

TEST_F(Scenario, AnotherToolBehindOursSeesTheSamePayloads) {
  const std::string alone = (folder_ / "alone").string(), chained = (folder_ / "chained").string();
  run({RANGESCOPE_VICTIM, "payload_extension"},
      {{"NVTX_INJECTION64_PATH", RANGESCOPE_OTHER_TOOL}, {"OTHER_TOOL_LOG", alone}},
      folder_);
  const auto session =
      recorded({"payload_extension"},
               {{"RANGESCOPE_CHAIN_NVTX", RANGESCOPE_OTHER_TOOL}, {"OTHER_TOOL_LOG", chained}},
               false);
  const std::string log = base::read_file(alone).value_or("");
  EXPECT_NE(log.find("push payload 77 in NCCL\n"), std::string::npos) << log;
  EXPECT_EQ(base::read_file(chained).value_or(""), log);
  EXPECT_EQ(closed(session, "allgather"), 2u);
}

TEST_F(Scenario, AnotherToolBehindOursSeesTheSame) {
  const std::string alone = (folder_ / "alone").string(), chained = (folder_ / "chained").string();
  const Outcome plain =
      run({RANGESCOPE_VICTIM, "zoo"},
          {{"NVTX_INJECTION64_PATH", RANGESCOPE_OTHER_TOOL}, {"OTHER_TOOL_LOG", alone}},
          folder_);
  const auto session =
      recorded({"zoo"},
               {{"RANGESCOPE_CHAIN_NVTX", RANGESCOPE_OTHER_TOOL}, {"OTHER_TOOL_LOG", chained}},
               false);
  EXPECT_EQ(outcome_, plain);
  const std::string log = base::read_file(alone).value_or("");
  EXPECT_NE(log.find("push decode_all in LLM\n"), std::string::npos) << log;
  EXPECT_EQ(base::read_file(chained).value_or(""), log);
  EXPECT_EQ(closed(session, "decode_all"), 2u);
  EXPECT_EQ(closed(session, "request"), 2u);
  EXPECT_EQ(closed(session, "layer0"), 8u);
}

TEST_F(Scenario, NoNvtxNoCapture) {
  EXPECT_TRUE(recorded({"nothing"}).processes.empty());
}

TEST_F(Scenario, PythonChildrenForkedAndSpawned) {
  if (kSanitized)
    GTEST_SKIP() << "the interpreter is not instrumented";
  const auto python = base::find_on_path("python3");
  if (!python)
    GTEST_SKIP() << "no python3";
  for (const char* method : {"fork", "spawn"}) {
    SCOPED_TRACE(method);
    std::error_code error;
    fs::remove_all(folder_ / "captures", error);
    const auto session = recorded_command(
        {python->string(), RANGESCOPE_PYTHON_VICTIM, RANGESCOPE_CLIENT, method}, {}, true);
    EXPECT_EQ(closed(session, "main"), 2u);
    EXPECT_EQ(closed(session, "child"), 3u);
    EXPECT_EQ(session.processes.size(), 4u);
  }
}

}  // namespace
}  // namespace rangescope::victims
