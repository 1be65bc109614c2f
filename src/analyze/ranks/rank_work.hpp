// What each rank of a job did, held against the same on the others: Rank::work and Rank::card.
//
// Kernels are the same by name, grid and block; ranges by path, where every rank opened them
// equally often. What the others take is their median. Sums are made rank by rank, where it ran if
// need be (analyze/tally), and judged over all of them. O(kernels + occurrences log), kernels x
// ranks memory for the distinct ones.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/ranks/ranks.hpp"

namespace rangescope::analyze {

/// What of a rank's work can be summed up without the others. Names and UUIDs are numbers of texts.
struct WorkOfRank {
  std::uint32_t rank = kNone;
  std::int64_t kernels = 0, kernel_ns = 0, copied_bytes = 0;
  double kernel_threads = 0;
  struct Gpu {
    std::uint32_t process = 0, uuid = 0;
    std::int64_t first_ns = 0, last_ns = 0;  ///< when its kernels ran
  };
  std::vector<Gpu> gpus;  ///< that its processes use
  struct Paced {
    std::uint32_t name = 0;
    std::array<std::uint32_t, 6> size{};  ///< grid and block
    std::int64_t calls = 0, ns = 0;
  };
  std::vector<Paced> paced;    ///< kernels called three times at least while no kernel of NCCL ran
  std::uint64_t not_kept = 0;  ///< more kernels
};

/// A GPU's clock, sampled by whichever rank.
struct SampledClock {
  std::uint32_t process = kNone, uuid = 0;  ///< whose device it is, where that is known
  bool limited = false;  ///< the share of time in which it was held down, instead of Hz
  struct Reading {
    std::int64_t start_ns = 0, end_ns = 0, covered_ns = 0;
    double value = 0;
  };
  std::vector<Reading> samples;
};

struct Works {
  std::vector<WorkOfRank> ranks;  ///< in the order of Report::ranks
  std::vector<SampledClock> clocks;
};

/// `number_of`: a text.
[[nodiscard]] Works works_of(const model::Session& session,
                             const model::Report& report,
                             const std::function<std::uint32_t(std::string_view)>& number_of);

/// Fills the work and card of each rank, but for its ranges and tokens. `text`: of a number.
void judge_works(const std::vector<WorkOfRank>& ranks,
                 const std::vector<SampledClock>& clocks,
                 const std::function<std::string_view(std::uint32_t)>& text,
                 model::Report& report);

/// Paces of ranks by their ranges.
class CpuPaces {
 public:
  explicit CpuPaces(std::size_t ranks) : usual_ns_(ranks), times_ns_(ranks) {}
  /// Own time less waits of each rank in a range, where all opened it equally often. O(ranks).
  void add(const model::Region& region, const ByRank& times);
  void finish(model::Report& report) const;

 private:
  std::vector<double> usual_ns_, times_ns_;  ///< of each rank: what the others take, what it takes
  double compared_ns_ = 0;
  /// Of ranges that are long enough: the median, ranks that are slower.
  std::vector<std::pair<double, std::vector<std::uint32_t>>> voting_;
};

/// Region::ranks of the aggregate and of merged rows, and the work of each rank: of a job of two
/// ranks or more, after rows are there and regions have their useful tokens.
void hold_ranks_together(const Regions& regions, model::Report& report);

}  // namespace rangescope::analyze
