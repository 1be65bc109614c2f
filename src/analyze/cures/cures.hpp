// Which cures apply to a session, and what each would save: lines of the verdict.
//
// Every candidate's change is replayed alone; then the best is taken, the others are replayed on
// top of it, and so on. So the savings of the lines add up to that of all changes together. A
// session of n operations costs O(n) a replay, some twenty of them; of a large one, a part in its
// middle is replayed (part.hpp).
#pragma once

#include <cstddef>
#include <string>

#include "analyze/options.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::cures {

struct Limits {
  /// Twenty replays of a million operations take seconds.
  std::size_t most_operations = 500'000;
  std::size_t operations_of_part = 100'000;  ///< of a session that has more
};

/// Adds them to the report's verdict, for `judge` to put in its place: the one that saves most
/// first; where the session has no timeline of calls and GPU work, none but
/// that of a profiler that the program runs (guest_profiler.hpp). The report has the regions
/// that lines are about, and the run's length.
void add_cures(const model::Session& session,
               const Reference& reference,
               const std::string& device,
               model::Report& report,
               const Limits& limits = {});

}  // namespace rangescope::analyze::cures
