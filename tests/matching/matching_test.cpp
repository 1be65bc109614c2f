// The library's own matching of range expressions against model::RangeExpression: the same
// expression selects the same ranges, whatever the stack, the domain and the names are, or it is
// refused with a sentence that says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collect/native/counter_plan.hpp"
#include "inject/counters/plan.hpp"
#include "model/range_expression.hpp"

namespace rangescope {
namespace {

using inject::counters::Piece;
using inject::counters::Plan;

struct Stack {
  std::string domain;
  std::vector<std::string> names;  // bottom to top
};

// The plan of one include expression as the library understands it; null when the command line
// refuses it.
struct Release {
  void operator()(Plan* plan) const {
    release_plan(*plan);
    delete plan;
  }
};

std::unique_ptr<Plan, Release> plan_of(const std::string& expression,
                                       std::string* refusal = nullptr) {
  collect::native::CounterRequest request;
  request.metrics = {"m.sum"};
  request.ranges.include = {{expression, {}}};
  auto parsed = model::RangeExpression::parse(expression);
  if (!parsed) {
    if (refusal != nullptr)
      *refusal = base::to_string(parsed.error());
    return nullptr;
  }
  request.ranges.include[0].forms.push_back(std::move(*parsed));
  const auto text = collect::native::counter_plan(request);
  if (!text) {
    if (refusal != nullptr)
      *refusal = base::to_string(text.error());
    return nullptr;
  }
  std::unique_ptr<Plan, Release> plan(new Plan{});
  char why[256] = {};
  EXPECT_TRUE(parse_plan(text->data(), text->size(), *plan, why, sizeof why)) << why << "\n"
                                                                              << *text;
  return plan;
}

bool library(const Plan& plan, const Stack& stack) {
  std::vector<Piece> pieces;
  for (const std::string& name : stack.names)
    pieces.push_back({name.data(), name.size()});
  return matches_stack(
      plan.include[0], {stack.domain.data(), stack.domain.size()}, pieces.data(), pieces.size());
}

bool model(const model::RangeExpression& expression, const Stack& stack) {
  const std::vector<std::string_view> names(stack.names.begin(), stack.names.end());
  return expression.matches_stack(stack.domain, names);
}

/// The rule of ncu, by trying every place of every name: `at[i]` is where name i of the expression
/// stands.
bool brute_force(const model::RangeExpression::Parts& parts,
                 const Stack& stack,
                 std::vector<std::size_t>& at) {
  using Kind = model::RangeExpression::Element::Kind;
  const std::size_t i = at.size();
  const auto& elements = parts.elements;
  if (i == elements.size()) {
    const bool one_above = elements.back().kind == Kind::kOne;
    std::size_t last = i;
    while (elements[last - 1].kind != Kind::kName)
      --last;
    return one_above ? at[last - 1] + 2 == stack.names.size()
                     : !parts.top || at[last - 1] + 1 == stack.names.size();
  }
  if (elements[i].kind != Kind::kName) {
    at.push_back(0);
    return brute_force(parts, stack, at) || (at.pop_back(), false);
  }
  const bool gap = i > 0 && elements[i - 1].kind != Kind::kName;
  const std::size_t before = i - (gap ? 2 : 1);
  for (std::size_t p = 0; p < stack.names.size(); ++p) {
    if (stack.names[p] != elements[i].text)
      continue;
    if (std::find(stack.names.begin() + static_cast<std::ptrdiff_t>(p) + 1,
                  stack.names.end(),
                  elements[i].text) != stack.names.end() &&
        !(i == 0 && parts.bottom && p == 0))
      continue;  // a literal name is its topmost occurrence, or the one that an anchor asks for
    if (i == 0 && parts.bottom && p != 0)
      continue;
    if (i > 0 && !gap && p != at[before] + 1)
      continue;
    if (gap && elements[i - 1].kind == Kind::kOne && p != at[before] + 2)
      continue;
    if (gap && elements[i - 1].kind == Kind::kAny && p <= at[before] &&
        !(p == at[before] && elements[i].text == elements[before].text))
      continue;
    at.push_back(p);
    if (brute_force(parts, stack, at))
      return true;
    at.pop_back();
  }
  return false;
}

void expect_same(const std::string& text, const Stack& stack) {
  const auto expression = model::RangeExpression::parse(text);
  ASSERT_TRUE(expression) << text;
  const auto plan = plan_of(text);
  ASSERT_NE(plan, nullptr) << text;
  std::string shown = stack.domain + "@";
  for (const std::string& name : stack.names)
    shown += name + "/";
  EXPECT_EQ(library(*plan, stack), model(*expression, stack)) << text << " against " << shown;
  if (expression->parts().regex || expression->parts().domain.value_or("") != stack.domain)
    return;
  std::vector<std::size_t> at;
  EXPECT_EQ(model(*expression, stack), brute_force(expression->parts(), stack, at))
      << text << " against " << shown;
}

TEST(Matching, EveryStackAgainstEveryShapeOfExpression) {
  const std::vector<std::string> expressions = {"A/",           "[A",
                                                "A]",           "A/B",
                                                "[A/B",         "A/B]",
                                                "[A/B]",        "A/*/B",
                                                "A/+/B",        "A/*/+/B",
                                                "A/+/+/B",      "A/*/B/C",
                                                "[A/*/C]",      "A/*",
                                                "A/+",          "[A/*",
                                                "LLM@A/",       "LLM@[A/B]",
                                                "regex:A/",     "regex:^A$/",
                                                "regex:[AB]/",  "regex:^[A-B]$/*/C",
                                                "regex:L.M@A/", "B/A/B"};
  std::vector<std::vector<std::string>> stacks = {{}};
  for (std::size_t i = 0; i < stacks.size() && stacks[i].size() < 4; ++i) {
    for (const char* name : {"A", "B", "C", "AB"}) {
      auto longer = stacks[i];
      longer.emplace_back(name);
      stacks.push_back(std::move(longer));
    }
  }
  std::size_t compared = 0;
  for (const std::string& text : expressions) {
    if (!model::RangeExpression::parse(text))
      continue;  // grammar: range_expression_test
    for (const auto& names : stacks) {
      if (names.empty())
        continue;
      for (const char* domain : {"", "LLM"}) {
        expect_same(text, {domain, names});
        ++compared;
      }
      if (HasFailure())
        return;
    }
  }
  EXPECT_GT(compared, 10000u);
}

TEST(Matching, WhatRegularExpressionsAddIsWrittenInTheCommonGround) {
  const std::vector<std::string> patterns = {
      "^layer\\d+$",  "^layer[\\d_]+$", "^\\w+$",         "^\\W$",
      "a\\.b",        "^a{2,3}$",       "a{,3}",          "{x}",
      "^(?:ab|cd)+$", "^a+?$",          "^a??b$",         "^.$",
      "^..$",         "^[^a]$",         "^[[:alpha:]]+$", "x|^$",
      "^caf.$",       "^caf\\S$",       "^[a-z]+$",       "\\[0\\]",
      "^[]x]$",       "\\<b\\>",        "^step\\x20?$",   "^é+$",
      "^[é]$",        "a\\*b",          "^\\t$",          "^[^\\d]$"};
  const std::vector<std::string> names = {
      "layer0", "layer12", "layer_1", "layer", "a.b",  "axb", "aa",  "aaaa", "a{,3}",
      "{x}",    "abcd",    "ab",      "b",     "a",    "",    "x",   "]",    "é",
      "éé",     "café",    "caf\n",   "\n",    "caf ", "ABC", "a*b", "a[0]", "<b>",
      "step ",  "step",    "\t",      "ä",     "zz",   "1",   " "};
  std::size_t compared = 0;
  for (const std::string& pattern : patterns) {
    std::string escaped;  // what the grammar of expressions takes for its own
    bool bracket = false;
    for (const char c : pattern) {
      bracket = c == '[' ? true : c == ']' ? false : bracket;
      if (!bracket && std::string_view("/@,").find(c) != std::string_view::npos)
        escaped += '\\';
      escaped += c;
    }
    const auto parsed = model::RangeExpression::parse("regex:" + escaped + "/*/zzz");
    if (!parsed || parsed->parts().elements.front().text != pattern)
      continue;  // the grammar reads it otherwise
    std::string refusal;
    const auto plan = plan_of(parsed->text(), &refusal);
    if (plan == nullptr) {
      EXPECT_NE(refusal.find("POSIX"), std::string::npos) << refusal;
      continue;
    }
    for (const std::string& name : names) {
      ++compared;
      const Stack stack{"", {name, "zzz"}};
      EXPECT_EQ(library(*plan, stack), model(*parsed, stack))
          << pattern << " against '" << name << "'";
    }
  }
  EXPECT_GT(compared, 700u);
}

TEST(Matching, RandomPatternsMeanTheSameOrAreRefused) {
  std::mt19937 random(11);
  const std::vector<std::string> parts = {"a",
                                          "b",
                                          "ab",
                                          ".",
                                          "\\d",
                                          "\\w",
                                          "[ab]",
                                          "[^a]",
                                          "(a|b)",
                                          "(?:ab)",
                                          "^",
                                          "$",
                                          "é",
                                          "1",
                                          "_",
                                          "\\.",
                                          "[0-9a]",
                                          "[[:digit:]]",
                                          "x"};
  const std::vector<std::string> repeats = {"", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?"};
  const std::vector<std::string> letters = {"a", "b", "1", "_", ".", "é", "x", "\n"};
  int compared = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string pattern;
    for (std::size_t n = 1 + random() % 5; n > 0; --n)
      pattern += parts[random() % parts.size()] + repeats[random() % repeats.size()];
    const auto parsed = model::RangeExpression::parse("regex:" + pattern + "/*/zzz");
    if (!parsed)
      continue;
    const auto plan = plan_of(parsed->text());
    if (plan == nullptr) {
      ++refused;
      continue;
    }
    for (int k = 0; k < 12; ++k) {
      std::string name;
      for (std::size_t n = random() % 5; n > 0; --n)
        name += letters[random() % letters.size()];
      const Stack stack{"", {name, "zzz"}};
      EXPECT_EQ(library(*plan, stack), model(*parsed, stack))
          << pattern << " against '" << name << "'";
      ++compared;
    }
    if (HasFailure())
      return;
  }
  EXPECT_GT(compared, 10000);
  EXPECT_LT(refused, 1000);
}

TEST(Matching, OnlyTheRangeThatBeginsToMatchIsATarget) {
  const auto plan = plan_of("decode/");
  const Piece stack[] = {{"decode", 6}, {"layer0", 6}};
  EXPECT_TRUE(is_target(*plan, {"", 0}, stack, 1));
  EXPECT_FALSE(is_target(*plan, {"", 0}, stack, 2))
      << "decode > layer0 is within decode, which is measured";
}

TEST(Matching, StartEndRanges) {
  const auto text = "request,other";
  const auto plan = plan_of(text);
  const auto expression = model::RangeExpression::parse(text);
  for (const std::string name : {"request", "other", "reques", "x"}) {
    EXPECT_EQ(is_start_end_target(*plan, {"", 0}, {name.data(), name.size()}),
              expression->names_start_end("", name))
        << name;
  }
}

}  // namespace
}  // namespace rangescope
