#include "cli/bind.hpp"

#include "cli/command_line_test.hpp"
#include "wire/names.hpp"

namespace rangescope::cli {
namespace bind_test {

using namespace command_line_test;

/// The answer of `rangescope profile` with no options but those that a test declares.
Answer parse(const DeclaredCommand::Declare& declare, const Words& words) {
  return answer_of(std::make_unique<DeclaredCommand>("profile", false, declare, nullptr), words);
}

/// The options that `bind` fills from these words, which must be right.
template <class Options>
Options options_from(void (*bind)(const Arguments&, Options&), const Words& words) {
  Options options;
  const Answer parsed = parse([&](const Arguments& app) { bind(app, options); }, words);
  EXPECT_EQ(parsed.code, 0) << parsed.err;
  return options;
}

/// What is said where `bind` refuses these words with the code of a wrong command line.
template <class Options>
std::string refusal(void (*bind)(const Arguments&, Options&), const Words& words) {
  Options options;
  const Answer parsed = parse([&](const Arguments& app) { bind(app, options); }, words);
  EXPECT_EQ(parsed.code, 64) << testing::PrintToString(words);
  return parsed.err;
}

std::string format_of(const Words& words) {
  return options_from(bind_report, words).format;
}

TEST(BindReport, TheFileExtensionChoosesTheFormat) {
  EXPECT_EQ(format_of({"-o", "report.json"}), "json");
  EXPECT_EQ(format_of({"-o", "regions.csv"}), "csv");
  EXPECT_EQ(format_of({"-o", "timeline.pftrace"}), "perfetto");
}

TEST(BindReport, TheLongestExtensionCounts) {
  EXPECT_EQ(format_of({"-o", "x.speedscope.json"}), "speedscope");
  EXPECT_EQ(format_of({"-o", "x.pb.gz"}), "pprof");
}

TEST(BindReport, TheNameOfAFormatIsAnExtensionToo) {
  EXPECT_EQ(format_of({"-o", "x.perfetto"}), "perfetto");
}

TEST(BindReport, ANamedFormatGoesBeforeTheExtension) {
  EXPECT_EQ(format_of({"-f", "csv", "-o", "x.json"}), "csv");
  EXPECT_EQ(format_of({"--json", "-o", "x.csv"}), "json");
}

TEST(BindReport, ALogAndANameWithoutExtensionAreTables) {
  for (const char* file : {"out", "run.log", "run.out", "report.v2", "-", "/dev/fd.x"})
    EXPECT_EQ(format_of({"-o", file}), report::kDefaultFormat) << file;
}

TEST(BindReport, AnExtensionOfNoFormatIsRefused) {
  EXPECT_TRUE(
      has(refusal(bind_report, {"-o", "x.foo"}), "no format has the file extension '.foo'"));
  EXPECT_TRUE(has(refusal(bind_report, {"-o", "x.gz"}), "no format has the file extension '.gz'"));
}

TEST(BindReport, FilesOfOfficeProgramsAreRefusedWhateverTheFormat) {
  EXPECT_TRUE(has(refusal(bind_report, {"-o", "x.pdf"}), "Write -o report.html"));
  EXPECT_TRUE(has(refusal(bind_report, {"-o", "x.xlsx"}), "Write -o report.csv"));
  EXPECT_TRUE(
      has(refusal(bind_report, {"-f", "json", "-o", "x.pdf"}), "there is no output format .pdf"));
}

TEST(BindReport, ATableHas32ColumnsOrNoLimit) {
  EXPECT_EQ(options_from(bind_report, {"--width", "32"}).width, 32u);
  EXPECT_EQ(options_from(bind_report, {"--width", "0"}).width, 0u);
  EXPECT_EQ(options_from(bind_report, {}).width, std::nullopt);
  EXPECT_TRUE(has(refusal(bind_report, {"--width", "31"}), "Write 32 or more columns"));
  EXPECT_TRUE(has(refusal(bind_report, {"--width", "-1"}), "'-1' is out of range"));
  EXPECT_TRUE(has(refusal(bind_report, {"--width", "wide"}), "'wide' is not a number"));
}

TEST(BindReport, ColumnsAreListedWithCommasOrOneByOne) {
  EXPECT_EQ(
      options_from(bind_report, {"--columns", "wall,gpu", "--columns", "calls"}).style.columns,
      (Words{"wall", "gpu", "calls"}));
}

TEST(BindReport, ANegativeCountIsRefused) {
  EXPECT_EQ(options_from(bind_report, {"--top", "3"}).style.top, 3u);
  EXPECT_TRUE(has(refusal(bind_report, {"--depth", "-1"}), "'-1' is out of range"));
}

TEST(BindSampling, AnIntervalIsBetween10MicrosecondsAndOneSecond) {
  EXPECT_EQ(options_from(bind_sampling, {"--sample", "10us"}).interval_ns, 10'000);
  EXPECT_EQ(options_from(bind_sampling, {"--sample", "1s"}).interval_ns, 1'000'000'000);
  for (const char* interval : {"9us", "1001ms", "often"})
    EXPECT_TRUE(
        has(refusal(bind_sampling, {"--sample", interval}), "is not a time between 10us and 1s"));
}

TEST(BindSampling, OffAndAutoNameNoInterval) {
  const auto off = options_from(bind_sampling, {"--sample", "off"});
  EXPECT_TRUE(off.off);
  EXPECT_EQ(off.interval_ns, std::nullopt);
  const auto automatic = options_from(bind_sampling, {"--sample", "auto"});
  EXPECT_FALSE(automatic.off);
  EXPECT_EQ(automatic.interval_ns, std::nullopt);
}

TEST(BindSampling, ARateOfTheCpuMayHaveItsUnit) {
  EXPECT_EQ(options_from(bind_sampling, {"--cpu", "99Hz"}).cpu_hz, 99);
  EXPECT_EQ(options_from(bind_sampling, {"--cpu", "99"}).cpu_hz, 99);
  EXPECT_EQ(options_from(bind_sampling, {"--cpu", "10000Hz"}).cpu_hz, 10'000);
  for (const char* rate : {"0Hz", "10001Hz", "99kHz", "Hz"})
    EXPECT_TRUE(
        has(refusal(bind_sampling, {"--cpu", rate}), "is not a rate between 1Hz and 10000Hz"));
}

TEST(BindSampling, TheCpuIsSampledByDefaultAndAskedForWithoutARate) {
  EXPECT_EQ(options_from(bind_sampling, {"--cpu"}).cpu_hz, profile::kAutoCpu_hz);
  const auto automatic = options_from(bind_sampling, {"--cpu", "auto"});
  EXPECT_FALSE(automatic.cpu_off);
  EXPECT_EQ(automatic.cpu_hz, std::nullopt);
  EXPECT_TRUE(options_from(bind_sampling, {"--cpu", "off"}).cpu_off);
}

using Environment = std::map<std::string, std::string>;

Environment environment_from(const Words& words) {
  const auto options = options_from(bind_native, words);
  return {options.extra_env.begin(), options.extra_env.end()};
}

TEST(BindNative, ACaptureHasRoomForAMebibyte) {
  EXPECT_EQ(options_from(bind_native, {"--max-capture-size", "1MiB"}).max_capture_bytes, 1u << 20);
  for (const char* size : {"1023KiB", "0", "much"})
    EXPECT_TRUE(
        has(refusal(bind_native, {"--max-capture-size", size}), "is not a size of at least 1 MiB"));
}

TEST(BindNative, TheDepthOfModulesIsFrom1To64) {
  EXPECT_EQ(environment_from({"--modules", "64"}), (Environment{{wire::kModules, "64"}}));
  EXPECT_EQ(environment_from({"--modules", "off"}), (Environment{{wire::kModules, "off"}}));
  EXPECT_EQ(environment_from({"--modules", "auto"}), Environment{});
  for (const char* levels : {"0", "65", "all"})
    EXPECT_TRUE(has(refusal(bind_native, {"--modules", levels}), "is not a depth of modules"));
}

TEST(BindNative, FunctionsAreOnePatternALine) {
  EXPECT_EQ(environment_from({"--functions", "pkg.*", "--functions", "step=pkg.Engine.step"}),
            (Environment{{wire::kFunctions, "pkg.*\nstep=pkg.Engine.step"}}));
}

TEST(BindNative, AFunctionNeedsAPatternAndItsNameText) {
  for (const char* pattern : {"", " ", "step=", "step= ", "=pkg.step"})
    EXPECT_TRUE(has(refusal(bind_native, {"--functions", pattern}), "names no function"))
        << pattern;
}

TEST(BindNative, PhasesAreOffAutomaticOrInAFile) {
  EXPECT_EQ(environment_from({"--phases", "off"}), (Environment{{wire::kPhases, "off"}}));
  EXPECT_EQ(environment_from({"--phases", "auto"}), Environment{});
  EXPECT_TRUE(has(refusal(bind_native, {"--phases", "/no such folder/phases"}),
                  "there is no file '/no such folder/phases' to read"));
}

TEST(BindRead, RanksOfARepeatedOptionAllCount) {
  EXPECT_EQ(options_from(bind_read, {"--rank", "8,0", "--rank", "2-3"}).ranks,
            (std::vector<std::uint32_t>{0, 2, 3, 8}));
  for (const char* ranks : {"3-1", "-1", "0,,1", "x"})
    EXPECT_TRUE(has(refusal(bind_read, {std::string("--rank=") + ranks}), "is not a rank"))
        << ranks;
}

TEST(BindRegions, ChoicesAreWordsWithAMeaning) {
  const auto options = options_from(
      bind_regions, {"--push-pop-scope", "process", "--domains", "nested", "--no-aggregate"});
  EXPECT_EQ(options.push_pop_scope, analyze::PushPopScope::kProcess);
  EXPECT_EQ(options.domains, analyze::Domains::kNested);
  EXPECT_FALSE(options.aggregate);
  EXPECT_TRUE(has(refusal(bind_regions, {"--domains", "nest"}), "is not one of its values"));
}

TEST(BindRegions, AnEmptyTextSeparatesNoLevels) {
  EXPECT_EQ(options_from(bind_regions, {"--nest", "::"}).nest, "::");
  EXPECT_TRUE(has(refusal(bind_regions, {"--nest", ""}), "an empty text separates no levels"));
}

TEST(FinishComparison, ARenamingEndsTheOldNameAtTheFirstEqualsSign) {
  analyze::CompareOptions options;
  ASSERT_TRUE(finish_comparison(options, {"old=new", "loss=a=b"}));
  EXPECT_EQ(options.renames.at("old"), "new");
  EXPECT_EQ(options.renames.at("loss"), "a=b");
}

TEST(FinishComparison, ARenamingNeedsBothNames) {
  for (const char* rename : {"old", "=new", "old="}) {
    analyze::CompareOptions options;
    const auto finished = finish_comparison(options, {rename});
    ASSERT_FALSE(finished) << rename;
    EXPECT_EQ(finished.error().code, base::Code::kUsage);
  }
}

}  // namespace bind_test
}  // namespace rangescope::cli
