#include "analyze/rows.hpp"

#include <gtest/gtest.h>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"
#include "model/table_row.hpp"

namespace rangescope::analyze {
namespace rows_test {

/// "  layer_# x4: 8 of 10 ns" a row.
std::string text(const model::Report& report) {
  std::string out;
  for (const model::TableRow& row : report.rows) {
    const model::Region& region = model::region_of(report, row);
    out += std::string(row.depth * 2, ' ') + region.path.back();
    if (row.siblings > 1)
      out += " x" + std::to_string(row.siblings);
    out += ": " + std::to_string(region.occurrences) + " of " +
           std::to_string(static_cast<int>(region.wall.per_occurrence_ns.median)) + " ns\n";
  }
  return out;
}

struct Layers : testing::SessionBuilder {
  std::uint32_t t = thread(process(1), 2);
  /// Two steps of `count` layers, each with `attn` inside; layer i takes 10 (i + 1) ns.
  explicit Layers(int count) {
    std::int64_t at = 0;
    for (int step = 0; step < 2; ++step) {
      const std::int64_t begin = at;
      const std::size_t outer = session.ranges.size();
      range(t, "step", begin, begin);
      for (int i = 0; i < count; ++i) {
        const std::int64_t length = 10 * (i + 1);
        range(t, "layer_" + std::to_string(i), at, at + length);
        range(t, "attn", at + 1, at + 6);
        at += length;
      }
      session.ranges[outer].end_ns = ++at;
    }
    session.end_ns = at;
  }
};

TEST(Rows, FourSiblingsThatDifferByANumberAreOne) {
  EXPECT_EQ(text(*analyze(Layers(4).session)),
            "step: 2 of 101 ns\n"
            "  layer_# x4: 8 of 25 ns\n"
            "    attn: 8 of 5 ns\n");
}

TEST(Rows, ThreeStayApart) {
  EXPECT_EQ(text(*analyze(Layers(3).session)),
            "step: 2 of 61 ns\n"
            "  layer_0: 2 of 10 ns\n"
            "    attn: 2 of 5 ns\n"
            "  layer_1: 2 of 20 ns\n"
            "    attn: 2 of 5 ns\n"
            "  layer_2: 2 of 30 ns\n"
            "    attn: 2 of 5 ns\n");
}

TEST(Rows, NamesThatSayWhatTheyAreStayApart) {
  testing::SessionBuilder b;
  const auto t = b.thread(b.process(1), 2);
  int at = 0;
  for (const char* name : {"fp16", "fp32", "fp64", "fp8", "conv2d"})
    b.range(t, name, at, at + 5), at += 10;
  EXPECT_EQ(analyze(b.session)->rows.size(), 5);
}

TEST(Rows, SumsAreThoseOfTheMembers) {
  const auto report = analyze(Layers(5).session);
  ASSERT_EQ(report->rows.size(), 3);
  const model::Region& layers = *report->rows[1].merged;
  EXPECT_EQ(layers.wall.inclusive_ns, 300);
  EXPECT_EQ(layers.wall.exclusive_ns, 250);
  EXPECT_EQ(layers.wall.per_occurrence_ns.max, 50);
  EXPECT_EQ(report->rows[1].members.size(), 5);
  EXPECT_EQ(report->rows[2].members.size(), 5);
}

}  // namespace rows_test
}  // namespace rangescope::analyze
