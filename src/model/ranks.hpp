// What a parallel job's ranks have in common and where they differ. A rank is every process of that rank: a training
// process and its data loaders are one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/range.hpp"

namespace rangescope::model {

struct Rank {
  std::uint32_t rank = 0;
  std::optional<std::uint32_t> local_rank;
  std::uint32_t world = 0;     ///< 0 where unknown
  std::string host;            ///< "" where unknown, as the next two
  std::string device;          ///< names of the GPUs that it used, with commas between
  std::string run;             ///< its run, where each rank has one
  std::uint32_t pid = 0;       ///< of its first process that opened a range, else of its first
  double clock_offset_ns = 0;  ///< what was added to its clock, where the ends of collectives tell (analyze/clocks.hpp)
};

/// Inclusive wall time of a region as the ranks have it.
struct OverRanks {
  std::int64_t count = 0;  ///< ranks that opened it, at least one
  double mean_ns = 0, min_ns = 0, max_ns = 0;
  double stddev_ns = 0;             ///< sample (n - 1), 0 of one rank
  double imbalance = 0;             ///< max / mean - 1
  std::uint32_t slowest = kNone;    ///< the rank of `max_ns`
  std::int64_t slowest_in = 0;      ///< of `compared`: occurrences in which that rank took longest
  std::int64_t compared = 0;        ///< occurrences that all of them have, the n-th beside the n-th
  std::vector<double> by_rank;      ///< in the order of Report::ranks; NaN: not opened
  std::vector<double> own_by_rank;  ///< the same, less the time of child regions and of collectives inside
};

struct CollectiveOfRank {
  std::uint32_t rank = 0;
  double late_ns = 0;      ///< arrival after the first rank's, summed over the calls
  double wait_ns = 0;      ///< own time less the transfer, summed
  double holds_up_ns = 0;  ///< all would have gone on so much earlier, had it come with the last but one
  double costs_ns = 0;     ///< what the others waited in the calls at which it came last
  std::int64_t last = 0;   ///< calls at which it came last
};

/// Calls of one collective operation with one size on one communicator, joined over the ranks by their order.
struct Collective {
  std::string communicator;       ///< "0x7f3a...", "" where the library does not say
  std::string library;            ///< "NCCL", "MPI"
  std::string operation;          ///< "AllReduce"
  std::vector<std::string> path;  ///< ranges in which most of the calls stand
  double bytes = 0;               ///< of one rank's message in one call; NaN where unknown
  std::int64_t ranks = 0;
  std::int64_t calls = 0;                                        ///< that all of them made
  double transfer_ns = 0;                                        ///< sum over calls of the shortest rank's time
  double wait_ns = 0;                                            ///< sum over calls and ranks of time less the transfer
  std::optional<double> algorithm_bytes_per_s, bus_bytes_per_s;  ///< formulas of nccl-tests (docs/manual/jobs.md)
  std::vector<CollectiveOfRank> by_rank;
};

}  // namespace rangescope::model
