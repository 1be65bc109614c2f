#include "collect/native/counter_plan.hpp"

#include <gtest/gtest.h>

namespace rangescope::collect::native {
namespace {

TEST(CounterPlan, SaysEverythingInLines) {
  CounterRequest request;
  request.metrics = {"dram__bytes.sum", "gpu__time_duration.sum"};
  request.include = {"decode/", "LLM@[A/*/B x]", "request", "regex:^layer[0-9]$/"};
  request.exclude = {"warm\\/up/"};
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
            "include s x - - nrequest\n"
            "include p r - - n%5Elayer%5B0-9%5D%24\n"
            "exclude p x - - nwarm%2Fup\n");
}

TEST(CounterPlan, RefusesWhatTheLibraryCannotMatch) {
  CounterRequest request;
  request.metrics = {"dram__bytes.sum"};
  EXPECT_EQ(counter_plan(request).error().code, base::Code::kUsage);
  request.include = {"regex:layer\\d/"};
  EXPECT_NE(counter_plan(request).error().hint.find("[0-9]"), std::string::npos);
  request.include = {"A/,B"};
  EXPECT_FALSE(counter_plan(request));
}

}  // namespace
}  // namespace rangescope::collect::native
