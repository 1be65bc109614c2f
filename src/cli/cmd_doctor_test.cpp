// `doctor`: whether its words are a log, a command line or a program, and which line of a log was
// run.
#include <nlohmann/json.hpp>

#include <algorithm>

#include "cli/command_line_test.hpp"

namespace rangescope::cli {
namespace cmd_doctor_test {

using namespace command_line_test;

constexpr const char* kNotPermitted =
    "==PROF== Connected to process 12 (/app)\n"
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
    "Performance Counters on the target device 0.\n";

class Doctor : public InAFolder {
 protected:
  static std::string refusal_of(const Words& words) {
    const Answer answer = answer_of(make_doctor, words);
    EXPECT_EQ(answer.code, 64) << testing::PrintToString(words) << answer.err;
    return answer.err;
  }
  /// The doctor's JSON about a log.
  nlohmann::json about_log(const std::string& log, const Words& words = {}) const {
    write("run.log", log);
    Words line{"--json", "run.log"};
    line.insert(line.end(), words.begin(), words.end());
    return nlohmann::json::parse(answer_of(make_doctor, line).out);
  }
  /// Was a command line found in the log and checked?
  bool has_command(const std::string& line) const {
    const nlohmann::json answer = about_log(line + "\n" + kNotPermitted);
    const nlohmann::json& findings = answer.at("findings");
    return std::any_of(findings.begin(), findings.end(), [](const nlohmann::json& finding) {
      return finding.at("id") == "command.version";
    });
  }
};

TEST_F(Doctor, AMessageInALogGivesTheExitCode) {
  write("run.log", kNotPermitted);
  const Answer answer = answer_of(make_doctor, {"run.log"});
  EXPECT_EQ(answer.code, 77) << answer.err;
  EXPECT_TRUE(has(answer.out, "1 failure, 0 warnings")) << answer.out;
}

TEST_F(Doctor, ALogIsAnsweredAsJson) {
  const nlohmann::json answer = about_log(kNotPermitted);
  EXPECT_EQ(answer.at("schema"), "rangescope.doctor/1");
  EXPECT_EQ(answer.at("asked"), "log");
  EXPECT_EQ(answer.at("verdict"), "fail");
  EXPECT_EQ(answer.at("findings").at(0).at("id"), "ncu.permission");
  EXPECT_FALSE(answer.contains("command")) << "no command line is in it";
}

TEST_F(Doctor, ALogThatSaysNothingKnownIs65) {
  write("run.log", "all went well\n");
  const Answer answer = answer_of(make_doctor, {"run.log"});
  EXPECT_EQ(answer.code, 65);
  EXPECT_TRUE(has(answer.err, "no known message of nsys, ncu, CUDA or PyTorch")) << answer.err;
  EXPECT_EQ(answer_of(make_doctor, {"./missing.log"}).code, 66);
}

TEST_F(Doctor, TheLineThatRanIsFoundBehindAPrompt) {
  EXPECT_TRUE(has_command("ncu --set full ./app"));
  EXPECT_TRUE(has_command("user@host:~$ ncu --set full ./app"));
  EXPECT_TRUE(has_command("root@host:/w# nsys profile -o x python3 train.py"));
  EXPECT_TRUE(has_command("+ ncu --set full ./app"));
  EXPECT_TRUE(has_command("sudo ncu --set full ./app"));
}

TEST_F(Doctor, ProseAboutAToolIsNoCommand) {
  EXPECT_FALSE(has_command("ncu command failed"));
  EXPECT_FALSE(has_command("ncu failed on this node."));
  EXPECT_FALSE(has_command("we started ncu --set full ./app"));
  EXPECT_FALSE(has_command("==PROF== ncu --set full ./app"));
}

TEST_F(Doctor, ALineOfTheUserGoesBeforeThatOfTheLog) {
  const nlohmann::json answer = about_log("no command is here\n" + std::string(kNotPermitted),
                                          {"--explain", "ncu --set full ./app"});
  EXPECT_EQ(answer.at("findings").at(0).at("id"), "ncu.permission") << "what the log says is first";
  EXPECT_EQ(answer.at("findings").at(1).at("id"), "command.version");
}

TEST_F(Doctor, TheLineBesidesALogMayHaveItsProgramBehindDashes) {
  for (const Words& line : {Words{"--explain", "ncu --set full -- ./app 7"},
                            Words{"--explain", "ncu", "--set", "full", "--", "./app", "7"},
                            Words{"--explain", "--", "ncu", "--set", "full", "--", "./app", "7"}}) {
    EXPECT_EQ(about_log(kNotPermitted, line).at("command"), "ncu --set full -- ./app 7")
        << testing::PrintToString(line);
  }
}

TEST_F(Doctor, ALogIsAloneOrHasACommandLine) {
  write("run.log", kNotPermitted);
  EXPECT_TRUE(has(refusal_of({"run.log", "other.log"}), "a log and 'other.log'"));
  EXPECT_TRUE(has(refusal_of({"run.log", "--", "./app"}), "a log and '--'"));
  EXPECT_TRUE(has(refusal_of({"run.log", "--explain"}), "there is no command line to explain"));
}

TEST_F(Doctor, AWordThatIsNoFileIsUnexpected) {
  EXPECT_TRUE(has(refusal_of({"frobnicate"}), "unexpected argument 'frobnicate'"));
  EXPECT_TRUE(has(refusal_of({"--jsno"}), "did you mean '--json'"));
}

TEST_F(Doctor, RangesAreOfAProgram) {
  EXPECT_TRUE(has(refusal_of({"--include", "decode/"}), "no program was given"));
  EXPECT_TRUE(has(refusal_of({"--kernel", "gemm"}), "no program was given"));
}

TEST_F(Doctor, ExplainNeedsOneCommandLine) {
  EXPECT_TRUE(has(refusal_of({"--explain"}), "there is no command line to explain"));
  EXPECT_TRUE(has(refusal_of({"--explain", "ncu --set full ./app", "--json"}),
                  "Put options of the doctor before --explain"));
  EXPECT_EQ(answer_of(make_doctor, {"--explain", "gdb ./app"}).code, 64);
}

TEST_F(Doctor, ALineInQuotesAndItsWordsAreTheSame) {
  const Answer quoted = answer_of(make_doctor, {"--json", "--explain", "ncu --set ful ./app"});
  const Answer words =
      answer_of(make_doctor, {"--json", "--explain", "ncu", "--set", "ful", "./app"});
  EXPECT_EQ(nlohmann::json::parse(quoted.out), nlohmann::json::parse(words.out));
  EXPECT_EQ(nlohmann::json::parse(quoted.out).at("asked"), "command");
  EXPECT_EQ(quoted.code, words.code);
}

TEST_F(Doctor, TheCatalogueOfCausesNeedsNothing) {
  const Answer answer = answer_of(make_doctor, {"--causes"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_TRUE(answer.out.starts_with("# Causes\n"));
}

}  // namespace cmd_doctor_test
}  // namespace rangescope::cli
