#include "profile/targets.hpp"

#include <gtest/gtest.h>

namespace rangescope::profile {
namespace targets_test {

/// A session in which these stacks of the default domain and this start/end range were measured.
model::Session measured(const std::vector<std::vector<std::string>>& stacks, const std::string& start_end) {
  model::Session session;
  session.domains.push_back({});
  session.domains[1].name = session.strings.intern("LLM");
  for (const auto& stack : stacks) {
    model::Measurement one;
    one.scope = model::MeasuredScope::kRange;
    for (const std::string& name : stack)
      one.ranges.push_back({0, session.strings.intern(name), model::RangeKind::kPushPop});
    session.measurements.push_back(std::move(one));
  }
  model::Measurement one;
  one.ranges.push_back({1, session.strings.intern(start_end), model::RangeKind::kStartEnd});
  session.measurements.push_back(std::move(one));
  return session;
}

TEST(Look, NamesTheExpressionsThatNothingWasMeasuredOf) {
  const model::Session session = measured({{"decode", "layer0"}, {"decode"}}, "request");
  const std::vector<std::string> asked{"decode/",     "decode/layer0/", "prefill/",    "layer0]",
                                       "LLM@request", "request",        "LLM@decode/", "regex:^dec.*/"};
  EXPECT_EQ(unmeasured(session, asked), (std::vector<std::string>{"prefill/", "request", "LLM@decode/"}));
  EXPECT_EQ(unmeasured({}, asked), asked);
}

}  // namespace targets_test
}  // namespace rangescope::profile
