// What a parallel job's ranks have in common and where they differ. A rank is every process of that
// rank: a training process and its data loaders are one.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "model/code_place.hpp"
#include "model/range.hpp"

namespace rangescope::model {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// What a rank did, to be held against the others. A pace is its time for the same work over the
/// median of the ranks': 1.2 takes a fifth longer; NaN where nothing is comparable. Calls of
/// communication libraries are in none of these.
struct RankWork {
  bool is_known =
      false;  ///< false: of a merged digest of an earlier version, which does not hold it
  std::int64_t kernels = 0;
  double kernel_ns = 0;
  double kernel_threads = 0;  ///< grid x block, summed over the kernels
  double copied_bytes = 0;
  double tokens = 0;  ///< by --tokens, in ranges that lie in no other; 0 where none are said
  double kernel_pace = kNan;   ///< of kernels of one name, grid and block that most ranks ran
  double paced_kernel_ns = 0;  ///< their time here
  double cpu_pace =
      kNan;  ///< own time in ranges that all opened equally often, less waits for the GPU
  double paced_cpu_ns = 0;
  std::int64_t cpu_ranges = 0,
               slower_ranges = 0;  ///< that `cpu_pace` rests on; of them slower than the median
  double sm_clock_hz = kNan;       ///< sampled mean while its GPU worked
  double clock_limited = kNan;     ///< share of that time in which power or heat held clocks down
};

/// Where the time of a rank went, from its start to its exit.
struct RankTime {
  double outside_ns = 0;  ///< outside calls of MPI
  double mpi_ns = 0;
  double wait_ns = 0;  ///< of `mpi_ns`, for ranks that came later, in calls that were joined
};

/// What one of the program's own functions, with the libraries that it calls, took of a rank.
struct RankFunction {
  CodePlace place;
  double cpu_ns = 0;
  double waits_for_cpu_ns = 0;  ///< in which other threads had the core
};

struct Rank {
  std::uint32_t rank = 0;
  std::optional<std::uint32_t> local_rank;
  std::uint32_t world = 0;  ///< 0 where unknown
  std::string host;         ///< "" where unknown, as the next two
  std::string device;       ///< names of the GPUs that it used, with commas between
  std::string run;          ///< its run, where each rank has one
  std::uint32_t pid = 0;    ///< of its first process that opened a range, else of its first
  std::string card;         ///< UUID of its only GPU, "" where it has none or several
  RankWork work;
  std::optional<RankTime> time;  ///< absent where no call of MPI was recorded
  /// Outside calls in which ranks wait for each other; empty without CPU samples, and of digests.
  std::vector<RankFunction> functions;
  double clock_offset_ns = 0;  ///< what was added to its clock, where the ends of collectives tell
                               ///< (analyze/ranks/clocks.hpp)
};

/// Inclusive wall time of a region as the ranks have it.
struct OverRanks {
  std::int64_t count = 0;  ///< ranks that opened it, at least one
  double mean_ns = 0, min_ns = 0, max_ns = 0;
  double stddev_ns = 0;           ///< sample (n - 1), 0 of one rank
  double imbalance = 0;           ///< max / mean - 1
  std::uint32_t slowest = kNone;  ///< the rank of `max_ns`
  std::int64_t slowest_in = 0;    ///< of `compared`: occurrences in which that rank took longest
  std::int64_t compared =
      0;  ///< occurrences that all of them have, the n-th compared with the n-th
  std::vector<double> by_rank;  ///< in the order of Report::ranks; NaN: not opened
  std::vector<double>
      own_by_rank;  ///< the same, less the time of child regions and of collectives inside
};

/// Where the time of a region's communication calls went, over the ranks: time = transfer + wait +
/// overlap.
struct Communication {
  std::int64_t calls = 0;  ///< of all its ranks, joined with those of others
  double time_ns = 0;      ///< of the calls: of NCCL's kernels, of MPI's functions
  double transfer_ns = 0;  ///< moving data while no other kernel of the rank ran on that GPU
  double wait_ns = 0;      ///< for a rank that came later, so too
  double overlap_ns = 0;   ///< while other kernels ran: hidden under compute
  struct Cause {
    std::uint32_t rank = 0;
    std::int64_t calls = 0;
    double ns = 0;
  };
  std::vector<Cause>
      held_up_by;  ///< whom the others waited for, the most first; their `ns` add up to wait_ns
};

struct CollectiveOfRank {
  std::uint32_t rank = 0;
  double late_ns = 0;  ///< arrival after the first rank's, summed over the calls
  double wait_ns = 0;  ///< own time less the transfer, summed
  double holds_up_ns =
      0;  ///< how much earlier all would have gone on if it had come with the last but one
  double costs_ns = 0;    ///< what the others waited in the calls at which it came last
  std::int64_t last = 0;  ///< calls at which it came last
  double time_ns = 0;     ///< of its calls
  double hidden_ns = 0;   ///< of that, while other kernels ran on the same GPU
};

/// Calls of one collective operation with one size on one communicator, joined over the ranks by
/// their order.
struct Collective {
  std::string communicator;       ///< "0x7f3a...", "" where the library does not say
  std::string library;            ///< "NCCL", "MPI"
  std::string operation;          ///< "AllReduce"
  std::vector<std::string> path;  ///< ranges in which most of the calls stand
  double bytes = 0;               ///< of one rank's message in one call; NaN where unknown
  std::int64_t ranks = 0;
  std::int64_t calls = 0;  ///< that all of them made
  double transfer_ns = 0;  ///< sum over calls of the shortest rank's time
  double wait_ns = 0;      ///< sum over calls and ranks of time less the transfer
  std::optional<double> algorithm_bytes_per_s,
      bus_bytes_per_s;  ///< formulas of nccl-tests (docs/manual/jobs.md)
  std::optional<double>
      hidden_share;  ///< of the ranks' time in it, while other kernels ran; absent without GPU work
  std::vector<CollectiveOfRank> by_rank;
};

/// Messages from one rank to another; the n-th send of a tag belongs to the n-th receive.
struct PointToPoint {
  std::string communicator, library;  ///< as in Collective
  std::vector<std::string> path;      ///< ranges of the sender in which they stand
  std::uint32_t from = 0, to = 0;     ///< ranks of the job
  std::int64_t calls = 0;
  double bytes = 0;             ///< of all
  double transfer_ns = 0;       ///< sum: from the later of the two calls until the data was there
  double late_sender_ns = 0;    ///< the receiver stood in its call before the send began
  double late_receiver_ns = 0;  ///< the sender stood in its call before the receive began
  std::int64_t late_senders = 0, late_receivers = 0;
  std::optional<double> bytes_per_s;  ///< bytes / transfer
};

/// What a rank did over the run: the share of each stretch of it, 0..1.
struct RankActivity {
  std::vector<float> compute;  ///< kernels; without a GPU, ranges outside communication
  std::vector<float> transfer, wait;
};

}  // namespace rangescope::model
