// What is written behind --what-if, and what is refused, where and with which hint.
#include "analyze/what_if/rule.hpp"

#include <gtest/gtest.h>

namespace rangescope::analyze {
namespace rule_test {

using Target = WhatIfRule::Target;
using Action = WhatIfRule::Action;

WhatIfRule parsed(const std::string& written) {
  const auto rules = parse_what_if({written});
  EXPECT_TRUE(rules) << (rules ? "" : to_string(rules.error()));
  return rules && !rules->empty() ? rules->front() : WhatIfRule{};
}

base::Error refused(const std::string& written) {
  const auto rules = parse_what_if({"copies=overlapped", written});
  EXPECT_FALSE(rules) << written;
  return rules ? base::Error{} : rules.error();
}

TEST(WhatIfRule, KernelsByARegularExpression) {
  const WhatIfRule rule = parsed("kernel:softmax*=0.5");
  EXPECT_EQ(rule.target, Target::kKernels);
  EXPECT_EQ(rule.action, Action::kScale);
  EXPECT_EQ(rule.factor, 0.5);
  ASSERT_EQ(rule.kernels.size(), 2u);
  EXPECT_TRUE(rule.kernels.back().matches("void softmax_warp_forward<float>(...)", "", ""));
  EXPECT_FALSE(rule.kernels.back().matches("void gemm(...)", "gemm", ""));
}

TEST(WhatIfRule, KernelsByTheirExactName) {
  const WhatIfRule rule = parsed("kernel:void f<int>(int*)=0");
  EXPECT_EQ(rule.factor, 0);
  EXPECT_TRUE(rule.kernels.front().matches("void f<int>(int*)", "f", "_Z1f"));
}

TEST(WhatIfRule, TheLastEqualsSignSeparates) {
  const WhatIfRule rule = parsed("kernel:size=4=2");
  EXPECT_EQ(rule.factor, 2);
  EXPECT_EQ(rule.kernels.front().text(), "size=4");
}

TEST(WhatIfRule, Ranges) {
  const WhatIfRule rule = parsed("region:LLM@attention=0");
  EXPECT_EQ(rule.target, Target::kRegion);
  ASSERT_EQ(rule.ranges.size(), 1u);
  EXPECT_EQ(rule.ranges.front().written, "LLM@attention");
}

TEST(WhatIfRule, CopiesAndLaunches) {
  EXPECT_EQ(parsed("copies=overlapped").action, Action::kOverlap);
  EXPECT_EQ(parsed("copies = 0.25").factor, 0.25);
  EXPECT_EQ(parsed("launches=graph").action, Action::kGraph);
  EXPECT_TRUE(parsed("launches=graph").ranges.empty());
  EXPECT_EQ(parsed("launches:step=graph").ranges.size(), 1u);
}

TEST(WhatIfRule, Ranks) {
  const WhatIfRule rule = parsed("rank:3=mean");
  EXPECT_EQ(rule.target, Target::kRank);
  EXPECT_EQ(rule.action, Action::kMean);
  EXPECT_EQ(rule.rank, 3u);
  EXPECT_EQ(parsed("rank:0=0.9").factor, 0.9);
}

TEST(WhatIfRule, Several) {
  const auto rules = parse_what_if({"kernel:gelu=0", "launches=graph"});
  ASSERT_TRUE(rules);
  EXPECT_EQ(rules->size(), 2u);
  EXPECT_EQ(parse_what_if({})->size(), 0u);
}

TEST(WhatIfRule, WhatIsWrongIsLocated) {
  struct Wrong {
    const char *written, *what, *hint;
  };
  for (const auto& [written, what, hint] : {
           Wrong{"softmax", "nothing is changed", "'kernel:softmax*=0.5'"},
           Wrong{"kernels:softmax=0.5", "'kernels' cannot be changed", "kernel"},
           Wrong{"kernel=0.5", "kernel: which one is not said", "'kernel:softmax*=0.5'"},
           Wrong{"region:=0", "region: which one is not said", "'region:attention=0'"},
           Wrong{"copies:h2d=0", "copies has no name", "'copies=0'"},
           Wrong{"kernel:softmax=fast", "'fast' is no factor", "0.5 halves the time"},
           Wrong{"kernel:softmax=-1", "'-1' is no factor", "0.5 halves the time"},
           Wrong{"kernel:softmax=nan", "'nan' is no factor", "0.5 halves the time"},
           Wrong{"copies=overlap", "'overlap' is no factor", "'copies=overlapped'"},
           Wrong{"launches=0.5", "launches cannot be '0.5'", "'launches=graph'"},
           Wrong{"rank:slow=mean", "'slow' is no rank", "'rank:3=mean'"},
           Wrong{"rank:3=average", "'average' is no factor", "'rank:3=mean'"},
           Wrong{"kernel:*softmax=0", "not a regular expression", "Write .* for any text"},
       }) {
    SCOPED_TRACE(written);
    const base::Error error = refused(written);
    EXPECT_EQ(error.code, base::Code::kUsage);
    EXPECT_EQ(error.where, "--what-if '" + std::string(written) + "'");
    EXPECT_NE(error.what.find(what), std::string::npos) << error.what;
    EXPECT_NE(error.hint.find(hint), std::string::npos) << error.hint;
  }
}

}  // namespace rule_test
}  // namespace rangescope::analyze
