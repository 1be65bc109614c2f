// What a plan of counters says (format: wire/counter_plan.hpp), and which ranges and kernels it
// chooses.
#include "inject/counters/plan.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace rangescope::inject::counters {
namespace plan_test {

constexpr char kHead[] = "rangescope-counters 1\n";

/// A plan of `lines`, or why there is none.
class Parsed {
 public:
  explicit Parsed(const std::string& lines, const std::string& head = kHead) {
    const std::string text = head + lines;
    char reason[200] = "";
    good_ = parse_plan(text.data(), text.size(), plan_, reason, sizeof reason);
    why_ = reason;
  }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;
  ~Parsed() { release_plan(plan_); }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  const Plan* operator->() const { return &plan_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
  bool good_ = false;
  std::string why_;
};

/// A plan that counts one metric in the ranges of these lines.
std::string counting(const std::string& ranges) {
  return "metric a\n" + ranges;
}
std::string many(const std::string& line, std::size_t count) {
  std::string lines;
  for (std::size_t i = 0; i < count; ++i)
    lines += line + "\n";
  return lines;
}
const std::string kAnyStep = "include p x - - nstep\n";

Piece piece_of(const std::string& text) {
  return {text.data(), text.size()};
}
/// Whether the range on top of "a/b/c" is a target, in a domain ("": the default one).
bool targets(const Parsed& parsed, const std::vector<std::string>& stack, std::string domain = "") {
  EXPECT_TRUE(parsed.good()) << parsed.why();
  std::vector<Piece> pieces;
  for (const std::string& name : stack)
    pieces.push_back(piece_of(name));
  return is_target(parsed.plan(), piece_of(domain), pieces.data(), pieces.size());
}
bool targets_start_end(const Parsed& parsed, const std::string& name, std::string domain = "") {
  EXPECT_TRUE(parsed.good()) << parsed.why();
  return is_start_end_target(parsed.plan(), piece_of(domain), piece_of(name));
}
bool chooses(const Parsed& parsed,
             const std::string& demangled,
             const std::string& short_name,
             const std::string& mangled) {
  EXPECT_TRUE(parsed.good()) << parsed.why();
  return chooses_kernel(
      parsed.plan(), piece_of(demangled), piece_of(short_name), piece_of(mangled));
}

// --- what a plan says ---

TEST(CounterPlan, WhatIsNotSaidHasItsDefault) {
  const Parsed parsed(counting(kAnyStep));
  ASSERT_TRUE(parsed.good()) << parsed.why();
  EXPECT_EQ(parsed->per, Per::kRange);
  EXPECT_EQ(parsed->rounds, 5u);
  EXPECT_EQ(parsed->skip_first, -1);
  EXPECT_EQ(parsed->every, 1u);
  EXPECT_EQ(parsed->trace_first, 0u);
  EXPECT_EQ(parsed->patience_ms, 10'000);
  EXPECT_EQ(parsed->arm_wait_ms, 100);
  EXPECT_FALSE(parsed->flush_cache);
  EXPECT_FALSE(parsed->by_payload);
  EXPECT_FALSE(parsed->wait);
  EXPECT_EQ(parsed->resume, nullptr);
}

TEST(CounterPlan, EveryItemIsRead) {
  const Parsed parsed(counting(kAnyStep) +
                      "per kernel\nrounds 7\nskip-first 2\nevery 50\ntrace-first 3\n"
                      "patience 2500\narm-wait 0\ncache flush\nby payload\nwait 1\n"
                      "resume %2Ftmp%2Fa%20b\n");
  ASSERT_TRUE(parsed.good()) << parsed.why();
  EXPECT_EQ(parsed->per, Per::kKernel);
  EXPECT_EQ(parsed->rounds, 7u);
  EXPECT_EQ(parsed->skip_first, 2);
  EXPECT_EQ(parsed->every, 50u);
  EXPECT_EQ(parsed->trace_first, 3u);
  EXPECT_EQ(parsed->patience_ms, 2500);
  EXPECT_EQ(parsed->arm_wait_ms, 0);
  EXPECT_TRUE(parsed->flush_cache);
  EXPECT_TRUE(parsed->by_payload);
  EXPECT_TRUE(parsed->wait);
  EXPECT_STREQ(parsed->resume, "/tmp/a b");
}

TEST(CounterPlan, MetricsComeWithTheGroupsThatNeedThem) {
  const Parsed parsed("metric dram__bytes.sum memory,quick\nmetric sm__cycles.avg\n" + kAnyStep);
  ASSERT_TRUE(parsed.good()) << parsed.why();
  ASSERT_EQ(parsed->metric_count, 2u);
  EXPECT_STREQ(parsed->metrics[0], "dram__bytes.sum");
  EXPECT_STREQ(parsed->groups[0], "memory,quick");
  EXPECT_STREQ(parsed->metrics[1], "sm__cycles.avg");
  EXPECT_EQ(parsed->groups[1], nullptr);
}

TEST(CounterPlan, MetricsThatCannotBeCountedTogetherAreConfigurations) {
  const Parsed parsed("metric a\nmetric b\nconfiguration 2\nmetric c\n" + kAnyStep);
  ASSERT_TRUE(parsed.good()) << parsed.why();
  EXPECT_EQ(parsed->configuration_count, 2u);
  EXPECT_EQ(parsed->begins[0], 0u);
  EXPECT_EQ(parsed->begins[1], 2u);
  EXPECT_EQ(parsed->begins[2], 3u);
}

TEST(CounterPlan, SamplesOfTheProgramCounterTakeThePlaceOfMetrics) {
  const Parsed parsed("pc 1\n" + kAnyStep);
  ASSERT_TRUE(parsed.good()) << parsed.why();
  EXPECT_TRUE(parsed->pc);
  EXPECT_EQ(parsed->configuration_count, 0u);
}

// --- what is refused ---

TEST(CounterPlan, AnotherVersionIsRefused) {
  const Parsed parsed(counting(kAnyStep), "rangescope-counters 2\n");
  EXPECT_FALSE(parsed.good());
  EXPECT_EQ(parsed.why(), "counters plan, line 1: not a counters plan of version 1");
}

TEST(CounterPlan, ARefusalNamesTheLine) {
  const Parsed parsed("metric a\nper week\n" + kAnyStep);
  EXPECT_FALSE(parsed.good());
  EXPECT_EQ(parsed.why(), "counters plan, line 3: per is range, kernel or both");
}

TEST(CounterPlan, ItemsThatAreNotUnderstoodAreRefused) {
  for (const char* line : {"speed 1",
                           "rounds",
                           "rounds many",
                           "rounds 5x",
                           "rounds -1",
                           "rounds 1000001",
                           "skip-first -2",
                           "every 0",
                           "cache warm",
                           "by name",
                           "resume %zz",
                           "resume a%00b",
                           "kernel x",
                           "kernel xname",
                           "kernel r (",
                           "include p x -",
                           "include p x - -",
                           "include p x - - gname",
                           "include p r - - n(",
                           "include p x - =%4 nstep"}) {
    const Parsed parsed(counting(kAnyStep) + line + "\n");
    EXPECT_FALSE(parsed.good()) << line;
    EXPECT_TRUE(parsed.why().starts_with("counters plan, line 4: ")) << parsed.why();
  }
}

TEST(CounterPlan, ConfigurationsAreNumberedAndNotEmpty) {
  for (const char* lines : {"configuration 2\nmetric a\n",
                            "metric a\nconfiguration 1\nmetric b\n",
                            "metric a\nconfiguration 3\nmetric b\n",
                            "metric a\nconfiguration 2\nconfiguration 3\nmetric b\n"})
    EXPECT_FALSE(Parsed(lines + kAnyStep).good()) << lines;
  EXPECT_FALSE(Parsed("metric a\nconfiguration 2\n" + kAnyStep).good()) << "the last is empty";
}

TEST(CounterPlan, ThereAreMetricsOrSamplesAndRangesToCountIn) {
  const std::string why = "counters plan: needs metrics or pc, and include expressions";
  EXPECT_EQ(Parsed("metric a\n").why(), why);
  EXPECT_EQ(Parsed(kAnyStep).why(), why);
  EXPECT_EQ(Parsed("pc 1\nmetric a\n" + kAnyStep).why(), why) << "not both";
  EXPECT_EQ(Parsed("pc 0\n" + kAnyStep).why(), why);
}

TEST(CounterPlan, WhatFitsIsLimited) {
  EXPECT_TRUE(Parsed(many("metric a", kMaxMetrics) + kAnyStep).good());
  EXPECT_EQ(Parsed(many("metric a", kMaxMetrics + 1) + kAnyStep).why(),
            "counters plan, line 514: too many metrics");
  EXPECT_TRUE(Parsed(counting(many("include p x - - na", kMaxExpressions))).good());
  EXPECT_EQ(Parsed(counting(many("include p x - - na", kMaxExpressions + 1))).why(),
            "counters plan, line 67: too many expressions");
  EXPECT_FALSE(Parsed(counting(kAnyStep) + many("exclude p x - - na", kMaxExpressions + 1)).good());
  EXPECT_EQ(Parsed(counting(kAnyStep) + many("kernel x a", kMaxKernels + 1)).why(),
            "counters plan, line 68: too many kernels");
  std::string names;
  for (std::size_t i = 0; i < kMaxElements; ++i)
    names += " na";
  EXPECT_TRUE(Parsed(counting("include p x - -" + names + "\n")).good());
  EXPECT_EQ(Parsed(counting("include p x - -" + names + " na\n")).why(),
            "counters plan, line 3: an expression has too many names");
}

TEST(CounterPlan, ConfigurationsAreLimited) {
  const auto of = [](std::size_t count) {
    std::string lines = "metric a\n";
    for (std::size_t number = 2; number <= count; ++number)
      lines += "configuration " + std::to_string(number) + "\nmetric a\n";
    return lines + kAnyStep;
  };
  EXPECT_TRUE(Parsed(of(kMaxConfigurations)).good());
  EXPECT_FALSE(Parsed(of(kMaxConfigurations + 1)).good());
}

// --- which ranges are targets ---

TEST(CounterPlan, OnlyTheRangeThatBeginsToMatchIsATarget) {
  const Parsed parsed(counting(kAnyStep));
  EXPECT_TRUE(targets(parsed, {"step"}));
  EXPECT_TRUE(targets(parsed, {"epoch", "step"}));
  EXPECT_FALSE(targets(parsed, {"step", "forward"})) << "within one";
  EXPECT_FALSE(targets(parsed, {"epoch"}));
  EXPECT_FALSE(targets(parsed, {}));
}

TEST(CounterPlan, NamesAreWholeBytes) {
  const Parsed parsed(counting("include p x - - nload%20%C3%A4\n"));
  EXPECT_TRUE(targets(parsed, {"load \xc3\xa4"}));
  EXPECT_FALSE(targets(parsed, {"load \xc3\xa4 2"}));
  EXPECT_FALSE(targets(parsed, {"load"}));
}

TEST(CounterPlan, SeveralNamesAreTheInnermostOfAStack) {
  const Parsed parsed(counting("include p x - - nouter ninner\n"));
  EXPECT_TRUE(targets(parsed, {"outer", "inner"}));
  EXPECT_TRUE(targets(parsed, {"epoch", "outer", "inner"}));
  EXPECT_FALSE(targets(parsed, {"outer", "between", "inner"}));
  EXPECT_FALSE(targets(parsed, {"inner"}));
}

TEST(CounterPlan, AGapIsAnyNumberOfRangesOrOne) {
  const Parsed any(counting("include p x - - nouter * ninner\n"));
  EXPECT_TRUE(targets(any, {"outer", "inner"}));
  EXPECT_TRUE(targets(any, {"outer", "a", "b", "inner"}));
  const Parsed exactly_one(counting("include p x - - nouter + ninner\n"));
  EXPECT_FALSE(targets(exactly_one, {"outer", "inner"}));
  EXPECT_TRUE(targets(exactly_one, {"outer", "a", "inner"}));
  EXPECT_FALSE(targets(exactly_one, {"outer", "a", "b", "inner"}));
}

TEST(CounterPlan, AnAnchoredNameIsTheOutermostOrInnermost) {
  const Parsed outermost(counting("include p x [ - nstep\n"));
  EXPECT_TRUE(targets(outermost, {"step"}));
  EXPECT_FALSE(targets(outermost, {"epoch", "step"}));
  const Parsed whole(counting("include p x [] - nouter ninner\n"));
  EXPECT_TRUE(targets(whole, {"outer", "inner"}));
  EXPECT_FALSE(targets(whole, {"epoch", "outer", "inner"}));
}

TEST(CounterPlan, ARangeWithinItselfIsATargetOnce) {
  const Parsed parsed(counting(kAnyStep));
  EXPECT_FALSE(targets(parsed, {"step", "step"})) << "it matches since the outer one";
}

TEST(CounterPlan, RegularExpressionsSearch) {
  const Parsed parsed(counting("include p r - - n%5Elayer%5B0-9%5D%2B\n"));  // ^layer[0-9]+
  EXPECT_TRUE(targets(parsed, {"layer12.attention"}));
  EXPECT_FALSE(targets(parsed, {"my layer12"}));
  EXPECT_FALSE(targets(parsed, {"layer"}));
}

TEST(CounterPlan, AnExpressionIsOfOneDomain) {
  const Parsed of_default(counting(kAnyStep));
  EXPECT_FALSE(targets(of_default, {"step"}, "LLM"));
  const Parsed of_llm(counting("include p x - =LLM nstep\n"));
  EXPECT_TRUE(targets(of_llm, {"step"}, "LLM"));
  EXPECT_FALSE(targets(of_llm, {"step"}, "LLM2"));
  EXPECT_FALSE(targets(of_llm, {"step"}));
}

TEST(CounterPlan, TheDefaultDomainHasAName) {
  const Parsed by_name(counting("include p x - =%3Cdefault%20domain%3E nstep\n"));
  EXPECT_TRUE(targets(by_name, {"step"}));
  const Parsed by_expression(counting("include p r - =default nstep\n"));
  EXPECT_TRUE(targets(by_expression, {"step"}));
  EXPECT_FALSE(targets(by_expression, {"step"}, "LLM"));
}

TEST(CounterPlan, ExcludedRangesAreNoTargets) {
  const Parsed parsed(counting(kAnyStep) + "exclude p x - - nwarmup *\n");
  EXPECT_TRUE(targets(parsed, {"epoch", "step"}));
  EXPECT_FALSE(targets(parsed, {"warmup", "step"}));
}

TEST(CounterPlan, StartEndRangesAreChosenByTheirNameAlone) {
  const Parsed parsed(counting("include s x - - nrequest nreply\n") + "exclude s r - - n%5Er\n");
  EXPECT_FALSE(targets_start_end(parsed, "request")) << "excluded: it begins with r";
  const Parsed all(counting("include s x - - nrequest nreply\n"));
  EXPECT_TRUE(targets_start_end(all, "request"));
  EXPECT_TRUE(targets_start_end(all, "reply"));
  EXPECT_FALSE(targets_start_end(all, "step"));
  EXPECT_FALSE(targets_start_end(all, "request", "LLM"));
}

TEST(CounterPlan, ExpressionsOfOneKindOfRangeDoNotChooseTheOther) {
  const Parsed start_end(counting("include s x - - nstep\n"));
  EXPECT_FALSE(targets(start_end, {"step"}));
  const Parsed push_pop(counting(kAnyStep));
  EXPECT_FALSE(targets_start_end(push_pop, "step"));
}

TEST(CounterPlan, AnyIncludedExpressionIsEnough) {
  const Parsed parsed(counting("include p x - - na\ninclude p x - - nb\n"));
  EXPECT_TRUE(targets(parsed, {"a"}));
  EXPECT_TRUE(targets(parsed, {"b"}));
  EXPECT_TRUE(targets(parsed, {"a", "b"})) << "b begins another one";
}

// --- which kernels ---

TEST(CounterPlan, WithoutNamesEveryKernelIsChosen) {
  EXPECT_TRUE(chooses(Parsed(counting(kAnyStep)), "void f<int>(int*)", "f", "_Z1fIiEvPi"));
}

TEST(CounterPlan, AKernelIsChosenByAnyOfItsNames) {
  for (const char* name : {"void%20f%3Cint%3E%28int%2A%29", "f", "_Z1fIiEvPi"}) {
    const Parsed parsed(counting(kAnyStep) + "kernel x " + name + "\n");
    EXPECT_TRUE(chooses(parsed, "void f<int>(int*)", "f", "_Z1fIiEvPi")) << name;
    EXPECT_FALSE(chooses(parsed, "void g<int>(int*)", "g", "_Z1gIiEvPi")) << name;
  }
}

TEST(CounterPlan, ARegularExpressionDoesNotSearchMangledNames) {
  const Parsed parsed(counting(kAnyStep) + "kernel r IiE\n");
  EXPECT_FALSE(chooses(parsed, "void f<int>(int*)", "f", "_Z1fIiEvPi"));
  const Parsed of_type(counting(kAnyStep) + "kernel r int\n");
  EXPECT_TRUE(chooses(of_type, "void f<int>(int*)", "f", "_Z1fIiEvPi"));
}

TEST(CounterPlan, AKernelThatIsLeftOutIsNotChosen) {
  const Parsed parsed(counting(kAnyStep) + "kernel r gemm\nno-kernel x small_gemm\n");
  EXPECT_TRUE(chooses(parsed, "gemm", "gemm", "gemm"));
  EXPECT_FALSE(chooses(parsed, "small_gemm", "small_gemm", "small_gemm"));
  const Parsed only_left_out(counting(kAnyStep) + "no-kernel x f\n");
  EXPECT_TRUE(chooses(only_left_out, "g", "g", "g"));
  EXPECT_FALSE(chooses(only_left_out, "f", "f", "f"));
}

}  // namespace plan_test
}  // namespace rangescope::inject::counters
