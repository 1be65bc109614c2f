// What CUPTI knows about metrics, through librangescope_inject.so (wire/planner.hpp). Needs neither
// a GPU nor CUPTI at build time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/metric_group.hpp"
#include "wire/planner.hpp"

namespace rangescope::collect::native {

struct MetricInfo {
  std::string name, description, hardware, dimension;
};

/// One metric's part in the cost of a set.
struct MetricCost {
  std::string metric;
  std::size_t alone = 0;  ///< passes of the metric alone
  std::size_t saved = 0;  ///< passes that the set would save without it
  std::string cheaper;    ///< a similar metric that takes fewer passes; "" without one
  std::size_t cheaper_passes = 0;
};

/// Metrics that CUPTI counts together.
struct Configuration {
  std::vector<std::string> metrics;
  std::size_t passes = 0;
};

/// What collecting a set takes.
struct CounterPlan {
  std::string chip;
  std::vector<std::string>
      metrics;  ///< as given to CUPTI, without repetition, configuration by configuration
  std::vector<Configuration> configurations;  ///< each has occurrences of its own
  std::map<std::string, std::string>
      wanted_by;  ///< metric: the groups that want it, "memory,quick"
  std::vector<model::MetricGroup>
      groups;              ///< resolved for the chip: each counter has one name or a constant
  std::size_t passes = 0;  ///< of all configurations
  std::vector<MetricCost> costs;  ///< filled by explain()
  std::vector<std::vector<std::string>>
      together;  ///< metrics that one pass can collect, filled by explain()
  std::vector<std::string> notes;
  std::vector<std::string>
      skipped;  ///< metrics and groups that the chip lacks, where those are left out
};

/// kUsage with the most similar name if `chip` is not among `chips`.
[[nodiscard]] base::Result<void> check_chip(const std::string& chip,
                                            const std::vector<std::string>& chips);

class Planner {
 public:
  /// Loads the library and through it CUPTI. kToolMissing with what to install, when either is not
  /// there.
  [[nodiscard]] static base::Result<Planner> open(const std::filesystem::path& inject_library);

  [[nodiscard]] std::string cupti()
      const;  ///< "CUPTI 13.0.1, /usr/local/cuda/lib64/libcupti.so.13"
  [[nodiscard]] base::Result<std::vector<std::string>> chips() const;
  /// Base names, sorted ("dram__bytes").
  [[nodiscard]] base::Result<std::vector<std::string>> metrics(
      const std::string& chip, wire::planner::MetricKind kind) const;
  [[nodiscard]] base::Result<MetricInfo> describe(const std::string& chip,
                                                  const std::string& metric) const;
  /// Passes of a set, 0: each metric can be counted, but not all in one configuration. kUsage
  /// naming the metric that the chip does not have.
  [[nodiscard]] base::Result<std::size_t> passes(const std::string& chip,
                                                 std::span<const std::string> metrics) const;

  /// Resolves names (groups and CUPTI metrics mixed) for a chip and counts passes. kUsage: unknown
  /// name, with the nearest ones; a metric that other chips have, with which; a group whose
  /// counters the chip lacks, with which. With `skip_unknown` these are left out.
  [[nodiscard]] base::Result<CounterPlan> plan(const std::string& chip,
                                               std::span<const std::string> names,
                                               std::span<const model::MetricGroup> groups,
                                               bool skip_unknown = false) const;
  /// Adds what each metric costs and which share a pass. O(metrics^2) questions to CUPTI,
  /// milliseconds each.
  [[nodiscard]] base::Result<void> explain(CounterPlan& plan) const;

 private:
  explicit Planner(const wire::planner::Table* table) : table_(table) {}
  [[nodiscard]] base::Result<std::vector<std::string>> all_metrics(const std::string& chip) const;
  [[nodiscard]] base::Result<void> configure(CounterPlan& plan) const;
  [[nodiscard]] base::Result<MetricCost> cost_of(const CounterPlan& plan,
                                                 const std::string& metric) const;
  /// Adds the metric to the first set of plan.together that still takes one pass with it.
  void add_to_one_pass(CounterPlan& plan, const std::string& metric) const;
  [[nodiscard]] base::Error unknown_metric(const std::string& chip,
                                           const std::string& metric,
                                           std::span<const model::MetricGroup> groups) const;
  const wire::planner::Table* table_;
};

}  // namespace rangescope::collect::native
