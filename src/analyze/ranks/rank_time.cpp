#include "analyze/ranks/rank_time.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

namespace rangescope::analyze {
namespace {

using model::Region;
using model::Report;

constexpr std::string_view kMpi = "MPI";  // domain of its calls, and library of joined ones

/// Of each rank the time inside of calls of MPI; those inside of other calls of MPI are in these.
std::vector<double> mpi_times(const Report& report) {
  std::vector<double> times(report.ranks.size());
  for (const Region& region : report.regions) {
    const bool is_of_all = !region.process && !region.thread;
    if (!is_of_all || region.domain != kMpi || !region.ranks)
      continue;
    const bool is_inside_another =
        region.parent < report.regions.size() && report.regions[region.parent].domain == kMpi;
    if (is_inside_another)
      continue;
    for (std::size_t rank = 0; rank < times.size(); ++rank) {
      const double ns = region.ranks->by_rank[rank];
      if (!std::isnan(ns))
        times[rank] += ns;
    }
  }
  return times;
}

/// By rank, in calls whose other ends were recorded.
std::map<std::uint32_t, double> wait_times(const Report& report) {
  std::map<std::uint32_t, double> times;
  for (const model::Collective& collective : report.collectives)
    if (collective.library == kMpi)
      for (const model::CollectiveOfRank& rank : collective.by_rank)
        times[rank.rank] += rank.wait_ns;
  for (const model::PointToPoint& messages : report.messages) {
    if (messages.library != kMpi)
      continue;
    times[messages.to] += messages.late_sender_ns;
    times[messages.from] += messages.late_receiver_ns;
  }
  return times;
}

/// From its start to its exit; 0 where unknown.
double lifetime_ns(const Report& report, const model::Rank& rank) {
  const auto is_its = [&](const model::ReportProcess& process) {
    return process.rank == rank.rank && process.pid == rank.pid;
  };
  const auto process = std::ranges::find_if(report.processes, is_its);
  return process == report.processes.end() ? 0 : process->end_ns - process->start_ns;
}

}  // namespace

void add_rank_times(Report& report) {
  const std::vector<double> mpi_ns = mpi_times(report);
  if (std::ranges::all_of(mpi_ns, [](double ns) { return ns <= 0; }))
    return;
  const std::map<std::uint32_t, double> waits = wait_times(report);
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    model::Rank& rank = report.ranks[i];
    const double lifetime = lifetime_ns(report, rank);
    if (lifetime < mpi_ns[i])
      continue;  // of several threads, or unknown
    const auto wait = waits.find(rank.rank);
    const double wait_ns = wait == waits.end() ? 0 : wait->second;
    rank.time = model::RankTime{lifetime - mpi_ns[i], mpi_ns[i], std::min(wait_ns, mpi_ns[i])};
  }
}

}  // namespace rangescope::analyze
