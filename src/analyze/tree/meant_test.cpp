#include "analyze/tree/meant.hpp"

#include <gtest/gtest.h>

#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace meant_test {

using model::RangeSelection;
using testing::SessionBuilder;

/// A session in which these stacks of the default domain and this start/end range were measured.
model::Session measured(const std::vector<std::vector<std::string>>& stacks,
                        const std::string& start_end) {
  model::Session session;
  session.domains.push_back({});
  session.domains[1].name = session.strings.intern("LLM");
  for (const auto& stack : stacks) {
    model::Measurement result;
    result.scope = model::MeasuredScope::kRange;
    for (const std::string& name : stack)
      result.ranges.push_back({0, session.strings.intern(name), model::RangeKind::kPushPop});
    session.measurements.push_back(std::move(result));
  }
  model::Measurement result;
  result.ranges.push_back({1, session.strings.intern(start_end), model::RangeKind::kStartEnd});
  session.measurements.push_back(std::move(result));
  return session;
}

TEST(Meant, NamesTheRangesThatNothingWasMeasuredOf) {
  const model::Session session = measured({{"decode", "layer0"}, {"decode"}}, "request");
  const std::vector<std::string> asked{"decode/",
                                       "decode/layer0/",
                                       "prefill/",
                                       "layer0]",
                                       "LLM@request",
                                       "request,request",
                                       "LLM@decode/",
                                       "regex:^dec.*/"};
  const auto ranges = RangeSelection::parse(asked);
  ASSERT_TRUE(ranges) << base::to_string(ranges.error());
  EXPECT_EQ(model::written_of(unmeasured(session, *ranges)),
            (std::vector<std::string>{"prefill/", "request,request", "LLM@decode/"}));
  EXPECT_EQ(model::written_of(unmeasured({}, *ranges)), asked);
}

TEST(Meant, KindsAreSettledByWhatWasSeen) {
  SessionBuilder b;
  const auto t = b.thread(b.process(1), 1);
  b.range(t, "decode", 0, 100);
  b.range(t, "request", 0, 100, "", model::RangeKind::kStartEnd);
  auto ranges = *RangeSelection::parse({"decode", "request", "nosuch"}, {"decode"});
  std::vector<std::string> notes;
  settle_kinds(ranges, b.session, notes);
  EXPECT_EQ(model::expressions_of(ranges.include),
            (std::vector<std::string>{"decode/", "request", "nosuch/", "nosuch"}));
  EXPECT_EQ(model::expressions_of(ranges.exclude), std::vector<std::string>{"decode/"});
  EXPECT_EQ(
      notes,
      (std::vector<std::string>{"'decode' was seen as push/pop range: --nvtx-include decode/",
                                "'request' was seen as start/end range: --nvtx-include request",
                                "no range was seen that 'nosuch' names",
                                "'decode' was seen as push/pop range: --nvtx-include decode/"}));
}

}  // namespace meant_test
}  // namespace rangescope::analyze
