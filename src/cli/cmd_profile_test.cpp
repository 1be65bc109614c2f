// `profile` and `attach`: what they refuse before anything runs.
#include "cli/command_line_test.hpp"
#include "wire/names.hpp"

namespace rangescope::cli {
namespace cmd_profile_test {

using namespace command_line_test;

/// Why `rangescope profile WORDS -- ./app` is a wrong command line. The program does not exist:
/// where the words were right, the code would be 66.
std::string refusal_of(Words words) {
  words.insert(words.end(), {"--", "./app"});
  const Answer answer = answer_of(make_profile, words);
  EXPECT_EQ(answer.code, 64) << testing::PrintToString(words) << answer.err;
  return answer.err;
}

class Profile : public InAFolder {};

TEST_F(Profile, NeedsAProgram) {
  const Answer answer = answer_of(make_profile, {});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "there is no program to run")) << answer.err;
  EXPECT_TRUE(has(answer.err, "rangescope profile -- python3 train.py")) << answer.err;
}

TEST_F(Profile, TheProgramMayBeInTheConfiguration) {
  const Answer answer =
      answer_of(make_profile, {"workload.command=[./app, fast]", "--repeat", "0"});
  EXPECT_FALSE(has(answer.err, "there is no program")) << answer.err;
  EXPECT_TRUE(has(answer.err, "'0' is not a number of runs")) << answer.err;
}

TEST_F(Profile, IsRepeated1To1000TimesOrAsOftenAsNeeded) {
  for (const char* count : {"0", "1001", "-1", "often", "2.5", ""}) {
    const std::string refusal = refusal_of({std::string("--repeat=") + count});
    EXPECT_TRUE(has(refusal, "--repeat: ")) << refusal;
  }
  EXPECT_TRUE(has(refusal_of({"--repeat", "1001"}), "Write 1 to 1000, or auto"));
  for (const char* count : {"1000", "auto"})
    EXPECT_TRUE(has(refusal_of({"--repeat", count, "--watch"}), "cannot be watched")) << count;
}

TEST_F(Profile, ARepeatedProgramIsNotWatchedWhicheverOptionAsks) {
  EXPECT_TRUE(has(refusal_of({"--repeat", "5", "--watch"}), "--repeat, --watch: "));
  EXPECT_TRUE(has(refusal_of({"--repeat", "5", "--watch=true"}), "--repeat, --watch: "));
  EXPECT_TRUE(
      has(refusal_of({"--repeat", "5", "--watch-every", "2s"}), "--repeat, --watch-every: "));
  EXPECT_TRUE(has(refusal_of({"--repeat", "auto", "--watch", "--openmetrics", "9400"}),
                  "--repeat, --openmetrics: "));
}

TEST_F(Profile, AFormatIsOneOfReports) {
  EXPECT_TRUE(has(refusal_of({"-f", "jsno"}), "did you mean 'json'"));
  EXPECT_TRUE(has(refusal_of({"-f", "chrome"}), "-f perfetto")) << "an earlier version had it";
}

TEST_F(Profile, AColumnIsAValueOfReports) {
  EXPECT_TRUE(has(refusal_of({"--columns", "wall_ns.medain"}), "wall_ns.median"));
  EXPECT_TRUE(has(refusal_of({"--sort", "wall_ns.medain"}), "wall_ns.median"));
}

TEST_F(Profile, ABinaryReportNeedsAFile) {
  EXPECT_TRUE(has(refusal_of({"-f", "perfetto", "--dry-run"}), "Name a file: -o report.pftrace"));
}

TEST_F(Profile, ExpressionsAreReadBeforeTheProgramRuns) {
  EXPECT_TRUE(has(refusal_of({"--flops", "decode=many"}), "--flops"));
  EXPECT_TRUE(has(refusal_of({"--window", "step"}), "--window"));
  EXPECT_TRUE(has(refusal_of({"--when", "step is slow"}), "--when"));
  EXPECT_TRUE(has(refusal_of({"--cpu-counters", "no-such-event"}), "--cpu-counters"));
}

TEST_F(Profile, ALengthOfAWindowHasAUnitAndAFloor) {
  EXPECT_TRUE(has(refusal_of({"--for", "0s"}), "--for: '0s' is not a time from 1.000 ms to "));
  EXPECT_TRUE(has(refusal_of({"--for", "10 parsecs"}), "is not a time"));
  EXPECT_TRUE(has(refusal_of({"--keep-last", "999ms"}), "is not a time from 1.000 s to "));
  EXPECT_TRUE(has(refusal_of({"--watch-every", "99ms"}), "is not a time from 100.0 ms to "));
}

TEST_F(Profile, ReportsGoWhereTheyCanBeWritten) {
  const Answer answer = answer_of(make_profile, {"-o", "missing/report.json", "--", "./app"});
  EXPECT_EQ(answer.code, 74);
  EXPECT_TRUE(has(answer.err, "mkdir -p ")) << answer.err;
}

TEST_F(Profile, OfAnotherToolsWordsGetsOurs) {
  EXPECT_TRUE(has(refusal_of({"--duration", "5"}), "Write --for 5s"));
  EXPECT_TRUE(has(refusal_of({"-t", "cuda,nvtx"}), "always recorded: leave it out"));
  EXPECT_TRUE(has(refusal_of({"--overhead"}), "--after 30s --for 10s")) << "an earlier version";
}

/// The plan that `profile --dry-run WORDS` prints, with a library that is not loaded.
class DryRun : public InAFolder {
 protected:
  DryRun() {
    ::setenv("RANGESCOPE_INJECT", write("inject.so", "never loaded").c_str(), 1);
    write_program("python3");
    write_program("app");
  }
  static std::string plan_of(Words words) {
    words.insert(words.begin(), "--dry-run");
    const Answer answer = answer_of(make_profile, words);
    EXPECT_EQ(answer.code, 0) << answer.err;
    return answer.out + answer.err;
  }
};

TEST_F(DryRun, MakesNoRun) {
  EXPECT_TRUE(has(plan_of({"./app", "7"}), " ./app 7\n"));
  EXPECT_FALSE(std::filesystem::exists("rangescope-runs"));
}

TEST_F(DryRun, AScriptOfPythonIsRunByPython) {
  write("train.py", "print(1)\n");
  EXPECT_TRUE(has(plan_of({"train.py", "7"}), " python3 train.py 7\n"));
  ::setenv("RANGESCOPE_PYTHON", "./app", 1);
  EXPECT_TRUE(has(plan_of({"train.py", "7"}), " ./app train.py 7\n"));
}

TEST_F(DryRun, AScriptThatIsAProgramIsRunAsItIs) {
  write_program("train.py");
  EXPECT_TRUE(has(plan_of({"./train.py", "7"}), " ./train.py 7\n"));
  EXPECT_FALSE(has(plan_of({"./train.py", "7"}), "python3"));
}

TEST_F(DryRun, AProgramThatIsNotOnPathIs66) {
  const Answer answer = answer_of(make_profile, {"--dry-run", "missing"});
  EXPECT_EQ(answer.code, 66);
  EXPECT_TRUE(has(answer.err, "there is no program 'missing' on PATH")) << answer.err;
}

TEST_F(DryRun, OptionsAndKeysReachTheProgramsEnvironment) {
  const std::string modules = std::string(wire::kModules) + "=3 ";
  EXPECT_TRUE(has(plan_of({"--modules", "3", "./app"}), modules));
  EXPECT_TRUE(has(plan_of({"pipeline.native.modules=3", "./app"}), modules));
  EXPECT_TRUE(has(plan_of({"workload.env.STEPS=9", "./app"}), "STEPS=9 "));
  EXPECT_TRUE(has(plan_of({"--run-dir", "here", "./app"}), (folder() / "here").string()));
}

class Attach : public InAFolder {};

std::string refusal_to_attach(const Words& words) {
  const Answer answer = answer_of(make_attach, words);
  EXPECT_EQ(answer.code, 64) << testing::PrintToString(words) << answer.err;
  return answer.err;
}

TEST_F(Attach, TakesTheNumberOfAProcess) {
  for (const char* process : {"python", "0", "1073741825", "12x"})
    EXPECT_TRUE(has(refusal_to_attach({process}), "is not a process id")) << process;
  EXPECT_TRUE(has(refusal_to_attach({}), "missing: pid"));
}

TEST_F(Attach, WithoutTheCpuThereMustBeTheGpu) {
  for (const Words& gpu : {Words{}, Words{"--gpu", "auto"}, Words{"--gpu", "off"}}) {
    Words words{"4711", "--cpu", "off"};
    words.insert(words.end(), gpu.begin(), gpu.end());
    EXPECT_TRUE(has(refusal_to_attach(words), "Leave out --cpu off, or add --gpu on"));
  }
}

TEST_F(Attach, DoesNotWatchItself) {
  EXPECT_TRUE(has(refusal_to_attach({std::to_string(::getpid())}), "is rangescope itself"));
}

TEST_F(Attach, HasOnlyKeysThatFitARunningProcess) {
  EXPECT_TRUE(has(refusal_to_attach({"4711", "--ncu"}), "unknown option '--ncu'"));
  EXPECT_TRUE(has(refusal_to_attach({"4711", "--warmup", "3"}), "unknown option '--warmup'"));
}

}  // namespace cmd_profile_test
}  // namespace rangescope::cli
