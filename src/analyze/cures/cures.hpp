// Which cures apply to a session, and what each would save: lines of the verdict.
//
// Every candidate's change is replayed alone; then the best is taken, the others are replayed on
// top of it, and so on. So the savings of the lines add up to that of all changes together. A
// session of n operations costs O(n) a replay, some twenty of them.
#pragma once

#include <string>

#include "analyze/options.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::cures {

/// Adds them to the report's verdict, for `judge` to put in its place: the one that saves most
/// first; none where the session has no timeline of calls and GPU work, or more than half a million
/// of them. The report has the regions that lines are about, and the run's length.
void add_cures(const model::Session& session, const Reference& reference, const std::string& device,
               model::Report& report);

}  // namespace rangescope::analyze::cures
