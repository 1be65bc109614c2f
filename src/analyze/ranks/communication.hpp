// Where the time of communication goes: Report::collectives, messages and activity, and
// Region::communication.
//
// The time of a call is waiting first, then its transfer: all leave together. What of either lies
// beside other kernels of the process on the same GPU (on any of its GPUs for a call that is timed
// by its range) is overlap; transfer and wait of a region are the rest, so that the three add up to
// its time. Of a group of messages, which share a kernel, the longest wait counts. Waits in
// messages of MPI are differences of moments and need clocks that agree: of one host, or aligned.
// O((calls + kernels) log) and one context a call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/options.hpp"
#include "analyze/ranks/collectives.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

/// Kind of the verdicts that are found here, of ranks that never came to a call: judge() keeps
/// them.
inline constexpr std::string_view kHung = "hung";
inline constexpr std::size_t kMostCollectives = 200, kMostMessages = 200;
inline constexpr std::size_t kActivityBins = 256;

/// What calls add up to in a region.
class CommunicationSum {
 public:
  /// Of `calls` calls as long as this one, a rank's, which waited for rank `cause` (kNone: for
  /// none) first. Beside: what of the wait and of the rest lies beside other kernels.
  void add(double time_ns,
           double wait_ns,
           double wait_beside_ns,
           double beside_ns,
           std::uint32_t cause,
           double calls = 1);
  void add(const CommunicationSum& other);
  [[nodiscard]] std::optional<model::Communication> row() const;  ///< nothing of no calls

 private:
  struct HeldUp {
    double calls = 0, ns = 0;
  };
  model::Communication sums_;
  double calls_ = 0;
  std::map<std::uint32_t, HeldUp> causes_;
};

/// Where a call was made. A place is a cell of a tree or a region of a digest.
struct Around {
  std::uint32_t path =
      kNone;  ///< node or region of the innermost range of the program, kNone for none
  std::uint32_t context =
      kNone;  ///< innermost places in which it counts, with all above them; kNone: nobody knows
  double hidden_ns = 0;   ///< of its time, beside other kernels; NaN: nobody knows
  double stands_for = 1;  ///< calls
};

/// Where calls of a session were made, and the kernels beside them.
class Surroundings {
 public:
  Surroundings(const model::Session& session,
               const Options& options,
               const Tree& tree,
               const CollectiveCalls& found);

  std::vector<Around>
      around;  ///< of each of `found.calls`, then of its messaging, then of those that stand
  std::vector<std::vector<std::uint32_t>> contexts;  ///< cells

  /// When kernels that are no communication ran on the card of a stream of the process (kNone: on
  /// any of its cards); nullptr where it has no GPU.
  [[nodiscard]] const Stretches* beside(std::uint32_t process, std::uint32_t stream) const;

 private:
  std::vector<std::uint32_t> card_of_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      places_;  ///< by process and card
  std::vector<Stretches> stretches_;
};

/// A call of one rank with what it did in it.
struct Timed {
  const CollectiveCall* call = nullptr;
  std::size_t number = 0;  ///< its place among the calls, then messages, that were found
  double wait_ns = 0;
  std::uint32_t cause = kNone;  ///< the rank that it waited for
};

/// Fills Report::collectives and messages, and says which ranks hung. `around` as in Surroundings;
/// `name`: appends the names of a path; `gpu`: GPU work was recorded. Of `session` only processes
/// and strings are looked at. Returns the joined calls.
std::vector<Timed> report_calls(
    const model::Session& session,
    const CollectiveCalls& found,
    const std::vector<Around>& around,
    const std::function<void(std::uint32_t, std::vector<std::string>&)>& name,
    bool gpu,
    model::Report& report);

/// What calls add up to in each place. `beside`: what of the first nanoseconds of a call lies
/// beside other kernels. `parent`: of a place; `same`: equal for places in which a call counts
/// once. Nothing where a call does not say enough.
struct PlaceRules {
  std::function<double(const Timed&, std::int64_t)> beside;
  std::function<std::uint32_t(std::uint32_t)> parent, same;
  std::size_t count = 0;  ///< what `same` gives is below
};
[[nodiscard]] std::map<std::uint32_t, CommunicationSum> sum_up(
    const std::vector<Timed>& timed,
    const std::vector<Around>& around,
    const std::vector<std::vector<std::uint32_t>>& contexts,
    const PlaceRules& rules);

/// Of a job of two ranks or more, after the rows are there.
void add_communication(const Regions& regions, const CollectiveCalls& found, model::Report& report);

}  // namespace rangescope::analyze
