// The rank of a parallel job that the others wait for.
//
// Where collectives were recorded, they say who came last and what the others waited. Else the time
// of ranks in regions of their own must tell: a rank that stands out by three times of what the
// others differ by. What costs little is told of a rank only where it comes last more often than by
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

Standing standing(const model::OverRanks& ranks, std::optional<std::size_t> of = std::nullopt) {
  std::vector<double> own;
  for (const double ns : ranks.own_by_rank)
    own.push_back(std::isnan(ns) ? 0 : ns);
  Standing out;
  out.rank =
      of.value_or(static_cast<std::size_t>(std::max_element(own.begin(), own.end()) - own.begin()));
  out.own_ns = own[out.rank];
  own.erase(own.begin() + static_cast<std::ptrdiff_t>(out.rank));
  out.next_ns = *std::max_element(own.begin(), own.end());
  out.least_ns = *std::min_element(own.begin(), own.end());
  out.median_ns = median_of(own);
  return out;
}

/// The row in which this rank takes longest over what is usual; its excess in `excess`.
std::optional<std::size_t> cause_of(const Case& known, std::size_t rank, double& excess) {
  std::optional<std::size_t> worst;
  for (std::size_t row = 0; row < known.rows(); ++row) {
    const auto& ranks = known.region(row).ranks;
    if (!ranks || is_communication(known.region(row).domain) || rank >= ranks->own_by_rank.size())
      continue;
    const Standing one = standing(*ranks, rank);
    const double more = (one.own_ns - one.median_ns) / known.threads_at_once(row);
    if (more > excess)
      excess = more, worst = row;
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
    const double each = 1 / static_cast<double>(std::max<std::size_t>(ranks, 1));
    mean += calls * each;
    variance += calls * each * (1 - each);
  }
  [[nodiscard]] bool explains(double last) const {
    return last <= mean + kChance * std::sqrt(variance);
  }
};

bool is_noise(const Case& known, double saves_ns, const Chance& chance, double last) {
  return saves_ns < kMoreThanNoise * known.whole_ns() && chance.explains(last);
}

void by_collectives(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  struct Sums {
    double holds_up = 0, costs = 0;
    std::int64_t last = 0;
    Chance chance;
    const model::Collective* worst = nullptr;
    double of_worst = 0;
  };
  std::map<std::uint32_t, Sums> ranks;
  std::int64_t calls = 0;
  for (const model::Collective& collective : report.collectives) {
    calls += collective.calls;
    for (const model::CollectiveOfRank& one : collective.by_rank) {
      Sums& sums = ranks[one.rank];
      sums.holds_up += one.holds_up_ns;
      sums.costs += one.costs_ns;
      sums.last += one.last;
      sums.chance.add(static_cast<double>(collective.calls), collective.by_rank.size());
      if (one.holds_up_ns > sums.of_worst)
        sums.of_worst = one.holds_up_ns, sums.worst = &collective;
    }
  }
  const auto most = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.second.holds_up < b.second.holds_up;
  });
  if (most == ranks.end() || most->second.worst == nullptr)
    return;
  double next = 0;
  for (const auto& [rank, sums] : ranks)
    if (rank != most->first)
      next = std::max(next, sums.holds_up);
  const Sums& worst = most->second;
  if (worst.holds_up < kStandsOut * next || !known.matters(worst.holds_up) ||
      is_noise(known, worst.holds_up, worst.chance, static_cast<double>(worst.last)))
    return;

  std::size_t place = 0;
  while (place < report.ranks.size() && report.ranks[place].rank != most->first)
    ++place;
  double excess = 0;
  const auto cause = cause_of(known, place, excess);
  const bool explains = cause && excess >= kCause * worst.holds_up;
  std::string where = worst.worst->operation;
  if (!worst.worst->path.empty())
    where += " in '" + base::printable(base::join(worst.worst->path, " > ")) + "'";
  std::string text = fmt::format(
      "rank {} arrives {} late at {}, last in {} of {} collective calls",
      most->first,
      format_ns(worst.holds_up / static_cast<double>(std::max<std::int64_t>(worst.last, 1))),
      where,
      format_count(worst.last),
      format_count(calls));
  if (explains)
    text += fmt::format(": it takes {} longer there than the others", format_ns(excess));
  const SlowFunction slowest = slow_function(report.ranks, place);
  const bool is_by_function = slowest.more_ns() >= kCause * worst.holds_up;
  if (is_by_function)
    text += "; " + slow_function_text(slowest, worst.holds_up);
  text += fmt::format("; the others wait {} in all", format_ns(worst.costs));
  double named_ns = 0;
  if (explains)
    named_ns = excess;
  if (is_by_function)
    named_ns = std::max(named_ns, slowest.more_ns());
  const double saves = saved_without_cause(worst.holds_up, named_ns);
  model::Verdict verdict = explains ? known.about("straggler", *cause, std::move(text), saves)
                                    : known.about_run("straggler", std::move(text), saves);
  known.blame(most->first, verdict);
  verdict.evidence["last"] = static_cast<double>(worst.last);
  verdict.evidence["calls"] = static_cast<double>(calls);
  verdict.evidence["holds_up_ns"] = worst.holds_up;
  verdict.evidence["costs_ns"] = worst.costs;
  if (explains)
    verdict.evidence["excess_ns"] = excess;
  if (is_by_function) {
    verdict.evidence["function_excess_ns"] = slowest.more_cpu_ns;
    verdict.evidence["function_waits_ns"] = slowest.more_waits_for_cpu_ns;
    if (verdict.path.empty())
      verdict.path = place_text(slowest.place);
  }
  out.push_back(std::move(verdict));
}

/// "rank 3 is 2.40x slower: 24.0 ms here, the others 10.0 ms (median)"; a ratio to next to nothing
/// says less than that only this rank does the work.
std::string slower_text(std::uint32_t rank, const Standing& one) {
  constexpr double kNothing = 0.01;
  const bool is_alone = one.median_ns < kNothing * one.own_ns;
  const std::string own = format_ns(one.own_ns), others = format_ns(one.median_ns);
  if (is_alone)
    return fmt::format(
        "only rank {} spends time here: {}, the others {} (median)", rank, own, others);
  return fmt::format("rank {} is {:.2f}x slower: {} here, the others {} (median)",
                     rank,
                     one.own_ns / one.median_ns,
                     own,
                     others);
}

void by_regions(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  const auto saves = [&](std::size_t row) {
    const auto& ranks = known.region(row).ranks;
    if (!ranks || is_communication(known.region(row).domain) || ranks->own_by_rank.size() < 2)
      return 0.0;
    const Standing one = standing(*ranks);
    const double more = one.own_ns - one.next_ns, saved = more / known.threads_at_once(row);
    if (ranks->own_by_rank.size() > 2)
      return more > kStandsOut * (one.next_ns - one.least_ns) ? saved : 0.0;
    const bool often =
        static_cast<double>(ranks->slowest_in) >= kOften * static_cast<double>(ranks->compared);
    return often && more >= kImbalance * (one.own_ns + one.next_ns) / 2 ? saved : 0.0;
  };
  std::optional<std::size_t> worst;
  double most = 0;
  for (std::size_t row = 0; row < known.rows(); ++row)
    if (const double ns = saves(row); ns > most)
      most = ns, worst = row;
  if (!worst || !known.matters(most))
    return;
  const model::OverRanks& ranks = *known.region(*worst).ranks;
  const Standing one = standing(ranks);
  const std::uint32_t rank = report.ranks[one.rank].rank;
  Chance chance;
  chance.add(static_cast<double>(ranks.compared), ranks.by_rank.size());
  if (is_noise(
          known, most, chance, ranks.slowest == rank ? static_cast<double>(ranks.slowest_in) : 0))
    return;
  model::Verdict verdict = known.about("straggler", *worst, slower_text(rank, one), most);
  known.blame(rank, verdict);
  verdict.evidence["own_ns"] = one.own_ns;
  verdict.evidence["median_ns"] = one.median_ns;
  verdict.evidence["next_ns"] = one.next_ns;
  out.push_back(std::move(verdict));
}

}  // namespace

void find_stragglers(const Case& known, std::vector<model::Verdict>& out) {
  if (known.report().ranks.size() < 2)
    return;
  const std::size_t before = out.size();
  if (!known.report().collectives.empty())
    by_collectives(known, out);
  // Between messages the lateness of one rank goes on from rank to rank: only a rank's own time
  // shows who began it.
  if (out.size() == before &&
      (known.report().collectives.empty() || !known.report().messages.empty()))
    by_regions(known, out);
}

}  // namespace rangescope::analyze
