#include "config/override.hpp"

#include <gtest/gtest.h>

namespace rangescope::config {
namespace override_test {

std::string value_of(std::string_view text) {
  auto value = parse_value(text, {});
  if (!value)
    return "error: " + value.error().what;
  const char* kinds[] = {"null", "bool", "int", "float", "text", "list", "map"};
  return std::string(kinds[static_cast<int>(value->kind)]) + " " + to_flow(*value);
}

TEST(OverrideGrammar, TypesOfPlainValues) {
  EXPECT_EQ(value_of("10"), "int 10");
  EXPECT_EQ(value_of("1_000"), "int 1_000");
  EXPECT_EQ(value_of("-3"), "int -3");
  EXPECT_EQ(value_of("0.5"), "float 0.5");
  EXPECT_EQ(value_of("1e3"), "float 1e3");
  EXPECT_EQ(value_of("-inf"), "float -inf");
  EXPECT_EQ(value_of("TRUE"), "bool true");
  EXPECT_EQ(value_of("null"), "null null");
  EXPECT_EQ(value_of("NULL"), "null null");
  EXPECT_EQ(value_of(""), "text ''");
  EXPECT_EQ(value_of("hello"), "text hello");
  EXPECT_EQ(value_of("hello there"), "text hello there");
  EXPECT_EQ(value_of("  padded  "), "text padded");
  EXPECT_EQ(value_of("007"), "text 007");
  EXPECT_EQ(value_of("prefill;decode"), "text prefill;decode");
  EXPECT_EQ(value_of("LLM@*"), "text LLM@*");
  EXPECT_EQ(value_of("A::A1"), "text 'A::A1'");
  EXPECT_EQ(value_of("regex:.*(gemm|conv).*"), "text 'regex:.*(gemm|conv).*'");
  EXPECT_EQ(value_of("regex:/[AB]/"), "text 'regex:/[AB]/'");
  EXPECT_EQ(value_of("a=b"), "text a=b");
}

TEST(OverrideGrammar, Quotes) {
  EXPECT_EQ(value_of("'10'"), "text '10'");
  EXPECT_EQ(value_of("\"a, b\""), "text 'a, b'");
  EXPECT_EQ(value_of(R"('it\'s')"), "text 'it''s'");
  EXPECT_EQ(value_of(R"('a\b')"), R"(text 'a\b')");
  EXPECT_EQ(value_of(R"('a\\')"), R"(text 'a\')");
  EXPECT_EQ(value_of("'open"), "error: the quote is not closed in 'open");
}

TEST(OverrideGrammar, EscapesInPlainText) {
  EXPECT_EQ(value_of(R"(a\,b)"), "text 'a,b'");
  EXPECT_EQ(value_of(R"(\[A)"), "text '[A'");
  EXPECT_EQ(value_of(R"(tail\ )"), "text 'tail '");
  EXPECT_EQ(value_of(R"(w\z)"), R"(text 'w\z')");
}

TEST(OverrideGrammar, ListsAndMaps) {
  EXPECT_EQ(value_of("[]"), "list []");
  EXPECT_EQ(value_of("[a,b,10]"), "list [a, b, 10]");
  EXPECT_EQ(value_of("[ a , [b, c] ]"), "list [a, [b, c]]");
  EXPECT_EQ(value_of("[SpeedOfLight,Occupancy]"), "list [SpeedOfLight, Occupancy]");
  EXPECT_EQ(value_of("[decode/*/x,'a,b']"), "list [decode/*/x, 'a,b']");
  EXPECT_EQ(value_of("[regex:/[AB]/,x]"), "list ['regex:/[AB]/', x]");
  EXPECT_EQ(value_of("{}"), "map {}");
  EXPECT_EQ(value_of("{A:1,B:two}"), "map {A: 1, B: two}");
  EXPECT_EQ(value_of("{a:[1,2],b:{c:d}}"), "map {a: [1, 2], b: {c: d}}");
  EXPECT_EQ(value_of("{a:}"), "map {a: ''}");
  EXPECT_EQ(value_of("[a"), "error: [a is not closed");
  EXPECT_EQ(value_of("{a:1,a:2}"), "error: key 'a' is in the map twice");
}

TEST(OverrideGrammar, RefusesSweeps) {
  EXPECT_EQ(value_of("a,b"), "error: sweeps over several values are not supported");
  EXPECT_EQ(value_of("f(a,b)"), "text 'f(a,b)'");
}

TEST(OverrideGrammar, Prefixes) {
  EXPECT_EQ(parse_override("+a.b=1", {})->key, "a.b");
  EXPECT_FALSE(parse_override("~a.b", {})->value);
  EXPECT_FALSE(parse_override("++a.b=1", {}));
  EXPECT_FALSE(parse_override("~a.b=1", {}));
  EXPECT_EQ(parse_override("ncu@pipeline.second=quick", {}).error().what,
            "'ncu@pipeline.second' is not a key: '@' is not allowed in one");
  EXPECT_FALSE(parse_override("novalue", {}).has_value());
  EXPECT_FALSE(parse_override("a b=1", {}).has_value());
  EXPECT_TRUE(looks_like_override("run.keep=5"));
  EXPECT_TRUE(looks_like_override("~workload.env"));
  EXPECT_FALSE(looks_like_override("--set=full"));
  EXPECT_FALSE(looks_like_override("./a=b"));
  EXPECT_FALSE(looks_like_override("file.sqlite"));
}

}  // namespace override_test
}  // namespace rangescope::config
