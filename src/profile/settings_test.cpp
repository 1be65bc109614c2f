#include "profile/settings.hpp"

#include <gtest/gtest.h>

#include "profile/composed_test.hpp"

namespace rangescope::profile {
namespace settings_test {

using Words = std::vector<std::string>;

Words included(const config::Config& config) {
  const auto ranges = ranges_of(config);
  if (!ranges)
    return {base::to_string(ranges.error())};
  Words written;
  for (const model::RangeTerm& term : ranges->include)
    written.push_back(term.written);
  return written;
}

const std::string kAlias = "pipeline.ncu.ncu_cli.nvtx.include";

TEST(Ranges, OfAKeyAndItsAliasTheLastOneCounts) {
  EXPECT_EQ(included(composed({"ranges.include=decode"})), Words{"decode"});
  EXPECT_EQ(included(composed({kAlias + "=decode"})), Words{"decode"});
  const config::Source variable = config::Source::kEnvironment;
  EXPECT_EQ(included(composed({kAlias + "=decode", "ranges.include=prefill"}, variable)),
            Words{"prefill"});
  EXPECT_EQ(included(composed({"ranges.include=prefill", kAlias + "=decode"}, variable)),
            Words{"decode"});
}

TEST(Ranges, AKeyAndItsAliasOnOneCommandLineAreRefused) {
  const auto ranges = ranges_of(composed({"ranges.include=prefill", kAlias + "=decode"}));
  ASSERT_FALSE(ranges.has_value());
  EXPECT_EQ(ranges.error().code, base::Code::kUsage);
  EXPECT_EQ(ranges.error().what,
            "two names of one option: --nvtx-include is another name of --include");
}

TEST(Ranges, OneThatIsIncludedAndExcludedIsRefused) {
  const auto both = ranges_of(composed({"ranges.include=[step,prefill]", "ranges.exclude=[step]"}));
  ASSERT_TRUE(both);
  const auto checked = check_ranges(*both);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().what, "'step' is included and excluded");
  const Words inside = {"ranges.include=[step]", "ranges.exclude=['step > copy']"};
  const auto inner = ranges_of(composed(inside));
  ASSERT_TRUE(inner);
  EXPECT_TRUE(check_ranges(*inner));
}

TEST(Kernels, OneThatIsIncludedAndExcludedIsRefused) {
  const auto refusal = [](const char* include, const char* exclude) {
    const auto checked = check_kernels(*model::KernelSelection::parse({include}, {exclude}));
    return checked ? std::string() : checked.error().what;
  };
  EXPECT_EQ(refusal("gemm", "gemm"), "kernel 'gemm' is included and excluded");
  EXPECT_EQ(refusal("regex:^g", "regex:^g"), "kernel 'regex:^g' is included and excluded");
  EXPECT_EQ(refusal("gemm", "regex:^g"), "kernel 'gemm' is included, and 'regex:^g' excludes it");
  EXPECT_EQ(refusal("regex:^g", "gemm"), "");
  EXPECT_EQ(refusal("gemm", "softmax"), "");
}

TEST(Ranges, OneThatAPatternExcludesIsRefused) {
  const auto refusal = [](const char* include, const char* exclude) {
    const auto checked = check_ranges(*model::RangeSelection::parse({include}, {exclude}));
    return checked ? std::string() : checked.error().what;
  };
  EXPECT_EQ(refusal("decode", "decode*"), "'decode' is included, and 'decode*' excludes it");
  EXPECT_EQ(refusal("LLM@decode > attention", "LLM@*"),
            "'LLM@decode > attention' is included, and 'LLM@*' excludes it");
  EXPECT_EQ(refusal("step > copy", "step"), "'step > copy' is included, and 'step' excludes it");
  EXPECT_EQ(refusal("step", "step > copy"), "");
  EXPECT_EQ(refusal("decode*", "decode"), "");
  EXPECT_EQ(refusal("decode", "LLM@*"), "");
  EXPECT_EQ(refusal("decode", "[decode"), "");  // step > decode is left
}

TEST(Ranges, AListThatIsNoneIsWarnedOf) {
  const auto said_of = [](const char* written) {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(check_ranges(*model::RangeSelection::parse({written}, {})));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(said_of("step,decode").find("For several ranges write 'step;decode'"),
            std::string::npos);
  EXPECT_NE(said_of("step|decode").find("For several ranges write 'step;decode'"),
            std::string::npos);
  EXPECT_EQ(said_of("step;decode"), "");
  EXPECT_EQ(said_of("step/,decode/"), "");
  EXPECT_EQ(said_of("step/decode/"), "");
  EXPECT_EQ(said_of("regex:^(step|decode)$/"), "");
}

TEST(Gating, AsksForNsysUnlessSomebodyDecided) {
  EXPECT_EQ(gating_key(composed({})), "");
  EXPECT_EQ(gating_key(composed({"pipeline.nsys.gating_nvtx=true"})), "pipeline.nsys.gating_nvtx");
  EXPECT_EQ(gating_key(composed({"pipeline.nsys.gating_nvtx=true", "pipeline.nsys.enable=false"})),
            "");
  EXPECT_EQ(gating_key(composed({"pipeline.nsys.gating_nvtx=true", "collector=native"})), "");
  EXPECT_EQ(gating_key(composed({"pipeline.nsys.nvtx_capture=decode"})),
            "pipeline.nsys.nvtx_capture");
  const config::Source variable = config::Source::kEnvironment;
  EXPECT_EQ(gating_key(composed({"pipeline.nsys.nvtx_capture=decode"}, variable)), "");
  EXPECT_EQ(gating_key(composed({"pipeline.nsys.gating_nvtx=true", "collector=native"}, variable)),
            "pipeline.nsys.gating_nvtx");
}

TEST(NcuOptions, PresetsAreNotAskedFor) {
  const auto preset = ncu_options(composed({"ncu=quick"}));
  EXPECT_EQ(preset.values.at("launch_count"), Words{"5"});
  EXPECT_EQ(preset.asked.count("launch_count"), 0u);
  const auto asked = ncu_options(composed({"ncu=quick", "pipeline.ncu.ncu_cli.launch_count=3"}));
  EXPECT_EQ(asked.values.at("launch_count"), Words{"3"});
  EXPECT_EQ(asked.asked.count("launch_count"), 1u);
}

}  // namespace settings_test
}  // namespace rangescope::profile
