#include "cli/bind_config.hpp"

#include "cli/bind.hpp"
#include "cli/command_line_test.hpp"

namespace rangescope::cli {
namespace bind_config_test {

using namespace command_line_test;

struct Composed {
  Answer answer;
  config::Config config;
  ReportChoice report;  ///< options that the command declares itself
};

/// The configuration of `rangescope profile WORDS`; with `own_report` the command declares -f,
/// --top and the like itself, as `profile` does.
Composed composed(const Words& words, bool own_report = false) {
  Composed composed;
  ConfigArguments configuration;
  const auto declare = [&](const Arguments& app) {
    if (own_report)
      bind_report(app, composed.report);
    configuration.options(app);
  };
  const auto run = [&](const Words& program) -> base::Result<int> {
    composed.config = TRY(configuration.compose(program));
    TRY(configuration.apply(composed.config));
    return 0;
  };
  composed.answer =
      answer_of(std::make_unique<DeclaredCommand>("profile", true, declare, run), words);
  return composed;
}

config::Config config_of(const Words& words) {
  const Composed result = composed(words);
  EXPECT_EQ(result.answer.code, 0) << result.answer.err;
  return result.config;
}

/// The report's options once the configuration was applied to them.
report::Style style_of(const Words& words) {
  const Composed result = composed(words, true);
  EXPECT_EQ(result.answer.code, 0) << result.answer.err;
  return result.report.style;
}

Answer refusal_of(const Words& words) {
  return composed(words).answer;
}

class BindConfig : public InAFolder {};

TEST_F(BindConfig, TheLaterOfAFlagAndAnOverrideWins) {
  EXPECT_EQ(config_of({"--keep", "3", "run.keep=5"}).integer("run.keep"), 5);
  EXPECT_EQ(config_of({"run.keep=5", "--keep", "3"}).integer("run.keep"), 3);
  EXPECT_EQ(config_of({"--keep=3", "--keep=4"}).integer("run.keep"), 4);
}

TEST_F(BindConfig, EachValueKnowsItsArgument) {
  const config::Config config = config_of({"run.retries=2", "--keep", "3", "run.job=a"});
  EXPECT_EQ(config.origin("run.keep").source, config::Source::kFlag);
  EXPECT_EQ(config.origin("run.keep").name, "--keep");
  EXPECT_EQ(config.origin("run.keep").argument, 2);
  EXPECT_EQ(config.origin("run.job").source, config::Source::kOverride);
  EXPECT_EQ(config.origin("run.job").argument, 4);
}

TEST_F(BindConfig, AListGrowsWithEachOfItsFlags) {
  EXPECT_EQ(config_of({"--metrics", "flops,tensor", "--metrics", "memory"})
                .list("pipeline.native.metrics"),
            (Words{"flops", "tensor", "memory"}));
}

TEST_F(BindConfig, CommasInsidePatternsAndFormulasDoNotSplit) {
  EXPECT_EQ(config_of({"--kernel", "gemm<float, 4>"}).list("kernels.include"),
            (Words{"gemm<float, 4>"}));
  EXPECT_EQ(config_of({"--flops", "decode=transformer(params=7e9,layers=32)"}).list("report.flops"),
            (Words{"decode=transformer(params=7e9,layers=32)"}));
}

TEST_F(BindConfig, ASwitchHasAnOpposite) {
  EXPECT_FALSE(config_of({"--no-native"}).flag("pipeline.native.enable"));
  EXPECT_TRUE(config_of({"--no-native", "--native"}).flag("pipeline.native.enable"));
  EXPECT_EQ(config_of({"--no-native"}).origin("pipeline.native.enable").name, "--no-native");
}

TEST_F(BindConfig, AWrongFlagIsAWrongCommandLineAndAWrongOverrideAWrongConfiguration) {
  const Answer flag = refusal_of({"--keep", "0"});
  EXPECT_EQ(flag.code, 64);
  EXPECT_TRUE(has(flag.err, "--keep: ")) << flag.err;
  EXPECT_EQ(refusal_of({"run.keep=0"}).code, 78);
  EXPECT_EQ(refusal_of({"--timeout=-5"}).code, 64);
}

TEST_F(BindConfig, TheProgramsWordsAreTheCommandAndNothingElse) {
  const config::Config config =
      config_of({"run.keep=5", "--", "./app", "run.keep=7", "--keep", "9"});
  EXPECT_EQ(config.integer("run.keep"), 5);
  EXPECT_EQ(config.list("workload.command"), (Words{"./app", "run.keep=7", "--keep", "9"}));
}

TEST_F(BindConfig, AFreeWordThatIsNoOverrideIsRefused) {
  write_program("app");
  const Answer answer = refusal_of({"decode", "--", "./app"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "'decode' is neither an override nor an option")) << answer.err;
}

TEST_F(BindConfig, ANamedFileMustExist) {
  const Answer answer = refusal_of({"--config", "mine.yaml"});
  EXPECT_EQ(answer.code, 66);
  EXPECT_TRUE(has(answer.err, "there is no file mine.yaml")) << answer.err;
}

TEST_F(BindConfig, TheCommandLineGoesBeforeFilesAndALaterFileBeforeAnEarlier) {
  write("first.yaml", "run:\n  keep: 10\n  retries: 1\n  job: a\n");
  write("second.yaml", "run:\n  keep: 20\n  retries: 2\n");
  const config::Config config =
      config_of({"run.keep=30", "--config", "first.yaml", "--config", "second.yaml"});
  EXPECT_EQ(config.integer("run.keep"), 30);
  EXPECT_EQ(config.integer("run.retries"), 2);
  EXPECT_EQ(config.text("run.job"), "a");
}

TEST_F(BindConfig, TheProjectsFileCountsUnlessItIsLeftOut) {
  write("rangescope.yaml", "ranges:\n  every: 7\n");
  EXPECT_EQ(config_of({}).integer("ranges.every"), 7);
  EXPECT_EQ(config_of({"--no-project"}).integer("ranges.every"), 1);
}

TEST_F(BindConfig, AnUntrustedProjectSaysNotWhatIsRun) {
  write("rangescope.yaml", "workload:\n  command: [rm, -rf, x]\n");
  EXPECT_EQ(refusal_of({}).code, 77);
  EXPECT_EQ(refusal_of({"--no-project"}).code, 0);
}

TEST_F(BindConfig, ATrustedProjectSaysWhatIsRunUntilItIsChanged) {
  write("rangescope.yaml", "workload:\n  command: [./app]\n");
  EXPECT_EQ(answer_of(make_config, {"trust", "rangescope.yaml"}).code, 0);
  EXPECT_EQ(config_of({}).list("workload.command"), (Words{"./app"}));
  EXPECT_EQ(config_of({"--", "./other"}).list("workload.command"), (Words{"./other"}));
  write("rangescope.yaml", "workload:\n  command: [rm, -rf, x]\n");
  EXPECT_EQ(refusal_of({}).code, 77);
}

TEST_F(BindConfig, AGatedRecordingSwitchesNsysOn) {
  const Composed gated = composed({"pipeline.nsys.nvtx_capture=decode"});
  ASSERT_EQ(gated.answer.code, 0) << gated.answer.err;
  EXPECT_TRUE(gated.config.flag("pipeline.nsys.enable"));
  EXPECT_EQ(gated.config.origin("pipeline.nsys.enable").source, config::Source::kImplied);
  EXPECT_TRUE(
      has(gated.answer.err, "pipeline.nsys.nvtx_capture asks for a recording by Nsight Systems"))
      << gated.answer.err;
}

TEST_F(BindConfig, AGatedRecordingLeavesNsysOffWhereTheUserSaidSo) {
  const Composed gated = composed({"pipeline.nsys.nvtx_capture=decode", "--no-nsys"});
  ASSERT_EQ(gated.answer.code, 0) << gated.answer.err;
  EXPECT_FALSE(gated.config.flag("pipeline.nsys.enable"));
}

TEST_F(BindConfig, OptionsOfTheCommandTakeTheirKeysValue) {
  EXPECT_EQ(style_of({"report.top=7"}).top, 7u);
  EXPECT_TRUE(style_of({"report.explain=true"}).explain);
  EXPECT_EQ(style_of({"report.columns=[wall, gpu]"}).columns, (Words{"wall", "gpu"}));
}

TEST_F(BindConfig, OptionsOfTheCommandGoBeforeAFileButNotBeforeALaterOverride) {
  write("mine.yaml", "report:\n  top: 9\n");
  EXPECT_EQ(style_of({"--config", "mine.yaml"}).top, 9u);
  EXPECT_EQ(style_of({"--config", "mine.yaml", "--top", "3"}).top, 3u);
  EXPECT_EQ(style_of({"--top", "3", "report.top=7"}).top, 7u);
  EXPECT_EQ(style_of({"report.top=7", "--top", "3"}).top, 3u);
}

// The key is any whole number; the table has a narrowest width.
TEST_F(BindConfig, AValueThatTheOptionRefusesIsRefusedAtItsPlace) {
  const Answer answer = composed({"report.width=31"}, true).answer;
  EXPECT_EQ(answer.code, 78);
  EXPECT_TRUE(has(answer.err, "argument 1: report.width=31")) << answer.err;
  EXPECT_TRUE(has(answer.err, "Write 32 or more columns")) << answer.err;
}

}  // namespace bind_config_test
}  // namespace rangescope::cli
