// From a session to a report: the region tree, what each region costs, and what lies outside all of
// them.
#pragma once

#include <string>
#include <vector>

#include "analyze/options.hpp"
#include "base/result.hpp"
#include "model/digest.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

namespace tally {
struct Digest;  // analyze/tally/digest.hpp
}

/// "native: rangescope 0.1.0, native-trace 1.0"
[[nodiscard]] std::string describe(const model::Source& source);

/// What is known of a run in addition to its session.
struct RunFacts {
  model::RunInfo info;  ///< of its directory; what it leaves empty, the recording fills in
  std::string named;    ///< how a command line names it
  std::vector<std::string> notes;          ///< of the reading
  std::vector<model::Digest> repetitions;  ///< where it is one of several: all of them
};

/// The finished report: the whole analysis, the run's facts, rows and verdict. Names in the session
/// are changed as the options say, and derived metrics are added to it. Errors as below. `tally`:
/// gets the session's, of all regions; an error where there are too many.
[[nodiscard]] base::Result<model::Report> answer(model::Session& session,
                                                 const Options& options,
                                                 const Reference& reference,
                                                 RunFacts facts = {},
                                                 base::Result<tally::Digest>* tally = nullptr);

/// Regions, their time, GPU work and metrics, of a session as it is. kNothingCaptured when
/// expressions matched no range that was seen, with the nearest names.
[[nodiscard]] base::Result<model::Report> analyze(const model::Session& session,
                                                  const Options& options = {});

}  // namespace rangescope::analyze
