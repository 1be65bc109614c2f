#include "collect/nsight/abilities.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/source_dir.hpp"
#include "collect/nsight/ncu.hpp"
#include "collect/nsight/nsys.hpp"

namespace rangescope::collect {
namespace abilities_test {

using Words = std::vector<std::string>;

TEST(Abilities, Versions) {
  EXPECT_EQ(parse_version("Version 2025.3.1.0 (build 36398880) (public-release)"),
            (Version{2025, 3, 1}));
  EXPECT_EQ(parse_version("NVIDIA Nsight Systems version 2022.4.2.1-df9881f"),
            (Version{2022, 4, 2}));
  EXPECT_EQ(parse_version("Copyright (c) 2018-2022 NVIDIA Corporation"), Version{});
  EXPECT_LT(parse_version("2022.3.0.0"), parse_version("2022.10.0.0"));
}

TEST(Abilities, NcuHelp) {
  const auto options = parse_ncu_help(R"(General Options:
  -h [ --help ]                         Print this help message.
Common Profile Options:
  --replay-mode arg (=kernel)           Mechanism used for replaying a kernel launch multiple times to collect all 
                                        requested profiling data:
                                          kernel (default)
                                          (Replay individual kernel launches transparently
                                           during the execution of the application.)
                                          app-range
                                          (Profile ranges without API capture.)
  --app-replay-mode arg (=strict)       Application replay kernel matching mode:
                                          strict (default):  Requires all kernels to match across all
                                                             replay passes.
                                          relaxed         :  Produces results only for kernels that could
  -k [ --kernel-name ] arg              Filter the kernel in one of the following ways:
  --target-processes-filter arg         Set the comma separated expressions to filter which processes are profiled.
)");
  EXPECT_EQ(options.at("--replay-mode"), (Words{"kernel", "app-range"}));
  EXPECT_EQ(options.at("--app-replay-mode"), (Words{"strict", "relaxed"}));
  EXPECT_EQ(options.at("--kernel-name"), Words{});
  EXPECT_EQ(options.size(), 5u);
}

TEST(Abilities, NsysHelp) {
  const auto options = parse_nsys_help(
      "usage: nsys profile [<args>]\n\n\t-c, --capture-range=\n\n\t   Possible values are none, "
      "cudaProfilerApi, nvtx, "
      "hotkey.\n\t   When '-c nvtx' is used.\n"
      "\n\t-t, --trace=\n\n\t   Possible values are 'cuda', 'nvtx',\n\t   'opengl-annotations' or "
      "'none'.\n\t   Select "
      "the API(s).\n"
      "\n\t--nvtx-domain-[include|exclude]=\n\n\t   Possible values are a comma-separated list of "
      "NVTX domains.\n"
      "\n\t--samples-per-backtrace=\n\n\t   Possible values are integers between 1 and 32.\n");
  EXPECT_EQ(options.at("--capture-range"), (Words{"none", "cudaProfilerApi", "nvtx", "hotkey"}));
  EXPECT_EQ(options.at("--trace"), (Words{"cuda", "nvtx", "opengl-annotations", "none"}));
  EXPECT_EQ(options.at("--nvtx-domain-include"), Words{});
  EXPECT_EQ(options.at("--nvtx-domain-exclude"), Words{});
  EXPECT_EQ(options.at("--samples-per-backtrace"), Words{});
}

TEST(Abilities, NcuSetsAndSections) {
  Abilities abilities;
  parse_ncu_sets(R"(---------- ----------------------------- ------- -----------------
Identifier Sections                      Enabled Estimated Metrics
---------- ----------------------------- ------- -----------------
basic      LaunchStats, Occupancy        yes     213              
detailed   ComputeWorkloadAnalysis, Laun no      906              
           chStats                                                
)",
                 abilities);
  EXPECT_EQ(abilities.default_set, "basic");
  EXPECT_EQ(abilities.sets.at("detailed"), (Words{"ComputeWorkloadAnalysis", "LaunchStats"}));
  EXPECT_EQ(abilities.sets.size(), 2u);
  EXPECT_EQ(parse_ncu_sections(R"(----------- ------------
Identifier  Display Name
----------- ------------
LaunchStats Launch Stats
            more
Occupancy   Occupancy
)"),
            (std::set<std::string>{"LaunchStats", "Occupancy"}));
}

TEST(Abilities, CacheKeepsEverything) {
  Abilities abilities;
  abilities.tool = "ncu";
  abilities.path = "/x/ncu";
  abilities.version = {2025, 3, 1};
  abilities.options = {{"--set", {}}, {"--replay-mode", {"kernel"}}};
  abilities.sets = {{"basic", {"A"}}};
  abilities.sections = {"A"};
  abilities.metrics = {"m__x"};
  auto read = from_json(to_json(abilities));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(to_json(*read), to_json(abilities));
  EXPECT_FALSE(from_json("{}").has_value());
  EXPECT_TRUE(read->takes("--set", "anything"));
  EXPECT_FALSE(read->takes("--replay-mode", "range"));
}

// Without an ncu: the names of every chip that shipped versions know, and one that is new passes.
TEST(Abilities, MetricsAreKnownWithoutAnNcu) {
  const auto known =
      newest_known("ncu", std::filesystem::path(base::source_dir) / "conf" / "tools");
  ASSERT_TRUE(known.has_value());
  EXPECT_GT(known->metrics.size(), 3000u);
  for (const char* metric : {"sm__throughput",
                             "dram__throughput",
                             "gpu__time_duration",
                             "l1tex__t_sector_hit_rate",
                             "smsp__inst_executed_pipe_tensor",
                             "lts__t_sectors"})
    EXPECT_EQ(known->metrics.count(metric), 1u) << metric;
  ncu::Options options;
  options.values["metrics"] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed",
                               "dram__brand_new.sum"};
  Request request;
  request.command = {"./app"};
  request.run_dir = "/runs/1";
  const auto plan = ncu::plan(*known, options, request);
  ASSERT_TRUE(plan.has_value()) << plan.error().what;
  ASSERT_EQ(plan->notes.size(), 1u);
  EXPECT_NE(plan->notes[0].find("'dram__brand_new.sum' is unknown here"), std::string::npos)
      << plan->notes[0];
  options.values["metrics"] = {"dram__bytes*"};
  EXPECT_NE(ncu::plan(*known, options, request).error().hint.find("regex:^dram__bytes.*"),
            std::string::npos);
}

// Linux takes no word of a command that is longer.
TEST(Abilities, AnExpressionOfThousandsOfKernelsIsRefusedWithACure) {
  const auto known =
      newest_known("ncu", std::filesystem::path(base::source_dir) / "conf" / "tools");
  ASSERT_TRUE(known.has_value());
  ncu::Options options;
  options.values["kernel_name"] = {"regex:" + std::string(240000, 'a')};
  Request request;
  request.command = {"./app"};
  request.run_dir = "/runs/1";
  const auto plan = ncu::plan(*known, options, request);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, base::Code::kConfig);
  EXPECT_NE(plan.error().what.find("--kernel-name"), std::string::npos) << plan.error().what;
  EXPECT_FALSE(plan.error().hint.empty());
}

// A list as nsys takes it is one text in YAML.
TEST(Abilities, AListWrittenAsOneTextIsRefusedWithTheListThatWasMeant) {
  const auto known =
      newest_known("nsys", std::filesystem::path(base::source_dir) / "conf" / "tools");
  ASSERT_TRUE(known.has_value());
  nsys::Options options;
  options.values["trace"] = {"cuda,nvtx,osrt"};
  Request request;
  request.command = {"./app"};
  request.run_dir = "/runs/1";
  EXPECT_EQ(nsys::plan(*known, options, request).error().hint, "Write a list: [cuda, nvtx, osrt].");
}

}  // namespace abilities_test
}  // namespace rangescope::collect
