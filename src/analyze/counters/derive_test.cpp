#include "analyze/counters/derive.hpp"

#include <gtest/gtest.h>

namespace rangescope::analyze {
namespace derive_test {

model::MetricGroup group(const char* formula, std::vector<model::GroupCounter> counters) {
  model::MetricGroup g;
  g.name = "g";
  g.counters = std::move(counters);
  model::GroupMetric metric;
  metric.name = "m";
  metric.unit = "byte/s";
  metric.formula = base::Formula::parse(formula).value();
  g.metrics.push_back(std::move(metric));
  return g;
}

model::Session session() {
  model::Session s;
  s.metrics = {{"dram__bytes.sum", "byte", "cupti"}, {"gpu__time_duration.sum", "ns", "cupti"}};
  s.measurements.resize(2);
  s.measurements[0].values = {{0, 600}, {1, 3}};
  s.measurements[1].values = {{0, 800}};
  return s;
}

TEST(Derive, EvaluatesEachMeasurementThatHasTheCounters) {
  model::Session s = session();
  const auto g =
      group("bytes / time",
            {{"bytes", {"dram__bytes.sum"}, {}}, {"time", {"gpu__time_duration.sum"}, {}}});
  derive(s, {&g, 1});
  ASSERT_EQ(s.metrics.size(), 3u);
  EXPECT_EQ(s.metrics[2].source, "derived: bytes / time");
  ASSERT_EQ(s.measurements[0].values.size(), 3u);
  EXPECT_DOUBLE_EQ(s.measurements[0].values[2].value, 200);
  EXPECT_EQ(s.measurements[1].values.size(), 1u) << "no time was measured there";
}

TEST(Derive, TakesTheFirstNameThatTheSessionHas) {
  model::Session s = session();
  const auto g = group("bytes", {{"bytes", {"no__such.sum", "dram__bytes.sum"}, {}}});
  derive(s, {&g, 1});
  EXPECT_DOUBLE_EQ(s.measurements[1].values.back().value, 800);
}

TEST(Derive, UsesAConstantOnlyWhereThePlannerPutOne) {
  model::Session s = session();
  const auto unresolved =
      group("bytes + fp8", {{"bytes", {"dram__bytes.sum"}, {}}, {"fp8", {"no__such.sum"}, 0.0}});
  derive(s, {&unresolved, 1});
  EXPECT_EQ(s.metrics.size(), 2u) << "not collected is not zero";
  const auto resolved =
      group("bytes + fp8", {{"bytes", {"dram__bytes.sum"}, {}}, {"fp8", {}, 0.0}});
  derive(s, {&resolved, 1});
  EXPECT_DOUBLE_EQ(s.measurements[0].values.back().value, 600);
}

}  // namespace derive_test
}  // namespace rangescope::analyze
