// A metric group: hardware counters that are collected together and what is computed from them.
// Loaded from conf/metrics/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/formula.hpp"

namespace rangescope::model {

/// An alias in the group's formulas, and the CUPTI metrics that it may be: the first that
/// the chip has.
struct GroupCounter {
  std::string alias;
  std::vector<std::string> any;  ///< "dram__bytes.sum"; chips name some counters differently
  std::optional<double>
      absent;  ///< value where the chip has none of them; without it the group needs the counter
};

struct GroupMetric {
  std::string name;   ///< "dram_throughput": the key in reports
  std::string title;  ///< column head
  std::string unit;   ///< "ns", "byte", "ratio", "FLOP", "FLOP/s", "count", ...
  base::Formula formula;
  std::string explain;  ///< one or two sentences
  bool column = false;  ///< shown in the region table
};

struct MetricGroup {
  std::string name, title, explain;
  std::string file;  ///< where it was loaded from
  std::vector<GroupCounter> counters;
  std::vector<GroupMetric> metrics;
};

}  // namespace rangescope::model
