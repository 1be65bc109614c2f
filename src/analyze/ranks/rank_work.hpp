// What each rank of a job did, held against the same on the others: Rank::work and Rank::card.
//
// Kernels are the same by name, grid and block; ranges by path, where every rank opened them equally often. What the
// others take is their median. Sums are made rank by rank, where it ran if need be (room `digest`), and judged over all
// of them. O(kernels + occurrences log), kernels x ranks memory for the distinct ones.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

using KernelSize = std::array<std::uint32_t, 6>;  ///< grid and block

/// What of a rank's work can be summed up without the others.
struct WorkOfRank {
  model::RankWork work;  ///< amounts: no paces, clocks and tokens
  struct Gpu {
    std::uint32_t process = 0;
    std::string uuid;
    std::int64_t first_ns = 0, last_ns = 0;  ///< when its kernels ran
  };
  std::vector<Gpu> gpus;  ///< that its processes use
  struct OfKernel {
    std::uint64_t same = 0;  ///< equal where name and size are: the name's string << 32 | index into Works::sizes
    std::int64_t calls = 0;
    double ns = 0;
  };
  std::vector<OfKernel> kernels;  ///< that no kernel of NCCL ran beside, called three times at least
};

/// A GPU's clock, sampled by whichever rank.
struct SampledClock {
  std::string uuid;
  std::uint32_t process = kNone;  ///< whose device it is, where that is known
  bool limited = false;           ///< the share of time in which it was held down, instead of Hz
  struct Sample {
    std::int64_t start_ns = 0, end_ns = 0;
    double covered_ns = 0, value = 0;
  };
  std::vector<Sample> samples;
};

struct Works {
  std::vector<WorkOfRank> ranks;  ///< in the order of Report::ranks
  std::vector<SampledClock> clocks;
  std::vector<KernelSize> sizes;
};

[[nodiscard]] Works works_of(const model::Session& session, const model::Report& report);

/// Fills the work and card of each rank, but for its ranges and tokens.
void judge_works(const Works& works, model::Report& report);

/// Paces of ranks by their ranges.
class CpuPaces {
 public:
  explicit CpuPaces(std::size_t ranks) : usual_(ranks), here_(ranks) {}
  /// Own time less waits of each rank in a range that all opened equally often. O(ranks).
  void add(const std::vector<double>& own);
  void finish(model::Report& report) const;

 private:
  std::vector<double> usual_, here_;
  double whole_ = 0;
  std::vector<std::pair<double, std::vector<std::uint32_t>>> voting_;  ///< its median, ranks that are slower
};

/// Of a job of two ranks or more, after regions have their useful tokens.
void add_rank_work(const model::Session& session, const Tree& tree, const std::vector<RegionKey>& keys,
                   const Buckets& by_cell, model::Report& report);

}  // namespace rangescope::analyze
