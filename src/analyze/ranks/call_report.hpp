// Collectives and messages of a job, row by row: Report::collectives and messages, and what each
// rank waited for in each call.
//
// The last rank to arrive at a collective is in it for the shortest time, which is its transfer;
// the others waited for it first. An end of a message waits for the later one. Waits in messages of
// MPI are differences of moments and need clocks that agree: of one host, or aligned. O(calls log).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/ranks/collectives.hpp"

namespace rangescope::analyze {

/// Kind of the verdicts that are found here, of ranks that never came to a call: judge() keeps
/// them.
inline constexpr std::string_view kHung = "hung";
inline constexpr std::size_t kMostCollectives = 200, kMostMessages = 200;

/// Where a call was made. A place is a cell of a tree or a region of a digest.
struct Around {
  std::uint32_t path =
      kNone;  ///< node or region of the innermost range of the program, kNone for none
  std::uint32_t context =
      kNone;  ///< innermost places in which it counts, with all above them; kNone: unknown
  double hidden_ns = 0;          ///< of its time, while other kernels ran; NaN: unknown
  double represented_calls = 1;  ///< this one included
};

/// A call of one rank with what it did in it.
struct Timed {
  const CollectiveCall* call = nullptr;
  std::size_t number = 0;  ///< its place among the calls, then messages, that were found
  double wait_ns = 0;
  std::uint32_t cause = kNone;  ///< the rank that it waited for
};

/// Time in a call.
[[nodiscard]] double call_ns_of(const CollectiveCall& call);

/// Fills Report::collectives and messages, and says which ranks hung. `around` as in Surroundings;
/// `name`: appends the names of a path; `has_gpu`: GPU work was recorded. Of `session` only
/// processes and strings are looked at. Returns the joined calls.
std::vector<Timed> report_calls(
    const model::Session& session,
    const CollectiveCalls& found,
    const std::vector<Around>& around,
    const std::function<void(std::uint32_t, std::vector<std::string>&)>& name,
    bool has_gpu,
    model::Report& report);

}  // namespace rangescope::analyze
