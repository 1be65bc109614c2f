#include "analyze/chains.hpp"

#include <gtest/gtest.h>

#include <string>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"
#include "model/table_row.hpp"

namespace rangescope::analyze {
namespace chains_test {

/// Rows from the outermost to the innermost, those that one line shows joined by " > ".
std::string text(model::Report report) {
  find_chains(report);
  std::string out;
  for (const model::TableRow& row : report.rows) {
    const model::Region& region = model::region_of(report, row);
    out += region.path.back() + (row.joins_child ? " > " : "\n");
  }
  return out;
}

/// Calls of modules, where nothing else is said.
struct Ranges : testing::SessionBuilder {
  std::uint32_t t = thread(process(1), 2);
  void open(const std::string& name, std::int64_t from, std::int64_t to, bool module = true) {
    range(t, name, from, to);
    session.ranges.back().module = module;
    session.end_ns = std::max(session.end_ns, to);
  }
  std::string rows() { return text(*analyze(session)); }
};

TEST(Chains, ARowAndItsOnlyChildWithTheSameNumbersAreOne) {
  Ranges made;
  made.open("main", 0, 10'000);
  made.open("run", 10, 9'990);
  made.open("loop", 20, 9'980);
  made.open("load", 30, 1'000);
  made.open("compute", 1'000, 9'000);
  EXPECT_EQ(made.rows(), "main > run > loop\nload\ncompute\n");
}

TEST(Chains, MoreThanAHundredthOfTheTimeIsOfInterest) {
  Ranges made;
  made.open("main", 0, 10'000);
  made.open("run", 101, 10'000);
  EXPECT_EQ(made.rows(), "main\nrun\n");
}

TEST(Chains, TwoInstancesOfOneAreTwoNumbers) {
  Ranges made;
  made.open("main", 0, 10'000);
  made.open("half", 0, 5'000);
  made.open("half", 5'000, 10'000);
  EXPECT_EQ(made.rows(), "main\nhalf\n");
}

TEST(Chains, OneSlowInstanceIsOfInterest) {
  Ranges made;
  for (int i = 0; i < 1'000; ++i) {
    const std::int64_t from = i * 20'000;
    const std::int64_t own = i == 500 ? 5'000 : 0;
    made.open("step", from, from + 10'000 + own);
    made.open("forward", from, from + 10'000);
  }
  EXPECT_EQ(made.rows(), "step\nforward\n");
}

TEST(Chains, KernelsOutsideOfTheChildAreOfInterest) {
  for (const bool own_kernel : {false, true}) {
    Ranges made;
    made.open("main", 0, 10'000);
    made.open("run", 0, 9'990);
    made.stream(0, made.device(0, 0), 7);
    made.kernel(made.launch(made.t, 100, 110), "k", 200, 300);
    if (own_kernel)
      made.kernel(made.launch(made.t, 9'995, 9'996), "k", 9'996, 9'997);
    EXPECT_EQ(made.rows(), own_kernel ? "main\nrun\n" : "main > run\n");
  }
}

TEST(Chains, AModulesEstimateDoesNotStandForTheTimeOfARange) {
  Ranges made;
  made.open("step", 0, 10'000, false);
  made.open("Model", 0, 10'000);
  made.open("model (Decoder)", 0, 10'000);
  EXPECT_EQ(made.rows(), "step\nModel > model (Decoder)\n");
}

TEST(Chains, RangesOfTheProgramKeepTheirRows) {
  Ranges made;
  made.open("main", 0, 10'000, false);
  made.open("run", 10, 9'990, false);
  EXPECT_EQ(made.rows(), "main\nrun\n");
}

TEST(Chains, SiblingsThatAreOneRowMayEndAChainOrBeginOne) {
  Ranges made;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t from = i * 10'000;
    made.open("attention", from, from + 10'000);
    made.open("layer_" + std::to_string(i), from, from + 10'000);
    made.open("self", from, from + 10'000);
  }
  EXPECT_EQ(made.rows(), "attention > layer_# > self\n");
}

TEST(Chains, TwoKindsOfSiblingsAreTwoRows) {
  Ranges made;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t from = i * 10'000;
    made.open("block_" + std::to_string(i), from, from + 10'000);
    for (int k = 0; k < 4; ++k)
      made.open("part_" + std::to_string(k), from + k * 2'500, from + (k + 1) * 2'500);
  }
  EXPECT_EQ(made.rows(), "block_#\npart_#\n");
}

TEST(Chains, AnUnclosedRangeKeepsItsRow) {
  Ranges made;
  made.open("main", 0, 10'000);
  made.open("run", 0, 10'000);
  made.open("main", 20'000, model::kOpen);
  made.session.end_ns = 30'000;
  EXPECT_EQ(made.rows(), "main\nrun\n");
}

}  // namespace chains_test
}  // namespace rangescope::analyze
