#include "profile/engine.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/temporary_folder.hpp"
#include "config/compose.hpp"
#include "profile/captures.hpp"
#include "profile/sampling.hpp"
#include "runs/stages.hpp"
#include "runs/status.hpp"

namespace rangescope::profile {
namespace engine_test {

namespace fs = std::filesystem;

/// A run in a folder of its own, with the stand-ins of nsys and ncu (tests/standin) and nothing of
/// the user's.
class Engine : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path source = base::source_dir;
    ::setenv("RANGESCOPE_NCU", (source / "tests/standin/ncu").c_str(), 1);
    ::setenv("RANGESCOPE_NSYS", (source / "tests/standin/nsys").c_str(), 1);
    ::setenv("XDG_CACHE_HOME", (folder_.path() / "cache").c_str(), 1);
    ::setenv("STANDIN_PLAN", (folder_.path() / "plan.json").c_str(), 1);
    ASSERT_TRUE(base::write_file(folder_.path() / "plan.json", R"({"kernel": "k_nested"})"));
  }

  Done profile(const std::vector<std::string>& words,
               const std::vector<std::string>& program,
               int repeat = 1) {
    config::Inputs in;
    in.shipped = fs::path(base::source_dir) / "conf";
    for (const std::string& word : words) {
      auto parsed =
          config::parse_override(word, {.source = config::Source::kOverride, .name = word});
      EXPECT_TRUE(parsed) << word;
      if (parsed)
        in.overrides.push_back(std::move(*parsed));
    }
    const config::Origin origin{.source = config::Source::kProgram};
    in.overrides.push_back(
        config::set_text("run.root", (folder_.path() / "runs").string(), origin));
    in.overrides.push_back(config::set_list("workload.command", program, origin));
    const auto config = config::compose(in);
    EXPECT_TRUE(config) << (config ? "" : base::to_string(config.error()));
    Settings settings;
    settings.repeat = repeat;
    settings.talk.report = [this](const Analyzed&) -> base::Result<void> {
      ++shown_;
      return {};
    };
    settings.talk.finding = [this](const model::Finding& finding) { told_.push_back(finding.id); };
    return config ? run(*config, settings) : Done{};
  }

  /// The files that every run leaves, and a finished status.
  static std::string outcome(const Done& done) {
    for (const char* file : {"cmd.txt",
                             "config.yaml",
                             "env.json",
                             "inputs.yaml",
                             "kernels.md",
                             "manifest.json",
                             "report.json",
                             "report.md",
                             "stages.json",
                             "summary.md",
                             "summary.svg"})
      EXPECT_TRUE(fs::exists(done.directory / file)) << file;
    const auto status = runs::read_status(done.directory);
    EXPECT_TRUE(status && status->state == runs::RunState::kDone && status->exit_code == done.code);
    return status ? status->outcome : "";
  }

  base::TemporaryFolder folder_{"rangescope-engine"};
  int shown_ = 0;
  std::vector<std::string> told_;
};

const std::vector<std::string> kNcu{
    "collector=ncu", "pipeline.probe=false", "pipeline.ncu.ncu_cli.replay_mode=kernel"};

TEST_F(Engine, ResultsOfNcuAreReported) {
  const Done done = profile(kNcu, {"true"});
  EXPECT_EQ(done.code, 0);
  EXPECT_FALSE(done.end);
  EXPECT_EQ(outcome(done), "ok");
  EXPECT_EQ(shown_, 1);
}

TEST_F(Engine, ATimelineAndResultsAreOneRun) {
  const Done done = profile(
      {"collector=ncu", "pipeline.nsys.enable=true", "pipeline.ncu.ncu_cli.replay_mode=kernel"},
      {"true"});
  EXPECT_EQ(outcome(done), "ok");
  const auto stages = runs::read_stages(done.directory);
  ASSERT_TRUE(stages && stages->size() == 2);
  EXPECT_EQ(stages->front().stage, "nsys");
  EXPECT_EQ(stages->back().stage, "ncu");
}

TEST_F(Engine, AToolThatCapturesNothingIsToldOnce) {
  ASSERT_TRUE(base::write_file(folder_.path() / "plan.json", R"({"kernel": "norep"})"));
  const Done done = profile(kNcu, {"true"});
  EXPECT_EQ(done.code, 80);
  EXPECT_EQ(outcome(done), "nothing_captured");
  EXPECT_EQ(told_, std::vector<std::string>{"ncu.empty"});
  EXPECT_EQ(shown_, 0);
}

TEST_F(Engine, AFailedWarmUpEndsTheRunAsTheProgramDid) {
  auto words = kNcu;
  words.emplace_back("workload.warmup=2");
  const Done done = profile(words, {"sh", "-c", "exit 7"});
  EXPECT_EQ(done.code, 7);
  EXPECT_EQ(outcome(done), "program_failed");
  ASSERT_TRUE(done.end);
  EXPECT_EQ(done.end->exit_code, 7);
  EXPECT_TRUE(fs::exists(done.directory / "warmup" / "warmup1.stderr"));
  EXPECT_FALSE(fs::exists(done.directory / "warmup" / "warmup2.stderr"));
}

TEST_F(Engine, WhatCannotBeDoneIsRefusedBeforeThereIsADirectory) {
  EXPECT_EQ(profile({"pipeline.native.enable=false"}, {"true"}).code, 78);
  EXPECT_EQ(profile(kNcu, {"true"}, 3).code, 64);  // without the native stage nothing is repeated
  EXPECT_EQ(profile(kNcu, {"no-such-program"}).code, 66);
  EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
}

TEST(KeptFile, IsARecording) {
  const base::TemporaryFolder folder("rangescope-kept");
  const fs::path file = folder.path() / "trace.json";
  EXPECT_TRUE(base::write_file(file, R"({"displayTimeUnit": "ns", "traceEvents": [{"ph": "X"}]})"));
  EXPECT_EQ(kept_file(file), "a recording (kineto)");
}

using Words = std::vector<std::string>;

TEST(Functions, MainIsTheScriptsModule) {
  const auto named = [](const Words& command) {
    return name_main("__main__.*\nstep=__main__.step\nmy.__main__.x", command);
  };
  EXPECT_EQ(named({"python3", "-u", "dir/two.py", "x.py"}), "two.*\nstep=two.step\nmy.__main__.x");
  EXPECT_EQ(named({"python3", "-m", "pkg.tool", "x.py"}),
            "pkg.tool.*\nstep=pkg.tool.step\nmy.__main__.x");
  EXPECT_EQ(named({"torchrun", "train.py"}), "train.*\nstep=train.step\nmy.__main__.x");
  EXPECT_EQ(named({"./server"}), "__main__.*\nstep=__main__.step\nmy.__main__.x");
}

TEST(Functions, APatternThatMatchesNothingIsNamed) {
  model::Session session;
  session.cpu.frames.push_back({model::FrameKind::kPython,
                                session.strings.intern("work"),
                                session.strings.intern("/home/me/two.py")});
  const Words command{"python3", "two.py"};
  EXPECT_EQ(unmatched_functions({"two.*", "__main__.work", "w=two.w*"}, command, session), "");
  EXPECT_EQ(unmatched_functions({"nosuch.*", "two.work", "x=two.play"}, command, session),
            "--functions 'nosuch.*', 'x=two.play' matched no Python function that was seen; those "
            "of the script are "
            "'two.*' or '__main__.*'");
  EXPECT_EQ(unmatched_functions({"nosuch.*"}, Words{"./server"}, {}),
            "--functions 'nosuch.*' matched no Python function that was seen; a pattern is "
            "FILE.FUNCTION, as in "
            "'train.*' of train.py");
}

// The library in the program saw more functions than were sampled.
TEST(Functions, WithGpuWorkARegionMayBeOfAPattern) {
  model::Session session;
  session.launches.emplace_back();
  session.ranges.emplace_back().name = session.strings.intern("Engine.step");
  EXPECT_EQ(unmatched_functions({"my.engine.Engine.step", "my.*", "Engine.step=x"}, {}, session),
            "");
  EXPECT_EQ(unmatched_functions({"a|Engine.step=x@1.mode"}, {}, session, "--phases"), "");
  EXPECT_NE(unmatched_functions({"a|Engine=x"}, {}, session, "--phases"), "");
  EXPECT_NE(unmatched_functions({"my.engine.Engine.stop"}, {}, session), "");
}

}  // namespace engine_test
}  // namespace rangescope::profile
