// What a report was summed up from, for those who need more of it than a report holds
// (analyze/tally).
#pragma once

#include <optional>
#include <vector>

#include "analyze/analyze.hpp"
#include "analyze/gpu/gpu.hpp"
#include "analyze/ranks/collectives.hpp"
#include "analyze/time/steady.hpp"

namespace rangescope::analyze {

struct Details {
  Tree tree;
  std::vector<RegionKey> keys;  ///< of Report::regions
  Buckets by_cell;
  std::vector<Phase> phases;
  GpuDetails gpu;                        ///< empty where there is no GPU work
  std::optional<CollectiveCalls> calls;  ///< of several ranks
};

/// As analyze() of a session as it is, and what it was made of.
[[nodiscard]] base::Result<model::Report> analyze(const model::Session& session,
                                                  const Options& options,
                                                  Details& details);

/// Report::processes, without their counts, and the GPUs that were used.
void list_machines(const model::Session& session, model::Report& report);

/// Fills in what `facts` know and what the recording knows of the run (duration, start, tool,
/// sources are in Report::run), then its repetitions, rows and verdict: the last step of every
/// report.
void finish(RunFacts facts, model::Report& report);

/// The judgements that need no session: roofline, bound and utilization of regions by the peaks of
/// `device`, else of the report's GPUs, and the families of kernels.
void judge_regions(const Reference& reference, const std::string& device, model::Report& report);

}  // namespace rangescope::analyze
