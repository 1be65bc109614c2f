// `config`, `metrics`, `help` and `query`: verbs, what they show and refuse.
#include <nlohmann/json.hpp>

#include "cli/command_line_test.hpp"

namespace rangescope::cli {
namespace cmd_config_test {

using namespace command_line_test;

std::string refusal_of(MakeSubcommand* make, const Words& words) {
  const Answer answer = answer_of(make, words);
  EXPECT_EQ(answer.code, 64) << testing::PrintToString(words) << answer.err;
  return answer.err;
}

std::string output_of(MakeSubcommand* make, const Words& words) {
  const Answer answer = answer_of(make, words);
  EXPECT_EQ(answer.code, 0) << testing::PrintToString(words) << answer.err;
  return answer.out;
}

class Config : public InAFolder {};

TEST_F(Config, ShowsTheValueOfAKeyWithTheOverridesOfTheLine) {
  EXPECT_EQ(output_of(make_config, {"show", "run.keep", "run.keep=5"}), "5\n");
  EXPECT_EQ(output_of(make_config, {"run.keep=5", "show", "run.keep"}), "5\n");
  EXPECT_EQ(output_of(make_config, {"show", "run.dir"}), "null\n");
}

TEST_F(Config, ShowsEverythingWithoutAVerb) {
  EXPECT_EQ(output_of(make_config, {}), output_of(make_config, {"show"}));
  EXPECT_TRUE(has(output_of(make_config, {"run.keep=5"}), "keep: 5"));
}

TEST_F(Config, OriginsAreShownOnDemand) {
  const std::string shown = output_of(make_config, {"show", "run", "run.keep=5", "--origin"});
  EXPECT_TRUE(has(shown, "keep: 5  # argument 3: run.keep=5")) << shown;
  EXPECT_FALSE(has(output_of(make_config, {"show", "run", "run.keep=5"}), "#"));
}

TEST_F(Config, AKeyThatDoesNotExistIsAWrongConfiguration) {
  const Answer answer = answer_of(make_config, {"show", "run.kep"});
  EXPECT_EQ(answer.code, 78);
  EXPECT_TRUE(has(answer.err, "run.keep")) << answer.err;
}

TEST_F(Config, AVerbNearAnotherIsSuggested) {
  EXPECT_TRUE(has(refusal_of(make_config, {"shwo"}), "did you mean 'show'"));
  EXPECT_TRUE(has(refusal_of(make_config, {"frobnicate"}),
                  "It is show, explain, groups, validate, trust or init."));
}

TEST_F(Config, AVerbTakesAsManyWordsAsItNeeds) {
  EXPECT_TRUE(has(refusal_of(make_config, {"explain"}), "no key was named"));
  EXPECT_TRUE(has(refusal_of(make_config, {"trust"}), "no file was named"));
  EXPECT_TRUE(has(refusal_of(make_config, {"show", "run", "windows"}),
                  "'windows' is one argument too many"));
  EXPECT_TRUE(has(refusal_of(make_config, {"groups", "ncu"}), "'ncu' is one argument too many"));
  EXPECT_TRUE(has(refusal_of(make_config, {"validate", "my file.yaml"}),
                  "rangescope config validate --config 'my file.yaml'"));
}

TEST_F(Config, OnlyInitTakesAProgram) {
  EXPECT_TRUE(
      has(refusal_of(make_config, {"show", "--", "./app"}), "'./app' is not expected here"));
  EXPECT_TRUE(has(refusal_of(make_config, {"init", "./app"}), "rangescope config init -- ./app"));
  EXPECT_TRUE(has(refusal_of(make_config, {"init"}), "no program was given"));
}

TEST_F(Config, InitReplacesNoFileUnlessForced) {
  write("rangescope.yaml", "run:\n  keep: 3\n");
  EXPECT_TRUE(has(refusal_of(make_config, {"init", "--", "./app"}), "Add --force"));
  EXPECT_EQ(text_of("rangescope.yaml"), "run:\n  keep: 3\n");
}

TEST_F(Config, InitOfAProgramThatIsMissingWritesNothing) {
  ::setenv("RANGESCOPE_INJECT", write("inject.so", "never loaded").c_str(), 1);
  const Answer answer = answer_of(make_config, {"init", "--", "./app"});
  EXPECT_EQ(answer.code, 66) << answer.err;
  EXPECT_TRUE(has(answer.err, "rangescope doctor -- ./app")) << answer.err;
  EXPECT_EQ(text_of("rangescope.yaml"), "(no file)");
}

TEST_F(Config, ValidateNamesTheFilesOrTheMistake) {
  write("mine.yaml", "run:\n  keep: 3\n");
  EXPECT_TRUE(has(output_of(make_config, {"validate", "--config", "mine.yaml"}), "mine.yaml"));
  write("mine.yaml", "run:\n  keep: none\n");
  const Answer answer = answer_of(make_config, {"validate", "--config", "mine.yaml"});
  EXPECT_EQ(answer.code, 78);
  EXPECT_TRUE(has(answer.err, "mine.yaml:2:")) << answer.err;
}

TEST_F(Config, TheChosenOptionOfAGroupIsMarked) {
  write("conf/ncu/mine.yaml", "pipeline:\n  ncu:\n    enable: true\n");
  const std::string shown = output_of(make_config, {"groups", "--config-dir", "conf", "ncu=mine"});
  EXPECT_TRUE(has(shown, " mine*")) << shown;
  EXPECT_FALSE(has(output_of(make_config, {"groups", "--config-dir", "conf"}), " mine*"));
}

class Metrics : public InAFolder {};

TEST_F(Metrics, AGroupIsShownWithItsFormulas) {
  const auto group = nlohmann::json::parse(output_of(make_metrics, {"show", "memory", "--json"}));
  EXPECT_EQ(group.at("name"), "memory");
  EXPECT_FALSE(group.at("metrics").at(0).at("formula").get<std::string>().empty());
  EXPECT_TRUE(output_of(make_metrics, {"show", "memory"}).starts_with("memory: "));
}

TEST_F(Metrics, TheListHasEveryGroupOnce) {
  const auto groups = nlohmann::json::parse(output_of(make_metrics, {"list", "--json"}));
  const std::string page = output_of(make_metrics, {"list"});
  ASSERT_FALSE(groups.empty());
  for (const nlohmann::json& group : groups)
    EXPECT_TRUE(has("\n" + page, "\n" + group.at("name").get<std::string>() + " "));
}

TEST_F(Metrics, APlanNeedsMetricsOrSamples) {
  EXPECT_TRUE(has(refusal_of(make_metrics, {"plan"}), "Write --metrics roofline, or --sample"));
  EXPECT_TRUE(has(refusal_of(make_metrics, {"plan", "--metrics", "flops,,memory"}),
                  "an empty name in 'flops,,memory'"));
}

TEST_F(Metrics, APlanIsForOneTo1000Rounds) {
  EXPECT_TRUE(has(refusal_of(make_metrics, {"plan", "--rounds", "0"}), "'0' is out of range"));
  EXPECT_TRUE(has(refusal_of(make_metrics, {"plan", "--rounds", "1001"}), "Write a number from 1"));
  EXPECT_TRUE(has(refusal_of(make_metrics, {"plan", "-f", "csv"}), "is not one of its values"));
}

TEST_F(Metrics, OfNcuThereAreSetsAndSections) {
  EXPECT_TRUE(has(refusal_of(make_metrics, {"list", "section"}), "did you mean 'sections'"));
}

class Help : public InAFolder {};

TEST_F(Help, ATopicNearAnotherIsSuggested) {
  EXPECT_TRUE(has(refusal_of(make_help, {"reprot"}), "did you mean 'report'"));
  EXPECT_TRUE(has(refusal_of(make_help, {"columsn"}), "did you mean 'columns'"));
  EXPECT_TRUE(has(refusal_of(make_help, {"frobnicate"}), "Name a command, columns or losses"));
}

TEST_F(Help, AVerbHasAPage) {
  EXPECT_TRUE(has(output_of(make_help, {"runs", "prune"}), "Usage: rangescope runs prune"));
  EXPECT_TRUE(has(refusal_of(make_help, {"runs", "prnue"}), "did you mean 'prune'"));
  EXPECT_TRUE(has(refusal_of(make_help, {"report", "prune"}), "See rangescope help report"));
}

TEST_F(Help, ManualPagesAreOneForEachCommandAndOneForAll) {
  EXPECT_EQ(output_of(make_help, {"--man-dir", "man/man1"}), "");
  EXPECT_TRUE(text_of("man/man1/rangescope.1").starts_with(".TH RANGESCOPE 1 "));
  EXPECT_TRUE(text_of("man/man1/rangescope-runs.1").starts_with(".TH RANGESCOPE\\-RUNS 1 "));
  EXPECT_EQ(text_of("man/man1/rangescope-runs.1"), output_of(make_help, {"runs", "--man"}));
}

TEST_F(Help, ColumnsAndLossesAreTopics) {
  EXPECT_TRUE(has(output_of(make_help, {"columns"}), "\n  wall_ns.median "));
  EXPECT_NE(output_of(make_help, {"losses"}), "");
}

class Query : public InAFolder {};

TEST_F(Query, TakesAnInputASelectAndATime) {
  EXPECT_TRUE(has(refusal_of(make_query, {"run-1"}), "missing: sql"));
  EXPECT_TRUE(has(refusal_of(make_query, {"a", "select 1", "--timeout", "0s"}), "is not a time"));
  EXPECT_TRUE(
      has(refusal_of(make_query, {"a", "select 1", "-f", "xml"}), "is not one of its values"));
  EXPECT_EQ(answer_of(make_query, {"nothing.sqlite", "select 1"}).code, 66);
}

}  // namespace cmd_config_test
}  // namespace rangescope::cli
