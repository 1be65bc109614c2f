#include "report/document/rank_table.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::report {

Section rank_section(const model::Report& report, std::size_t max_rows) {
  std::vector<const model::Rank*> ranks;
  for (const model::Rank& rank : report.ranks)
    if (rank.time) ranks.push_back(&rank);
  Section section{"Ranks", true};
  if (ranks.size() < 2) return section;
  std::ranges::stable_sort(ranks, std::ranges::greater(),
                           [](const model::Rank* rank) { return rank->time->outside_ns; });
  Grid grid({{"rank", false, true}, {"outside MPI"}, {"MPI"}, {"waiting in it"}, {"host", false}});
  const std::size_t shown = std::min(max_rows, ranks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const model::Rank& rank = *ranks[i];
    grid.add({{"rank " + std::to_string(rank.rank)},
              {base::format_ns(rank.time->outside_ns)},
              {base::format_ns(rank.time->mpi_ns)},
              {base::format_ns(rank.time->wait_ns)},
              {rank.host.empty() ? "-" : base::printable(rank.host)}});
  }
  if (ranks.size() > shown)
    grid.omitted = base::counted(ranks.size() - shown, "more rank") + ": -f json has all";
  section.add(std::move(grid));
  return section;
}

}  // namespace rangescope::report
