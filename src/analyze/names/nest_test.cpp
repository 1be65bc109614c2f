#include "analyze/names/nest.hpp"

#include <gtest/gtest.h>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace {

using testing::SessionBuilder;

std::string tree(SessionBuilder& built, std::string_view separator) {
  nest_names(built.session, separator);
  const auto report = analyze(built.session);
  EXPECT_TRUE(report.has_value());
  std::string text;
  for (const model::Region& region : report->regions)
    text += std::string(region.depth, ' ') + region.path.back() + " x" +
            std::to_string(region.occurrences) + "\n";
  return text;
}

// Pushed as the guides name them: levels within the name, with and without the outer range.
void push(SessionBuilder& built) {
  const auto thread = built.thread(built.process(1), 1);
  built.range(thread, "A", 0, 100);
  built.range(thread, "A::A1", 10, 20);
  built.range(thread, "A::A2", 30, 60);
  built.range(thread, "A::A2::x", 40, 50);
  built.range(thread, "B::B1", 200, 300);
  built.range(thread, "::C::", 400, 500);
}

TEST(Nest, LevelsOfANameAreRangesWithinRanges) {
  SessionBuilder built;
  push(built);
  EXPECT_EQ(tree(built, "::"), "A x1\n A1 x1\n A2 x1\n  x x1\nB x1\n B1 x1\nC x1\n");
}

TEST(Nest, NothingChangesUnasked) {
  SessionBuilder built;
  push(built);
  EXPECT_EQ(tree(built, ""), "A x1\n A::A1 x1\n A::A2 x1\n  A::A2::x x1\nB::B1 x1\n::C:: x1\n");
}

TEST(Nest, PathsOfResultsFollow) {
  SessionBuilder built;
  const auto name = [&](std::string_view text) { return built.session.strings.intern(text); };
  model::Measurement result;
  result.ranges = {{.name = name("A")}, {.name = name("A::A1")}, {.name = name("z::y")}};
  built.session.measurements.push_back(result);
  nest_names(built.session, "::");
  std::string path;
  for (const auto& open : built.session.measurements[0].ranges)
    path += std::string(built.session.strings.view(open.name)) + "/";
  EXPECT_EQ(path, "A/A1/z/y/");
}

}  // namespace
}  // namespace rangescope::analyze
