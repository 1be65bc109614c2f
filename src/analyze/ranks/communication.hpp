// Where the time of communication goes: Report::collectives, messages and activity, and
// Region::communication.
//
// The time of a call is waiting first, then its transfer: all leave together. Where other kernels
// of the process run meanwhile on the same GPU (on any of its GPUs for a call that is timed by its
// range), it is overlap; transfer and wait of a region are the rest, so that the three add up to
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
#include "analyze/ranks/call_report.hpp"
#include "analyze/ranks/collectives.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

/// What calls add up to in a region.
class CommunicationSum {
 public:
  /// Of `calls` calls as long as this one, a rank's, which waited for rank `cause` (kNone: for
  /// none) first. Hidden: the parts of the wait and of the rest in which other kernels ran.
  void add(double time_ns,
           double wait_ns,
           double hidden_wait_ns,
           double hidden_rest_ns,
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

/// Where calls of a session were made, and the kernels that ran meanwhile.
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
  [[nodiscard]] const Stretches* other_kernels(std::uint32_t process, std::uint32_t stream) const;

 private:
  void add_kernels(const model::Session& session, const Options& options);

  std::vector<std::uint32_t> card_of_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      places_;  ///< by process and card
  std::vector<Stretches> stretches_;
};

/// What calls add up to in each place. `hidden_ns`: in which part of the first nanoseconds of a
/// call other kernels ran. `parent`: of a place; `same`: equal for places in which a call counts
/// once. Nothing where a call does not say enough.
struct PlaceRules {
  std::function<double(const Timed&, std::int64_t first_ns)> hidden_ns;
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
