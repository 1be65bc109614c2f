#include "analyze/compare/series/function_by_runs.hpp"

#include <vector>

#include "analyze/compare/compare_functions.hpp"

namespace rangescope::analyze {

std::optional<TwoGroups> function_by_runs(const MatchedRegion& region,
                                          const std::string& name,
                                          FunctionScope scope,
                                          std::size_t side,
                                          std::string& why) {
  TwoGroups groups;
  bool is_large = false;
  for (const std::size_t s : {std::size_t{0}, side}) {
    std::vector<double>& values = s == 0 ? groups.a : groups.b;
    for (const model::DigestRegion* run : region.of[s]) {
      const FunctionSide one_run = put_together({run}, scope);
      const bool is_listed = one_run.functions.contains(name);
      if (!(one_run.wall_ns > 0) || (!is_listed && !one_run.all_listed)) {
        why = "not among the largest functions of every run";
        return std::nullopt;
      }
      values.push_back(one_run.self_ns(name) / one_run.occurrences);
    }
    const FunctionSide all_runs = put_together(region.of[s], scope);
    const double self_ns = all_runs.self_ns(name);
    is_large |= self_ns >= kLeastFunctionShare * all_runs.wall_ns &&
                self_ns >= kFewestSamples * all_runs.interval_ns;
  }
  if (is_large)
    return groups;
  why = "less than 1 % of the wall time or ten samples on both sides";
  return std::nullopt;
}

}  // namespace rangescope::analyze
