#include "report/document/rank_table.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {

Section rank_section(const model::Report& report, std::size_t max_rows) {
  std::vector<const model::Rank*> ranks;
  for (const model::Rank& rank : report.ranks)
    if (rank.time)
      ranks.push_back(&rank);
  Section section{"Ranks", true};
  if (ranks.size() < 2)
    return section;
  std::ranges::stable_sort(ranks, std::ranges::greater(), [](const model::Rank* rank) {
    return rank->time->outside_ns;
  });
  Grid grid({{"rank", false, true}, {"outside MPI"}, {"MPI"}, {"waiting in it"}, {"host", false}});
  const std::size_t shown = std::min(max_rows, ranks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const model::Rank& rank = *ranks[i];
    grid.add({{"rank " + std::to_string(rank.rank)},
              {base::format_ns(rank.time->outside_ns)},
              {base::format_ns(rank.time->mpi_ns)},
              {base::format_ns(rank.time->wait_ns)},
              {text_or(base::printable(rank.host), "-")}});
  }
  if (ranks.size() > shown)
    grid.omitted = base::counted(ranks.size() - shown, "more rank") + ": -f json has all";
  section.add(std::move(grid));
  return section;
}

namespace {

std::vector<model::RankFunction> largest_functions(const model::Rank& rank) {
  constexpr std::size_t kShownFunctions = 3;
  std::vector<model::RankFunction> functions = rank.functions;
  std::ranges::stable_sort(functions, std::ranges::greater(), &model::RankFunction::cpu_ns);
  functions.resize(std::min(functions.size(), kShownFunctions));
  return functions;
}

double cpu_ns_of(const model::Rank& rank) {
  double cpu_ns = 0;
  for (const model::RankFunction& function : rank.functions)
    cpu_ns += function.cpu_ns;
  return cpu_ns;
}

}  // namespace

Section rank_function_section(const model::Report& report, std::size_t max_ranks) {
  std::vector<const model::Rank*> ranks;
  for (const model::Rank& rank : report.ranks)
    if (!rank.functions.empty())
      ranks.push_back(&rank);
  Section section{"Functions of the ranks", true};
  if (ranks.empty())
    return section;
  std::ranges::stable_sort(
      ranks, std::ranges::greater(), [](const model::Rank* rank) { return cpu_ns_of(*rank); });
  Grid grid({{"function, with the libraries that it calls", false, true},
             {"rank"},
             {"CPU"},
             {"waits for a CPU", true, false, 1}});
  const std::size_t shown = std::min(max_ranks, ranks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    for (const model::RankFunction& function : largest_functions(*ranks[i]))
      grid.add({{base::printable(model::place_text(function.place))},
                {std::to_string(ranks[i]->rank)},
                {base::format_ns(function.cpu_ns)},
                {base::format_ns(function.waits_for_cpu_ns)}});
  }
  if (ranks.size() > shown)
    grid.omitted = base::counted(ranks.size() - shown, "more rank") + ": -f json has all";
  section.add(std::move(grid));
  return section;
}

}  // namespace rangescope::report
