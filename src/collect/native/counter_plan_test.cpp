#include "collect/native/counter_plan.hpp"

#include <gtest/gtest.h>

namespace rangescope::collect::native {
namespace counter_plan_test {

TEST(CounterPlan, SaysEverythingInLines) {
  CounterRequest request;
  request.metrics = {"dram__bytes.sum", "gpu__time_duration.sum"};
  request.ranges = *model::RangeSelection::parse(
      {"decode/", "LLM@[A/*/B x]", "A,B", "regex:^layer[0-9]$/"}, {"warm\\/up/"});
  request.rounds = 2;
  const auto text = counter_plan(request);
  ASSERT_TRUE(text) << to_string(text.error());
  EXPECT_EQ(*text,
            "rangescope-counters 1\n"
            "metric dram__bytes.sum\n"
            "metric gpu__time_duration.sum\n"
            "per range\n"
            "rounds 2\n"
            "skip-first -1\n"
            "trace-first 3\n"
            "include p x - - ndecode\n"
            "include p x [] =LLM nA * nB%20x\n"
            "include s x - - nA nB\n"
            "include p r - - n%5Elayer%5B0-9%5D%24\n"
            "exclude p x - - nwarm%2Fup\n");
}

TEST(CounterPlan, SaysWhereAnotherConfigurationBegins) {
  CounterRequest request;
  request.metrics = {"a.sum", "b.sum", "c.sum"};
  request.splits = {2};
  request.wanted_by = {{"a.sum", "memory,quick"}, {"c.sum", "nvlink"}};
  request.ranges = *model::RangeSelection::parse({"decode/"});
  const auto text = counter_plan(request);
  ASSERT_TRUE(text);
  EXPECT_NE(
      text->find(
          "metric a.sum memory,quick\nmetric b.sum\nconfiguration 2\nmetric c.sum nvlink\nper"),
      std::string::npos)
      << *text;
}

TEST(CounterPlan, SaysWhatThisRunIs) {
  CounterRequest request;
  request.metrics = {"m.sum"};
  request.ranges = *model::RangeSelection::parse({"decode/"});
  request.cache = "flush";
  request.by_payload = true;
  request.resume = "/a b";
  request.is_relaunch = true;
  const auto text = counter_plan(request);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("trace-first 0\ncache flush\nby payload\nresume %2Fa%20b\nwait 1\n"),
            std::string::npos)
      << *text;
}

TEST(CounterPlan, WritesRegularExpressionsInTheCommonGround) {
  const std::vector<std::pair<std::string, std::string>> same = {{"^layer\\d+$", "^layer[0-9]+$"},
                                                                 {"[\\w.-]", "[0-9A-Za-z_.-]"},
                                                                 {"(?:ab)+?", "(ab)+"},
                                                                 {"a{2}?", "a{2}"},
                                                                 {"a{,3}", "a\\{,3}"},
                                                                 {"\\<b\\>", "<b>"},
                                                                 {"a\\.b", "a\\.b"},
                                                                 {"[[:digit:]x]", "[0-9x]"},
                                                                 {"a.b", "a[^\n]b"},
                                                                 {"\\W", "[^0-9A-Za-z_]"}};
  for (const auto& [re2, posix] : same)
    EXPECT_EQ(posix_regex(re2).value_or("refused"), posix) << re2;
  for (const char* other :
       {"(?i)a", "\\bdecode", "\\pL", "[\\]]", "[[.a.]]", "^*", "a\\", "[a", "\\1"})
    EXPECT_FALSE(posix_regex(other)) << other;
}

TEST(CounterPlan, RefusesWhatTheLibraryCannotMatch) {
  CounterRequest request;
  request.metrics = {"dram__bytes.sum"};
  EXPECT_EQ(counter_plan(request).error().code, base::Code::kUsage);
  request.ranges = *model::RangeSelection::parse({"regex:(?i)layer/"});
  EXPECT_NE(counter_plan(request).error().what.find("(?"), std::string::npos);
}

}  // namespace counter_plan_test
}  // namespace rangescope::collect::native
