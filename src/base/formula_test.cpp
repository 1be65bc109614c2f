#include "base/formula.hpp"

#include <gtest/gtest.h>
#include <map>

namespace rangescope::base {
namespace formula_test {

std::optional<double> value(std::string_view text,
                            const std::map<std::string, double, std::less<>>& names = {}) {
  const auto formula = Formula::parse(text);
  EXPECT_TRUE(formula) << to_string(formula.error());
  if (!formula)
    return std::nullopt;
  return formula->evaluate([&](std::string_view name) -> std::optional<double> {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Formula, FollowsPrecedence) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("8 / 2 / 2"), 2);
  EXPECT_EQ(value("5 - 2 - 1"), 2);
  EXPECT_EQ(value("-2 * 3 + 1e3"), 994);
  EXPECT_EQ(value("max(1, min(7, 3)) - 1"), 2);
}

TEST(Formula, LooksNamesUp) {
  EXPECT_EQ(value("2 * ffma + fadd", {{"ffma", 10}, {"fadd", 1}}), 21);
  EXPECT_EQ(value("a + b", {{"a", 1}}), std::nullopt);
}

TEST(Formula, HasNoValueWhereItIsUndefined) {
  EXPECT_EQ(value("1 / 0"), std::nullopt);
  EXPECT_EQ(value("hits / all", {{"hits", 0}, {"all", 0}}), std::nullopt);
}

TEST(Formula, ListsItsNamesOnce) {
  EXPECT_EQ(Formula::parse("a + b.c * a")->names(), (std::vector<std::string>{"a", "b.c"}));
}

TEST(Formula, RefusesWithTheColumn) {
  const std::map<std::string, std::string> wrong = {{"1 +", "column 4"},
                                                    {"(1", "column 3"},
                                                    {"1 1", "column 3"},
                                                    {"", "column 1"},
                                                    {"f(1)", "column 3"},
                                                    {"a $ b", "column 3"}};
  for (const auto& [text, where] : wrong) {
    const auto formula = Formula::parse(text);
    ASSERT_FALSE(formula) << text;
    EXPECT_EQ(formula.error().where, where) << text;
    EXPECT_EQ(formula.error().code, Code::kConfig);
  }
  EXPECT_FALSE(Formula::parse(std::string(10000, '(')));
}

}  // namespace formula_test
}  // namespace rangescope::base
