#include "model/range_expression.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/source_dir.hpp"
#include "base/text.hpp"

namespace rangescope::model {
namespace range_expression_test {

using Strings = std::vector<std::string>;

/// One NVTX state of the truth tables, by its name there (tests/golden/nvtx-grammar, see its
/// README).
struct NamedState {
  std::string name;
  RangeState state;
};

RangeState push_pop(std::string_view domain, std::vector<std::string_view> names) {
  return {{{domain, std::move(names)}}, {}};
}
RangeState start_end(std::string_view domain, std::vector<std::string_view> names) {
  RangeState state;
  for (const auto name : names)
    state.start_end.push_back({domain, name});
  return state;
}

std::vector<NamedState> truth_states() {
  std::vector<NamedState> states;
  for (const char* stack :
       {"A",  "B", "A.B", "B.A",  "A.X.B", "A.X.Y.B", "X.A", "A.X", "X.A.Y", "A.A",
        "A1", "a", "AA",  "A[i]", "x/y",   "u@v",     "m,n", "p*q", "w\\z",  "s:t"}) {
    std::vector<std::string_view> names;
    for (const auto name : base::split(stack, '.'))
      names.push_back(name);
    states.push_back({std::string("pp_") + stack, push_pop("", names)});
  }
  states.push_back({"pp_D1:A", push_pop("D1", {"A"})});
  states.push_back({"pp_my/dom:A", push_pop("my/dom", {"A"})});
  states.push_back({"pp_A+D1:B", {{{"", {"A"}}, {"D1", {"B"}}}, {}}});
  states.push_back(
      {"pp_other_thread_A", push_pop("", {"Z"})});  // A is open on a thread that does not launch
  states.push_back({"pp_empty", push_pop("", {""})});
  states.push_back({"se_A", start_end("", {"A"})});
  states.push_back({"se_B", start_end("", {"B"})});
  states.push_back({"se_A,B", start_end("", {"A", "B"})});
  states.push_back({"se_B,A", start_end("", {"B", "A"})});
  states.push_back({"se_D1:A", start_end("D1", {"A"})});
  states.push_back({"se_A[i]", start_end("", {"A[i]"})});
  states.push_back({"se_s:t", start_end("", {"s:t"})});
  states.push_back({"se_A+pp_B", {{{"", {"B"}}}, {{"", "A"}}}});
  states.push_back({"none", {}});
  return states;
}

/// Undoes Python's repr of a string, as the tables hold their expressions.
std::string unrepr(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size())
      ++i;
    out += text[i];
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(std::string(base::source_dir) + "/tests/golden/nvtx-grammar/" + file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

class TruthTable : public testing::TestWithParam<const char*> {};

TEST_P(TruthTable, EveryRowIsReproduced) {
  const auto states = truth_states();
  ASSERT_EQ(states.size(), 34u);
  std::size_t rows = 0;
  for (const std::string& line : lines_of(GetParam())) {
    if (!line.starts_with('\''))
      continue;
    const std::size_t end = line.find("' ", 1);
    ASSERT_NE(end, std::string::npos) << line;
    const std::string expression = unrepr(std::string_view(line).substr(1, end - 1));
    const std::string verdict(base::trim(std::string_view(line).substr(end + 1)));
    ++rows;
    const auto parsed = RangeExpression::parse(expression);
    if (verdict.starts_with("rc=")) {
      // Rejected, or accepted without matching anything: both are refused here, except literals
      // that no state holds.
      if (expression == "w\\\\z/" || expression == "w\\\\\\\\z/") {
        ASSERT_TRUE(parsed) << expression;
        for (const NamedState& each : states)
          EXPECT_FALSE(parsed->matches(each.state)) << expression << " " << each.name;
      } else {
        EXPECT_FALSE(parsed) << expression;
      }
      continue;
    }
    ASSERT_TRUE(parsed) << expression << ": " << base::to_string(parsed.error());
    std::set<std::string> expected, seen;
    std::string_view left = verdict;
    while (!left.empty()) {
      const std::size_t bar = left.find(" | ");
      expected.emplace(left.substr(0, bar));
      left = bar == std::string_view::npos ? std::string_view{} : left.substr(bar + 3);
    }
    for (const NamedState& each : states) {
      if (parsed->matches(each.state))
        seen.insert(each.name);
    }
    EXPECT_EQ(seen, expected) << expression;
  }
  EXPECT_GE(rows, 59u);
}
INSTANTIATE_TEST_SUITE_P(Ncu,
                         TruthTable,
                         testing::Values("nvtx_grammar_2022.3.txt", "nvtx_grammar_2024.1.txt"));

TEST(TruthTableOfNames, AMessageIsTheNameAndAPayloadIsNot) {
  const std::vector<NamedState> states = {{"named_A", push_pop("", {"A"})},
                                          {"attrmsg_only_A", push_pop("", {"A"})},
                                          {"payload_u64_5", push_pop("", {""})},
                                          {"payload_u64_5_named_A", push_pop("", {"A"})},
                                          {"payload_i32_5", push_pop("", {""})},
                                          {"payload_json", push_pop("", {""})},
                                          {"payload_regjson", push_pop("", {""})}};
  std::size_t rows = 0;
  for (const std::string& line : lines_of("nvtx_grammar_names.txt")) {
    if (!line.starts_with("ncu "))
      continue;
    const std::size_t open = line.find('\''), close = line.find('\'', open + 1);
    const auto parsed = RangeExpression::parse(line.substr(open + 1, close - open - 1));
    ASSERT_TRUE(parsed);
    std::string seen;
    for (const NamedState& each : states) {
      if (parsed->matches(each.state))
        seen += (seen.empty() ? "['" : ", '") + each.name + "'";
    }
    EXPECT_EQ(seen.empty() ? "rc=0" : seen + "]",
              base::trim(std::string_view(line).substr(close + 1)))
        << line;
    ++rows;
  }
  EXPECT_EQ(rows, 12u);
}

std::string refusal(std::string_view text) {
  const auto parsed = RangeExpression::parse(text);
  return parsed ? "accepted"
                : parsed.error().what.substr(std::string("range expression: ").size()) + " | " +
                      parsed.error().hint;
}

TEST(RangeExpression, RefusalsSayWhyAndWhatInstead) {
  EXPECT_EQ(refusal(""), "it is empty, which matches nothing | ");
  EXPECT_EQ(refusal("[A]"), "'[' and ']' around a single name match nothing | Write '[A'.");
  EXPECT_EQ(refusal("A,"), "an empty name next to ',' matches nothing | Write 'A' (start/end).");
  EXPECT_EQ(refusal("A/,B/"),
            "',' joins start/end ranges only; a list of push/pop ranges matches nothing | "
            "Write 'A/' and 'B/', each as a separate expression.");
  EXPECT_EQ(
      refusal("A/A"),
      "a name cannot be in a stack expression twice: it means its topmost instance | Write 'A/'.");
  EXPECT_EQ(refusal("\"A/\""), "quotes are not part of the syntax and match nothing | Write 'A/'.");
  EXPECT_EQ(refusal("A/ "),
            "white space around it is significant and matches nothing | Write 'A/'.");
  EXPECT_EQ(refusal("layer*/"),
            "'*' inside a name or domain is a letter, not a wildcard | Write 'regex:^layer.*/'.");
  EXPECT_EQ(refusal("*@A/"),
            "'*' inside a name or domain is a letter, not a wildcard | Write 'regex:.*@^A$/'.");
  EXPECT_EQ(refusal("*/B"), "a quantifier cannot come first | Write 'B/'.");
  EXPECT_EQ(refusal("@A/"), "there is no domain before '@' | Write 'A/'.");
  EXPECT_EQ(refusal("A@B@C/"), "there may be one domain: '@' in a name needs a backslash | ");
  EXPECT_EQ(refusal("/"), "there is no name in it | ");
  EXPECT_EQ(refusal("A[i]/"), "'[' inside a name needs a backslash | Write 'A\\[i\\]/'.");
  EXPECT_EQ(refusal("regex:[A-B]/"),
            "the '[' at the start is read as an anchor, not as a character class | Write "
            "'regex:/[A-B]/'.");
  EXPECT_EQ(refusal("regex:Range[0-9]"),
            "the ']' at the end is read as an anchor, not as a character class | "
            "Write 'regex:Range[0-9]/' or 'regex:Range[0-9/]' (start/end).");
  EXPECT_EQ(refusal("A;B/"),
            "a list with ';' matches nothing (a name that holds ';' can be had with regex:) | "
            "Write 'A/' and 'A' (start/end) and 'B/', each as a separate expression.");
  EXPECT_EQ(refusal("LLM@"),
            "there is no range after the domain | Write 'regex:^LLM$@.*/' or 'regex:^LLM$@.*' "
            "(start/end).");
  EXPECT_NE(refusal("regex:(A/").find("not a regular expression"), std::string::npos);
}

TEST(RangeExpression, OfficialExamplesAreTaken) {
  for (const char* text : {"Domain-A@A_range/",
                           "[A_range",
                           "A_range/*/B range",
                           "B range]",
                           "Domain-A@A_range",
                           "A_range,B range",
                           "regex:Domain[A-Z]@Range[0-9]/",
                           "regex:[0-9]domainA@/[0-9]rangeA,RangeC[0-9/]",
                           "A_range\\[i\\]"}) {
    EXPECT_TRUE(RangeExpression::parse(text)) << text;
  }
  EXPECT_FALSE(RangeExpression::parse("DomainA@RangeA,DomainB@RangeB"));
  const auto both = RangeExpression::parse("regex:[0-9]domainA@/[0-9]rangeA,RangeC[0-9/]");
  EXPECT_TRUE(both->matches(start_end("3domainA", {"RangeC7", "1rangeA"})));
  EXPECT_FALSE(both->matches(start_end("3domainA", {"RangeC7"})));
}

TEST(RangeExpression, AStateOfSeveralDomainsIsMatchedByDomain) {
  const RangeState state{{{"", {"request", "decode"}}, {"LLM", {"decode_all"}}}, {{"", "batch"}}};
  EXPECT_TRUE(RangeExpression::parse("request/decode")->matches(state));
  EXPECT_TRUE(RangeExpression::parse("LLM@[decode_all")->matches(state));
  EXPECT_FALSE(RangeExpression::parse("decode_all/")->matches(state));
  EXPECT_TRUE(RangeExpression::parse("regex:.*@decode_all/")->matches(state));
  EXPECT_TRUE(RangeExpression::parse("regex:default@^batch$")->matches(state));
  EXPECT_FALSE(RangeExpression::parse("batch/")->matches(state));
}

TEST(RangeExpression, NamesThatAreNotUtf8AreMatchedByRegularExpressionsToo) {
  EXPECT_TRUE(RangeExpression::parse("regex:^a.b$/")
                  ->matches(push_pop("",
                                     {"a\xe5\xb1\xa4"
                                      "b"})));
  EXPECT_TRUE(RangeExpression::parse("a\xff/")->matches(push_pop("", {"a\xff"})));
}

std::string normalized(std::string_view written) {
  const auto result = normalize(written);
  if (!result)
    return "refused: " + result.error().what;
  std::string text;
  for (const NormalizedTerm& term : result->terms) {
    if (!text.empty())
      text += " ; ";
    text += term.push_pop.value_or("-") + " | " + term.start_end.value_or("-");
  }
  return text;
}

TEST(Normalize, PlainFormsBecomeExpressionsOfBothKinds) {
  EXPECT_EQ(normalized("decode"), "decode/ | decode");
  EXPECT_EQ(normalized("decode*"), "regex:^decode.*/ | regex:^decode.*");
  EXPECT_EQ(normalized("LLM@*"), "regex:^LLM$@.*/ | regex:^LLM$@.*");
  EXPECT_EQ(normalized("LLM@dec*"), "regex:^LLM$@^dec.*/ | regex:^LLM$@^dec.*");
  EXPECT_EQ(normalized("*@decode"), "regex:.*@^decode$/ | regex:.*@^decode$");
  EXPECT_EQ(normalized("*"), "regex:.*/ | regex:.*");
  EXPECT_EQ(normalized("A::A1"), "A::A1/ | A::A1");
  EXPECT_EQ(normalized("prefill;decode"), "prefill/ | prefill ; decode/ | decode");
  EXPECT_EQ(normalized("A/,B/"), "A/ | - ; B/ | -");
  EXPECT_EQ(normalized("layer*.attn"), "regex:^layer.*\\.attn$/ | regex:^layer.*\\.attn$");
  EXPECT_EQ(normalized("regex:layer.*"), "regex:layer.*/ | regex:layer.*");
  EXPECT_EQ(normalized("regex:/[AB/]"), "regex:/[AB]/ | regex:/[AB/]");
  EXPECT_EQ(normalized(" 'decode/' "), "decode/ | -");
  EXPECT_EQ(normalized("A;regex:x{1,2};y/;regex:z/"),
            "A/ | A ; regex:x{1,2};y/ | - ; regex:z/ | -");
}

TEST(Normalize, TheDomainMayStandWhereNsysHasIt) {
  EXPECT_EQ(normalized("step@LLM"), "LLM@step/ | LLM@step");
  EXPECT_EQ(normalized("step/@LLM"), "LLM@step/ | -");
  EXPECT_EQ(normalized("step@default"), "step/ | step");
  EXPECT_EQ(normalized("default@step/"), "step/ | -");
  EXPECT_EQ(normalized("default@[step/gemm"), "[step/gemm | -");
  EXPECT_EQ(normalized("step@NCCL;decode/"), "NCCL@step/ | NCCL@step ; decode/ | -");
  // In ncu's order, or in either.
  EXPECT_EQ(normalized("LLM@step"), "LLM@step/ | LLM@step");
  EXPECT_EQ(normalized("STEP@LLM"), "STEP@LLM/ | STEP@LLM");
  EXPECT_EQ(normalized("lib@step"), "lib@step/ | lib@step");
  EXPECT_EQ(normalized("regex:^default$@step/"), "regex:^default$@step/ | -");
  const std::string note = normalize("step@LLM")->notes.front();
  EXPECT_EQ(note, "'step@LLM' is in nsys's order: taken as 'LLM@step'.");
}

TEST(Normalize, APathAsTablesPrintItIsAnExpression) {
  EXPECT_EQ(normalized("decode > layer_0"), "[decode/layer_0 | -");
  EXPECT_EQ(normalized("LLM@step > aten::mm"), "LLM@[step/aten::mm | -");
  EXPECT_EQ(normalized("decode > attn/qkv [0]"), "[decode/attn\\/qkv \\[0\\] | -");
  EXPECT_EQ(normalized("decode > layer_*"), "regex:[^decode$/^layer_.*$ | -");
  EXPECT_EQ(normalized("step > step"), "regex:[^step$/^step$ | -");
  EXPECT_EQ(normalized("a > b;c"), "[a/b | - ; c/ | c");
  EXPECT_EQ(normalized("a > b/"), "a > b/ | -");  // a range of that name
  EXPECT_EQ(normalized("regex:^a > b$"), "regex:^a > b$/ | regex:^a > b$");
}

TEST(Normalize, AStartEndRangeAsTablesPrintItIsOne) {
  EXPECT_EQ(normalized("request [start/end]"), "- | request");
  EXPECT_EQ(normalized("LLM@request, 7 [start/end]"), "- | LLM@request\\, 7");
  EXPECT_EQ(normalized("LLM@req* [start/end]"), "- | regex:^LLM$@^req.*$");
  EXPECT_EQ(normalized("request [start/end];decode"), "- | request ; decode/ | decode");
}

TEST(Normalize, WhatSaysItsKindStays) {
  EXPECT_EQ(normalized("decode/"), "decode/ | -");
  EXPECT_EQ(normalized("[A/*/B]"), "[A/*/B] | -");
  EXPECT_EQ(normalized("A,B"), "- | A,B");
  EXPECT_EQ(normalized("regex:^decode.*/"), "regex:^decode.*/ | -");
}

TEST(Normalize, TrapsAreRepairedAndExplained) {
  EXPECT_EQ(normalized("layer*/"), "regex:^layer.*/ | -");
  EXPECT_EQ(normalized("decode/layer*"), "regex:^decode$/^layer.*/ | -");
  EXPECT_EQ(normalized("[A]"), "[A | -");
  EXPECT_EQ(normalized("A,"), "- | A");
  EXPECT_EQ(normalized("A/A"), "A/ | -");
  EXPECT_EQ(normalized("@A/"), "A/ | -");
  EXPECT_EQ(normalized("A[i]/"), "A\\[i\\]/ | -");
  EXPECT_EQ(normalized("layer[0]"), "layer\\[0\\]/ | layer\\[0\\]");
  EXPECT_EQ(normalized("step/layer[0]"), "step/layer\\[0\\]/ | -");
  EXPECT_EQ(normalized("[tag] x"), "\\[tag\\] x/ | \\[tag\\] x");
  EXPECT_EQ(normalized("[step/layer[0]"), "[step/layer\\[0\\] | -");
  EXPECT_EQ(normalized("layer[*]"), "regex:^layer\\[.*\\]$/ | regex:^layer\\[.*\\]$");
  EXPECT_EQ(normalized("*/B"), "B/ | -");
  EXPECT_TRUE(normalized("").starts_with("refused"));
  EXPECT_TRUE(normalized("A@B@C/").starts_with("refused"));
  EXPECT_TRUE(normalized("regex:(").starts_with("refused"));
  const auto result = normalize("layer*/");
  ASSERT_EQ(result->notes.size(), 1u);
  EXPECT_EQ(result->notes[0],
            "'layer*/': '*' inside a name or domain is a letter, not a wildcard; taken as "
            "'regex:^layer.*/'.");
}

TEST(Normalize, EverythingThatComesOutParses) {
  // Every string of length up to 5 over the grammar's characters: no crash, and only what parses
  // leaves.
  const std::string_view letters = "A[]/*,@;\\\" r";
  std::vector<std::string> queue{""};
  std::size_t taken = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::string text = queue[i];
    if (text.size() < 4) {
      for (const char c : letters)
        queue.push_back(text + c);
    }
    for (const std::string& each : {text, "regex:" + text}) {
      (void)RangeExpression::parse(each);
      const auto result = normalize(each);
      if (!result)
        continue;
      ++taken;
      ASSERT_FALSE(result->terms.empty()) << each;
      for (const NormalizedTerm& term : result->terms) {
        ASSERT_TRUE(term.push_pop || term.start_end) << each;
        if (term.push_pop) {
          const auto parsed = RangeExpression::parse(*term.push_pop);
          ASSERT_TRUE(parsed) << each << " -> " << *term.push_pop;
          EXPECT_EQ(parsed->parts().kind, RangeKind::kPushPop) << each << " -> " << *term.push_pop;
        }
        if (term.start_end) {
          const auto parsed = RangeExpression::parse(*term.start_end);
          ASSERT_TRUE(parsed) << each << " -> " << *term.start_end;
          EXPECT_EQ(parsed->parts().kind, RangeKind::kStartEnd)
              << each << " -> " << *term.start_end;
        }
      }
    }
  }
  EXPECT_GT(taken, 1000u);
}

TEST(ExpressionOf, SelectsTheRegionThatItWasMadeFrom) {
  const std::vector<std::tuple<std::string, Strings, std::string>> cases = {
      {"", {"decode"}, "decode/"},
      {"", {"decode", "layer0"}, "[decode/layer0"},
      {"LLM", {"decode_all"}, "LLM@decode_all/"},
      {"", {"a/b [x], y@z"}, "a\\/b \\[x\\]\\, y\\@z/"},
      {"", {"A", "A"}, "regex:[^A$/^A$"},
      {"", {"a\\", "b"}, "regex:[^a\\\\$/^b$"},
      {"", {"a\\"}, "regex:^a\\\\$/"},
      {"", {""}, "regex:^$/"},
      {"", {"  spaces  "}, "regex:^  spaces  $/"},
      {"", {"two\nlines\t"}, "regex:^two\\x0alines\\x09$/"},
      {"my/dom", {"A", "B"}, "my/dom@[A/B"}};
  for (const auto& [domain, path, text] : cases) {
    EXPECT_EQ(expression_of(domain, path, RangeKind::kPushPop), text);
    const auto parsed = RangeExpression::parse(text);
    ASSERT_TRUE(parsed) << text;
    const std::vector<std::string_view> names(path.begin(), path.end());
    EXPECT_TRUE(parsed->matches_stack(domain, names)) << text;
  }
  EXPECT_EQ(expression_of("", Strings{"request, 1"}, RangeKind::kStartEnd), "request\\, 1");
  EXPECT_TRUE(RangeExpression::parse("request\\, 1")->names_start_end("", "request, 1"));
}

}  // namespace range_expression_test
}  // namespace rangescope::model
