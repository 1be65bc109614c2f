#include "cli/app.hpp"

#include <new>
#include <stdexcept>

#include "base/log.hpp"
#include "cli/command_line_test.hpp"

namespace rangescope::cli {
namespace app_test {

using namespace command_line_test;

/// What a command that takes a program was given.
struct Given {
  Answer answer;
  std::size_t top = 0;
  Words overrides, program, recorded;
};

/// `rangescope profile WORDS`, of a command with `--top N`, overrides and a program.
Given given_to_a_launcher(const Words& words) {
  Given given;
  const auto declare = [&given](const Arguments& app) {
    app.add_option("overrides", given.overrides);
    app.add_count("--top", given.top);
  };
  const auto run = [&given](const Words& program) {
    given.program = program;
    given.recorded = arguments();
    return 0;
  };
  given.answer = answer_of(std::make_unique<DeclaredCommand>("profile", true, declare, run), words);
  return given;
}

/// The answer of a command named `profile` that does nothing but `run`.
Answer answer_to_running(const std::function<base::Result<int>()>& run, Words words = {}) {
  return answer_of(std::make_unique<DeclaredCommand>(
                       "profile", false, nullptr, [&run](const Words&) { return run(); }),
                   std::move(words));
}

class Program : public InAFolder {};

TEST_F(Program, BeginsAtTheFirstWordThatIsNoOptionValueOrOverride) {
  const Given given = given_to_a_launcher({"--top", "3", "run.keep=5", "./app", "--top", "7"});
  EXPECT_EQ(given.top, 3u);
  EXPECT_EQ(given.overrides, (Words{"run.keep=5"}));
  EXPECT_EQ(given.program, (Words{"./app", "--top", "7"}));
}

TEST_F(Program, IsWhatFollowsTheSeparator) {
  const Given given = given_to_a_launcher({"--top=3", "--", "run.keep=5", "--top", "7"});
  EXPECT_EQ(given.top, 3u);
  EXPECT_EQ(given.program, (Words{"run.keep=5", "--top", "7"}));
}

TEST_F(Program, MayHaveASeparatorOfItsOwn) {
  EXPECT_EQ(given_to_a_launcher({"cargo", "run", "--", "x"}).program,
            (Words{"cargo", "run", "--", "x"}));
  EXPECT_EQ(given_to_a_launcher({"--", "cargo", "--", "x"}).program, (Words{"cargo", "--", "x"}));
}

// `profile decode -- ./app`: decode was meant for an option.
TEST_F(Program, IsNotAWordThatCannotRunBeforeOneThatCan) {
  write_program("app");
  const Given given = given_to_a_launcher({"decode", "--", "./app", "7"});
  EXPECT_EQ(given.overrides, (Words{"decode"}));
  EXPECT_EQ(given.program, (Words{"./app", "7"}));
  write_program("decode");
  EXPECT_EQ(given_to_a_launcher({"decode", "--", "./app"}).program,
            (Words{"decode", "--", "./app"}));
}

TEST_F(Program, IsRecordedBehindASeparatorHoweverItWasGiven) {
  const Words recorded{"profile", "--top", "3", "--", "./app", "7"};
  EXPECT_EQ(given_to_a_launcher({"--top", "3", "--", "./app", "7"}).recorded, recorded);
  EXPECT_EQ(given_to_a_launcher({"--top", "3", "./app", "7"}).recorded, recorded);
}

TEST_F(Program, IsRefusedByACommandThatRunsNone) {
  const Answer answer = answer_to_running([] { return 0; }, {"--", "./app"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "rangescope profile runs no program")) << answer.err;
}

TEST(ExitCode, IsTheCommands) {
  EXPECT_EQ(answer_to_running([] { return 7; }).code, 7);
}

TEST(ExitCode, IsThatOfTheFailure) {
  const Answer answer = answer_to_running(
      [] { return base::fail(base::Code::kNoInput, "it is gone", "run-1", "Name another"); });
  EXPECT_EQ(answer.code, 66);
  EXPECT_EQ(answer.err, "rangescope: error: run-1: it is gone\nrangescope: hint: Name another\n");
}

TEST(ExitCode, SaysThatWhatNoCommandExpectsIsABug) {
  const Answer answer =
      answer_to_running([]() -> base::Result<int> { throw std::runtime_error("lost"); });
  EXPECT_EQ(answer.code, 70);
  EXPECT_TRUE(has(answer.err, "a bug in rangescope: lost")) << answer.err;
}

TEST(ExitCode, SaysThatMemoryEndedInsteadOfABug) {
  const Answer answer = answer_to_running([]() -> base::Result<int> { throw std::bad_alloc(); });
  EXPECT_EQ(answer.code, 70);
  EXPECT_TRUE(has(answer.err, "out of memory")) << answer.err;
  EXPECT_FALSE(has(answer.err, "bug")) << answer.err;
}

/// The level of messages while a command runs with these words.
base::Level level_with(const Words& words) {
  base::Level level = base::Level::kError;
  (void)answer_to_running(
      [&level] {
        level = base::log_level();
        return 0;
      },
      words);
  (void)answer_to_running([] { return 0; });  // for the tests that follow
  return level;
}

TEST(Messages, AreMoreWithEachVAndFewerWithQ) {
  EXPECT_EQ(level_with({}), base::Level::kInfo);
  EXPECT_EQ(level_with({"-v"}), base::Level::kDetail);
  EXPECT_EQ(level_with({"-vv"}), base::Level::kDebug);
  EXPECT_EQ(level_with({"-q"}), base::Level::kWarning);
  EXPECT_EQ(level_with({"-q", "-vv"}), base::Level::kWarning) << "a script asked for silence";
}

const std::vector<std::unique_ptr<Subcommand>> kNoCommands;

std::string hint_for_command(const Words& words) {
  const Answer answer = answer_of(kNoCommands, words);
  EXPECT_EQ(answer.code, 64) << answer.err;
  const std::size_t hint = answer.err.find("hint: ");
  return hint == std::string::npos ? "" : answer.err.substr(hint + 6);
}

TEST(UnknownCommand, GetsTheNearestName) {
  EXPECT_EQ(hint_for_command({"reprot"}), "did you mean 'report'?\n");
}

TEST(UnknownCommand, OfAnotherToolGetsItsTranslation) {
  EXPECT_EQ(hint_for_command({"record", "-p", "4711"}), "Write: rangescope attach 4711\n");
}

TEST(UnknownCommand, OfAnEarlierVersionGetsItsReplacement) {
  EXPECT_TRUE(has(hint_for_command({"ncu", "x.ncu-rep"}), "ncu --import FILE"));
}

TEST(UnknownCommand, MayBeAProgram) {
  EXPECT_EQ(hint_for_command({"./my app"}),
            "To profile a program: rangescope profile -- './my app' ...; all commands: "
            "rangescope help\n");
}

TEST(UnknownCommand, IsNoOption) {
  EXPECT_EQ(hint_for_command({"--top", "3"}), "Options follow a command: rangescope help\n");
}

TEST(WithoutWords, TheCommandsAreListedAndTheLineIsWrong) {
  const Answer answer = answer_of(kNoCommands, {});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.out, "Usage: rangescope <command> [options]"));
}

TEST(UnknownOption, GetsTheNearestNameOfThatCommand) {
  const Answer answer = answer_of(make_report, {"--colums", "wall"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "unknown option '--colums'")) << answer.err;
  EXPECT_TRUE(has(answer.err, "did you mean '--columns'?")) << answer.err;
}

TEST(UnknownOption, OfOneLetterIsNearToNone) {
  const Answer answer = answer_of(make_report, {"-z"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "hint: See rangescope help report")) << answer.err;
}

TEST(UnknownOption, OfAnotherToolGetsOursWithTheValue) {
  EXPECT_TRUE(has(answer_of(make_report, {"-n", "7"}).err, "A number of rows is --top 7"));
}

TEST(UnknownOption, DoesNotKeepFromHelp) {
  const Answer answer = answer_of(make_report, {"--no-such-option", "--help"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_TRUE(has(answer.out, "Usage: rangescope report")) << answer.out;
}

TEST(Verb, ThatIsUnknownGetsTheNearest) {
  const Answer answer = answer_of(make_runs, {"prnue"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "there is no 'runs prnue'")) << answer.err;
  EXPECT_TRUE(has(answer.err, "did you mean 'prune'?")) << answer.err;
}

TEST(Verb, NearToNoneGetsAllOfThem) {
  EXPECT_TRUE(has(answer_of(make_runs, {"frobnicate"}).err,
                  "Write one of list, show, prune, verify, stats, import, push, history"));
}

TEST(Verb, OfAnEarlierVersionGetsItsReplacement) {
  EXPECT_TRUE(has(answer_of(make_runs, {"pack"}).err, "tar --zstd -cf RUN.tar.zst RUN"));
}

TEST(Verb, IsNamedWhereOneIsMissing) {
  const Answer answer = answer_of(make_metrics, {});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "missing: verb")) << answer.err;
  EXPECT_TRUE(has(answer.err, "Write one of list, show, search, plan, calibrate")) << answer.err;
}

TEST(Verb, HasAPageOfItsOwn) {
  const Answer answer = answer_of(make_runs, {"prune", "--help"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_TRUE(has(answer.out, "Usage: rangescope runs prune [options]")) << answer.out;
}

TEST(MissingArgument, IsNamedWithTheWholeLine) {
  const Answer answer = answer_of(make_query, {"run-1"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "missing: sql")) << answer.err;
  EXPECT_TRUE(has(answer.err, "Write: rangescope query [options] input sql")) << answer.err;
}

struct Output {
  std::string format, file;
};

/// What a command of this name with -f and -o takes from the words.
Output output_of(std::string_view command, const Words& words) {
  Output output;
  const auto declare = [&output](const Arguments& app) {
    app.add_option("-f,--format", output.format);
    app.add_option("-o,--output", output.file);
  };
  const Answer answer =
      answer_of(std::make_unique<DeclaredCommand>(command, false, declare, nullptr), words);
  EXPECT_EQ(answer.code, 0) << answer.err;
  return output;
}

TEST(EarlierOption, IsReadAsItsPresentName) {
  EXPECT_EQ(output_of("report", {"--to", "x.csv"}).file, "x.csv");
  EXPECT_EQ(output_of("report", {"--to=x.csv"}).file, "x.csv");
}

TEST(EarlierOption, MayHaveMeantAnotherThingInOneCommand) {
  const Output output = output_of("export", {"--to", "csv"});
  EXPECT_EQ(output.format, "csv");
  EXPECT_EQ(output.file, "");
}

}  // namespace app_test
}  // namespace rangescope::cli
