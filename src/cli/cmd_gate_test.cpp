// `gate` and `compare`: what they refuse, what they take for a side, and their exit codes.
#include <nlohmann/json.hpp>

#include "cli/command_line_test.hpp"
#include "runs/baselines.hpp"

namespace rangescope::cli {
namespace cmd_gate_test {

using namespace command_line_test;
namespace fs = std::filesystem;

/// A run of ./app on an H100 whose range `range` took `median_ns`.
model::Digest run_of(double median_ns, const std::string& range = "decode") {
  model::Digest run;
  run.run.command = {"./app"};
  run.run.duration_ns = 1e9;
  run.devices = {"NVIDIA H100 80GB HBM3, 132 SMs"};
  model::DigestRegion& region = run.regions.emplace_back();
  region.path = {range};
  region.occurrences = 1;
  region.values["wall_ns.median"] = median_ns;
  return run;
}

/// Five runs that differ by at most 0.4 %.
std::vector<model::Digest> five_runs(double median_ns, const std::string& range = "decode") {
  std::vector<model::Digest> runs;
  for (int run = 0; run < 5; ++run)
    runs.push_back(run_of(median_ns * (1 + run / 1000.0), range));
  return runs;
}

class Gate : public InAFolder {
 protected:
  /// Keeps runs as the baseline `name` of rangescope-baselines.
  static fs::path keep(const std::string& name, const std::vector<model::Digest>& runs) {
    const runs::Baseline baseline{name, runs::machine_kind(runs.front()), 1, runs};
    return runs::save_baseline(fs::path(runs::kBaselineFolder), baseline).value();
  }
  /// The file `name` with runs: what a command takes as a side.
  static void write_side(const std::string& name, const std::vector<model::Digest>& runs) {
    const runs::Baseline baseline{name, runs::machine_kind(runs.front()), 1, runs};
    fs::rename(runs::save_baseline("saved", baseline).value(), name);
  }
  /// The answer of the gate for these runs against a baseline of 100 ms.
  static Answer judged(const std::vector<model::Digest>& now, Words words = {}) {
    keep("main", five_runs(100e6));
    write_side("now", now);
    words.insert(words.end(), {"--baseline", "main", "now"});
    return answer_of(make_gate, words);
  }
};

TEST_F(Gate, ARegressionIs81) {
  EXPECT_EQ(judged(five_runs(200e6)).code, 81);
}

TEST_F(Gate, NoChangeAndAnImprovementAre0) {
  EXPECT_EQ(judged(five_runs(100.01e6)).code, 0);
  EXPECT_EQ(judged(five_runs(50e6)).code, 0);
}

TEST_F(Gate, TheLimitIsAShareOrAPercentage) {
  EXPECT_EQ(judged(five_runs(110e6), {"--max-regression", "20%"}).code, 0);
  EXPECT_EQ(judged(five_runs(110e6), {"--max-regression", "0.2"}).code, 0);
  EXPECT_EQ(judged(five_runs(110e6), {"--max-regression", "5%"}).code, 81);
  const Answer answer = judged(five_runs(110e6), {"--max-regression", "much"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "Write 5% or 0.05")) << answer.err;
}

// One run a side: how much runs vary is not known.
TEST_F(Gate, WhatCannotBeJudgedIs82) {
  const Answer answer = judged({run_of(101e6)});
  EXPECT_EQ(answer.code, 82);
  EXPECT_TRUE(has(answer.err, "no value could be judged")) << answer.err;
  EXPECT_TRUE(has(answer.err, "Repeat both sides: rangescope profile --repeat ")) << answer.err;
  EXPECT_TRUE(has(answer.err, " -- ./app")) << answer.err;
}

TEST_F(Gate, ARunOfAnotherMachineIsJudgedOnlyOnDemand) {
  std::vector<model::Digest> elsewhere = five_runs(100.01e6);
  for (model::Digest& run : elsewhere)
    run.devices = {"NVIDIA H200, 132 SMs"};
  const fs::path file = keep("main", five_runs(100e6));
  write_side("now", elsewhere);
  EXPECT_EQ(answer_of(make_gate, {"--baseline", "main", "now"}).code, 82);
  EXPECT_EQ(answer_of(make_gate, {"--baseline", file, "now"}).code, 82);
  EXPECT_EQ(answer_of(make_gate, {"--baseline", file, "--any-machine", "now"}).code, 0);
}

TEST_F(Gate, AProgramThatFailedIsNotJudged) {
  std::vector<model::Digest> failed = five_runs(100.01e6);
  for (model::Digest& run : failed)
    run.run.exit_code = 1;
  EXPECT_EQ(judged(failed).code, 82);
}

TEST_F(Gate, ARegionThatWasNamedMustBeThere) {
  EXPECT_EQ(judged(five_runs(100.01e6), {"--region", "decode"}).code, 0);
  EXPECT_EQ(judged(five_runs(100.01e6), {"--region", "prefill"}).code, 80);
}

TEST_F(Gate, ARenamedRegionIsTheSame) {
  EXPECT_EQ(judged(five_runs(200e6, "generate"), {"--rename", "decode=generate"}).code, 81);
  EXPECT_EQ(judged(five_runs(200e6), {"--rename", "decode"}).code, 64);
}

TEST_F(Gate, NeedsABaseline) {
  const Answer answer = answer_of(make_gate, {"my run"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "Write: rangescope gate --baseline main 'my run'")) << answer.err;
}

TEST_F(Gate, ABaselineThatIsMissingIs66WithTheNearestName) {
  keep("main", five_runs(100e6));
  write_side("now", five_runs(100e6));
  const Answer answer = answer_of(make_gate, {"--baseline", "mian", "now"});
  EXPECT_EQ(answer.code, 66);
  EXPECT_TRUE(has(answer.err, "did you mean 'main'?")) << answer.err;
}

TEST_F(Gate, AnySideMayBeTheBaseline) {
  write_side("before", five_runs(100e6));
  write_side("now", five_runs(200e6));
  EXPECT_EQ(answer_of(make_gate, {"--baseline", "before", "now"}).code, 81);
}

TEST_F(Gate, TheWordBehindJsonIsAFileOrTheRun) {
  const Answer run_behind = judged(five_runs(200e6), {"--json"});
  EXPECT_EQ(run_behind.code, 81);
  EXPECT_EQ(nlohmann::json::parse(run_behind.out).at("verdict"), "regressed");
  const Answer file_behind = judged(five_runs(200e6), {"--json", "gate.json"});
  EXPECT_EQ(file_behind.code, 81);
  EXPECT_EQ(nlohmann::json::parse(text_of("gate.json")).at("schema"), "rangescope.gate/1");
  EXPECT_FALSE(file_behind.out.starts_with("{")) << "the table is for people";
  const Answer last = answer_of(make_gate, {"--baseline", "main", "--json", "now"});
  EXPECT_EQ(nlohmann::json::parse(last.out).at("verdict"), "regressed");
}

TEST_F(Gate, FilesForMachinesAreWrittenWhateverTheVerdict) {
  const Answer answer = judged(five_runs(200e6), {"--junit", "gate.xml", "--markdown", "gate.md"});
  EXPECT_EQ(answer.code, 81);
  EXPECT_TRUE(has(text_of("gate.xml"), "<testsuite")) << text_of("gate.xml");
  EXPECT_TRUE(has(text_of("gate.md"), "decode")) << text_of("gate.md");
}

TEST_F(Gate, AnOutputDoesNotReplaceAnInput) {
  const Answer answer = judged(five_runs(100e6), {"--markdown", "now"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "now")) << answer.err;
}

TEST_F(Gate, SavesABaselineUnderItsNameAndMachine) {
  write_side("now", five_runs(100e6));
  const Answer saved = answer_of(make_gate, {"--save", "--name", "v2", "--dir", "kept", "now"});
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(saved.out, "kept/v2.nvidia-h100-80gb-hbm3.json\n");
  EXPECT_EQ(saved.err, "");
  const Answer listed = answer_of(make_gate, {"--list", "--dir", "kept"});
  EXPECT_TRUE(has(listed.out, "v2")) << listed.out;
}

TEST_F(Gate, ABaselineOfFewRunsIsKeptWithAHint) {
  write_side("now", {run_of(100e6)});
  const Answer saved = answer_of(make_gate, {"--save", "now"});
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_TRUE(has(saved.err, "it holds 1 run; five or more show how much runs vary")) << saved.err;
}

TEST_F(Gate, AFailedProgramIsNoBaseline) {
  model::Digest failed = run_of(100e6);
  failed.run.exit_code = 3;
  write_side("now", {failed});
  EXPECT_EQ(answer_of(make_gate, {"--save", "now"}).code, 82);
}

TEST_F(Gate, AFolderWithoutBaselinesIsSaid) {
  const Answer answer = answer_of(make_gate, {"--list"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_TRUE(has(answer.err, "no baselines in rangescope-baselines")) << answer.err;
}

class Compare : public Gate {};

/// Why `compare` refuses the words, as a wrong command line.
std::string refusal_of(const Words& words) {
  const Answer answer = answer_of(make_compare, words);
  EXPECT_EQ(answer.code, 64) << answer.err;
  return answer.err;
}

TEST_F(Compare, TakesTwoSides) {
  EXPECT_TRUE(has(refusal_of({}), "missing: run"));
  EXPECT_TRUE(has(refusal_of({"a"}), "a comparison takes two sides"));
}

TEST_F(Compare, CommandsAreMeasuredOnlyWithMeasure) {
  EXPECT_TRUE(has(refusal_of({"a", "b", "--", "./app"}), "no program is run without --measure"));
  EXPECT_TRUE(has(refusal_of({"--measure", "2", "a"}),
                  "with --measure, commands are compared instead of runs"));
}

TEST_F(Compare, MeasureTakesTwoCommandsOrMore) {
  for (const Words& commands : {Words{"./app"},
                                Words{"./app", "::"},
                                Words{"::", "./app"},
                                Words{"./app", "::", "::", "./app"},
                                Words{}}) {
    Words words{"--measure", "2", "--"};
    words.insert(words.end(), commands.begin(), commands.end());
    EXPECT_TRUE(has(refusal_of(words), "--measure takes two commands or more"))
        << testing::PrintToString(words);
  }
}

TEST_F(Compare, TheLevelOfSignificanceIsBelowOneHalf) {
  EXPECT_TRUE(has(refusal_of({"--alpha", "0.6", "a", "b"}), "'0.6' is out of range"));
  EXPECT_TRUE(has(refusal_of({"--alpha", "0", "a", "b"}), "'0' is out of range"));
}

TEST_F(Compare, AFormatOfReportsIsNotOneOfComparisons) {
  EXPECT_TRUE(has(refusal_of({"a", "b", "-f", "perfetto"}), "perfetto"));
  EXPECT_TRUE(has(refusal_of({"a", "b", "-o", "x.pftrace"}), "'.pftrace'"));
}

TEST_F(Compare, TheFileExtensionChoosesTheFormat) {
  write_side("before", five_runs(100e6));
  write_side("now", five_runs(200e6));
  const Answer answer = answer_of(make_compare, {"before", "now", "-o", "difference.json"});
  EXPECT_EQ(answer.code, 0) << "a regression is the gate's matter: " << answer.err;
  EXPECT_EQ(nlohmann::json::parse(text_of("difference.json")).at("schema"), "rangescope.compare/1");
}

TEST_F(Compare, ASideThatDoesNotExistIs66) {
  write_side("before", five_runs(100e6));
  EXPECT_EQ(answer_of(make_compare, {"before", "nothing"}).code, 66);
}

TEST_F(Compare, SidesWithNothingInCommonAre82) {
  model::Digest other = run_of(1, "prefill");
  other.regions.front().values = {{"gpu.busy_ns", 7}};
  write_side("before", {run_of(100e6)});
  write_side("now", {other});
  EXPECT_EQ(answer_of(make_compare, {"before", "now"}).code, 82);
}

}  // namespace cmd_gate_test
}  // namespace rangescope::cli
