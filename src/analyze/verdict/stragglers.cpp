// The rank of a parallel job that the others wait for.
//
// Where collectives were recorded, they show which rank came last and how long the others waited.
// Else the time of ranks in their own regions shows it: a rank stands out by three times of what
// the others differ by. A small cost is reported only of a rank that comes last more often than by
// chance: on a busy machine a rank that loses its core once or twice is no straggler.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/ranks/collectives.hpp"
#include "analyze/statistics/spread.hpp"
#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using base::format_count;
using base::format_ns;

/// How a rank's own time in a region compares with that of the others.
struct Standing {
  std::size_t rank = 0;  ///< index in Report::ranks
  double own_ns = 0, next_ns = 0, least_ns = 0, median_ns = 0;
};

/// Of `rank`, else of the slowest one.
Standing standing(const model::OverRanks& ranks, std::optional<std::size_t> rank = std::nullopt) {
  std::vector<double> times_ns;
  for (const double ns : ranks.own_by_rank)
    times_ns.push_back(std::isnan(ns) ? 0 : ns);
  const auto longest = std::max_element(times_ns.begin(), times_ns.end());
  const auto slowest = static_cast<std::size_t>(longest - times_ns.begin());
  Standing out;
  out.rank = rank.value_or(slowest);
  out.own_ns = times_ns[out.rank];
  times_ns.erase(times_ns.begin() + static_cast<std::ptrdiff_t>(out.rank));
  out.next_ns = *std::max_element(times_ns.begin(), times_ns.end());
  out.least_ns = *std::min_element(times_ns.begin(), times_ns.end());
  out.median_ns = median_of(times_ns);
  return out;
}

/// Of the regions in which a rank takes longer than the others, the one where that is most.
struct LongerRegion {
  std::optional<std::size_t> row;
  double excess_ns = 0;  ///< above the median of the others
};

LongerRegion longer_region(const Case& facts, std::size_t rank) {
  LongerRegion worst;
  for (std::size_t row = 0; row < facts.rows(); ++row) {
    const auto& ranks = facts.region(row).ranks;
    if (!ranks || is_communication(facts.region(row).domain) || rank >= ranks->own_by_rank.size())
      continue;
    const Standing of_rank = standing(*ranks, rank);
    const double excess_ns = (of_rank.own_ns - of_rank.median_ns) / facts.threads_at_once(row);
    if (excess_ns > worst.excess_ns)
      worst = {row, excess_ns};
  }
  return worst;
}

/// One of the program's own functions that this rank spends more time in than the others: by how
/// much more than their median.
struct SlowFunction {
  model::CodePlace place;
  double more_cpu_ns = 0;
  double more_waits_for_cpu_ns = 0;
  [[nodiscard]] double more_ns() const { return more_cpu_ns + more_waits_for_cpu_ns; }
};

/// Of the functions that the rank spends more CPU time in, the one that delays it most.
SlowFunction slow_function(const std::vector<model::Rank>& ranks, std::size_t late) {
  SlowFunction slowest;
  if (late >= ranks.size())
    return slowest;
  for (const model::RankFunction& function : ranks[late].functions) {
    std::vector<double> cpu_of_others, waits_of_others;
    for (const model::Rank& rank : ranks) {
      if (&rank == &ranks[late])
        continue;
      const auto same =
          std::ranges::find(rank.functions, function.place, &model::RankFunction::place);
      const bool is_called = same != rank.functions.end();
      cpu_of_others.push_back(is_called ? same->cpu_ns : 0);
      waits_of_others.push_back(is_called ? same->waits_for_cpu_ns : 0);
    }
    const SlowFunction candidate{
        function.place,
        function.cpu_ns - median_of(cpu_of_others),
        std::max(0.0, function.waits_for_cpu_ns - median_of(waits_of_others))};
    if (candidate.more_cpu_ns > 0 && candidate.more_ns() > slowest.more_ns())
      slowest = candidate;
  }
  return slowest;
}

/// "f (sort.c:6) takes 0.6 s more of its CPU time than of the others', and waits 1.4 s longer for a
/// CPU": what it waits is said where the CPU time alone does not explain `late_ns`.
std::string slow_function_text(const SlowFunction& slowest, double late_ns) {
  std::string text = fmt::format("{} takes {} more of its CPU time than of the others'",
                                 base::printable(place_text(slowest.place)),
                                 format_ns(slowest.more_cpu_ns));
  if (slowest.more_cpu_ns < kCause * late_ns)
    text +=
        fmt::format(", and waits {} longer for a CPU", format_ns(slowest.more_waits_for_cpu_ns));
  return text;
}

/// What the job saves once the late rank is as fast as the others where the line says, by
/// `named_ns`. Delays with other causes stay; where nothing is named, all may go.
double saved_without_cause(double late_ns, double named_ns) {
  return named_ns > 0 ? std::min(late_ns, named_ns) : late_ns;
}

/// Of `calls` in which one of `ranks` is the last: how often one of them is by chance.
struct Chance {
  double mean = 0, variance = 0;
  void add(double calls, std::size_t ranks) {
    const double probability = 1 / static_cast<double>(std::max<std::size_t>(ranks, 1));
    mean += calls * probability;
    variance += calls * probability * (1 - probability);
  }
  [[nodiscard]] bool explains(double last) const {
    return last <= mean + kChance * std::sqrt(variance);
  }
};

bool is_noise(const Case& facts, double saves_ns, const Chance& chance, double last) {
  return saves_ns < kMoreThanNoise * facts.whole_ns() && chance.explains(last);
}

/// What the collectives of a job show of one of its ranks.
struct Lateness {
  double holds_up_ns = 0, costs_ns = 0;
  std::int64_t last = 0;  ///< calls in which it arrived last
  Chance chance;
  const model::Collective* worst = nullptr;  ///< the one that it holds up longest
  double holds_up_worst_ns = 0;

  void add(const model::Collective& collective, const model::CollectiveOfRank& of_rank) {
    holds_up_ns += of_rank.holds_up_ns;
    costs_ns += of_rank.costs_ns;
    last += of_rank.last;
    chance.add(static_cast<double>(collective.calls), collective.by_rank.size());
    if (of_rank.holds_up_ns > holds_up_worst_ns) {
      holds_up_worst_ns = of_rank.holds_up_ns;
      worst = &collective;
    }
  }
};
using LatenessByRank = std::map<std::uint32_t, Lateness>;

LatenessByRank lateness_by_rank(const model::Report& report) {
  LatenessByRank ranks;
  for (const model::Collective& collective : report.collectives)
    for (const model::CollectiveOfRank& of_rank : collective.by_rank)
      ranks[of_rank.rank].add(collective, of_rank);
  return ranks;
}

/// The rank that holds up the others by far the most; the end where none does.
LatenessByRank::const_iterator latest_rank(const Case& facts, const LatenessByRank& ranks) {
  const auto holds_up_ns = [](const auto& rank) { return rank.second.holds_up_ns; };
  const auto latest = std::ranges::max_element(ranks, {}, holds_up_ns);
  if (latest == ranks.end() || latest->second.worst == nullptr)
    return ranks.end();
  double next_ns = 0;
  for (const auto& [rank, lateness] : ranks)
    if (rank != latest->first)
      next_ns = std::max(next_ns, lateness.holds_up_ns);
  const Lateness& lateness = latest->second;
  if (lateness.holds_up_ns < kStandsOut * next_ns || !facts.matters(lateness.holds_up_ns))
    return ranks.end();
  const auto last = static_cast<double>(lateness.last);
  if (is_noise(facts, lateness.holds_up_ns, lateness.chance, last))
    return ranks.end();
  return latest;
}

/// "rank 3 arrives 1.2 ms late at all_reduce in 'step', last in 98 of 100 collective calls"
std::string late_arrivals_text(std::uint32_t rank, const Lateness& lateness, std::int64_t calls) {
  const auto times_last = static_cast<double>(std::max<std::int64_t>(lateness.last, 1));
  std::string operation = lateness.worst->operation;
  if (!lateness.worst->path.empty())
    operation += " in '" + base::printable(base::join(lateness.worst->path, " > ")) + "'";
  return fmt::format("rank {} arrives {} late at {}, last in {} of {} collective calls",
                     rank,
                     format_ns(lateness.holds_up_ns / times_last),
                     operation,
                     format_count(lateness.last),
                     format_count(calls));
}

void by_collectives(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  const LatenessByRank ranks = lateness_by_rank(report);
  const auto latest = latest_rank(facts, ranks);
  if (latest == ranks.end())
    return;
  const auto& [rank, lateness] = *latest;
  std::int64_t calls = 0;
  for (const model::Collective& collective : report.collectives)
    calls += collective.calls;

  const auto place = static_cast<std::size_t>(
      std::ranges::find(report.ranks, rank, &model::Rank::rank) - report.ranks.begin());
  const LongerRegion region = longer_region(facts, place);
  const bool is_by_region = region.row && region.excess_ns >= kCause * lateness.holds_up_ns;
  const SlowFunction function = slow_function(report.ranks, place);
  const bool is_by_function = function.more_ns() >= kCause * lateness.holds_up_ns;
  double named_ns = 0;
  std::string text = late_arrivals_text(rank, lateness, calls);
  if (is_by_region) {
    text += fmt::format(": it takes {} longer there than the others", format_ns(region.excess_ns));
    named_ns = region.excess_ns;
  }
  if (is_by_function) {
    text += "; " + slow_function_text(function, lateness.holds_up_ns);
    named_ns = std::max(named_ns, function.more_ns());
  }
  text += fmt::format("; the others wait {} in all", format_ns(lateness.costs_ns));
  const double saves = saved_without_cause(lateness.holds_up_ns, named_ns);
  model::Verdict verdict = is_by_region ? facts.about("straggler", *region.row, text, saves)
                                        : facts.about_run("straggler", text, saves);
  facts.blame(rank, verdict);
  verdict.evidence["last"] = static_cast<double>(lateness.last);
  verdict.evidence["calls"] = static_cast<double>(calls);
  verdict.evidence["holds_up_ns"] = lateness.holds_up_ns;
  verdict.evidence["costs_ns"] = lateness.costs_ns;
  if (is_by_region)
    verdict.evidence["excess_ns"] = region.excess_ns;
  if (is_by_function) {
    verdict.evidence["function_excess_ns"] = function.more_cpu_ns;
    verdict.evidence["function_waits_ns"] = function.more_waits_for_cpu_ns;
    if (verdict.path.empty())
      verdict.path = place_text(function.place);
  }
  out.push_back(std::move(verdict));
}

/// "rank 3 is 2.40x slower: 24.0 ms here, the others 10.0 ms (median)"; a ratio to next to nothing
/// says less than that only this rank does the work.
std::string slower_text(std::uint32_t rank, const Standing& slowest) {
  constexpr double kNothing = 0.01;
  const bool is_alone = slowest.median_ns < kNothing * slowest.own_ns;
  const std::string rank_time = format_ns(slowest.own_ns);
  const std::string median_time = format_ns(slowest.median_ns);
  if (is_alone)
    return fmt::format(
        "only rank {} spends time here: {}, the others {} (median)", rank, rank_time, median_time);
  return fmt::format("rank {} is {:.2f}x slower: {} here, the others {} (median)",
                     rank,
                     slowest.own_ns / slowest.median_ns,
                     rank_time,
                     median_time);
}

/// What a region saves once its slowest rank is as fast as the next one; 0 where none stands out.
double saved_by_slowest_ns(const Case& facts, std::size_t row) {
  const auto& ranks = facts.region(row).ranks;
  if (!ranks || is_communication(facts.region(row).domain) || ranks->own_by_rank.size() < 2)
    return 0;
  const Standing slowest = standing(*ranks);
  const double ahead_ns = slowest.own_ns - slowest.next_ns;
  bool stands_out = ahead_ns > kStandsOut * (slowest.next_ns - slowest.least_ns);
  if (ranks->own_by_rank.size() == 2) {
    const double often = kOften * static_cast<double>(ranks->compared);
    const double mean_ns = (slowest.own_ns + slowest.next_ns) / 2;
    stands_out =
        static_cast<double>(ranks->slowest_in) >= often && ahead_ns >= kImbalance * mean_ns;
  }
  return stands_out ? ahead_ns / facts.threads_at_once(row) : 0;
}

void by_regions(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  std::optional<std::size_t> worst;
  double saved_ns = 0;
  for (std::size_t row = 0; row < facts.rows(); ++row) {
    const double row_ns = saved_by_slowest_ns(facts, row);
    if (row_ns > saved_ns) {
      saved_ns = row_ns;
      worst = row;
    }
  }
  if (!worst || !facts.matters(saved_ns))
    return;
  const model::OverRanks& ranks = *facts.region(*worst).ranks;
  const Standing slowest = standing(ranks);
  const std::uint32_t rank = report.ranks[slowest.rank].rank;
  Chance chance;
  chance.add(static_cast<double>(ranks.compared), ranks.by_rank.size());
  const double last = ranks.slowest == rank ? static_cast<double>(ranks.slowest_in) : 0;
  if (is_noise(facts, saved_ns, chance, last))
    return;
  model::Verdict verdict = facts.about("straggler", *worst, slower_text(rank, slowest), saved_ns);
  facts.blame(rank, verdict);
  verdict.evidence["own_ns"] = slowest.own_ns;
  verdict.evidence["median_ns"] = slowest.median_ns;
  verdict.evidence["next_ns"] = slowest.next_ns;
  out.push_back(std::move(verdict));
}

}  // namespace

void find_stragglers(const Case& facts, std::vector<model::Verdict>& out) {
  if (facts.report().ranks.size() < 2)
    return;
  const std::size_t before = out.size();
  if (!facts.report().collectives.empty())
    by_collectives(facts, out);
  // Between messages the lateness of one rank goes on from rank to rank: only a rank's own time
  // shows who began it.
  if (out.size() == before &&
      (facts.report().collectives.empty() || !facts.report().messages.empty()))
    by_regions(facts, out);
}

}  // namespace rangescope::analyze
