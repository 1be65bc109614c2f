#include "analyze/ranks/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/ranks/collectives.hpp"
#include "analyze/statistics/stretches.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

/// Of each thread, when it was in calls of communication libraries, and if wanted in those that
/// wait for the GPU.
std::vector<Stretches> waits_of(const Session& session, bool for_the_gpu) {
  std::vector<Stretches> threads(session.threads.size());
  for (const model::Range& range : session.ranges)
    if (range.end_ns != kOpen && range.thread < threads.size() && is_communication(session, range))
      threads[range.thread].add(range.start_ns, range.end_ns);
  for (const model::Launch& call : session.launches)
    if (for_the_gpu && call.kind == model::LaunchKind::kSynchronize && call.end_ns != kOpen &&
        call.thread < threads.size())
      threads[call.thread].add(call.start_ns, call.end_ns);
  for (Stretches& each : threads)
    each.finish();
  return threads;
}

/// Of each closed occurrence, its time less that of child regions and of waits inside.
std::vector<std::int64_t> own_times(const Session& session,
                                    const Tree& tree,
                                    const std::vector<Stretches>& waits) {
  const std::vector<std::uint32_t> inside = unlisted_inside(session);
  std::vector<std::int64_t> own(tree.range_of.size(), 0);
  for (std::uint32_t o = 0; o < tree.range_of.size(); ++o) {
    const model::Range* range = closed_range(session, tree, o);
    if (range == nullptr)
      continue;
    const std::int64_t work = length_ns(range->start_ns, range->end_ns) -
                              waits[range->thread].within(range->start_ns, range->end_ns);
    own[o] += work;
    if (tree.parent[o] != kNone)
      own[tree.parent[o]] -= work;
    if (const std::uint32_t i = inside.empty() ? kNone : inside[tree.range_of[o]]; i != kNone)
      own[o] -= session.unlisted_inside[i].ns;
  }
  return own;
}

/// Fills count, mean, least, most, deviation and imbalance by OverRanks::by_rank; the index of the
/// slowest.
std::size_t summarize(model::OverRanks& ranks) {
  std::size_t slowest = 0;
  ranks.count = 0;
  ranks.mean_ns = 0;
  for (std::size_t rank = 0; rank < ranks.by_rank.size(); ++rank) {
    const double sum = ranks.by_rank[rank];
    if (std::isnan(sum))
      continue;
    ranks.mean_ns += sum;
    ranks.min_ns = ranks.count == 0 ? sum : std::min(ranks.min_ns, sum);
    if (ranks.count == 0 || sum > ranks.max_ns)
      ranks.max_ns = sum, slowest = rank;
    ++ranks.count;
  }
  if (ranks.count == 0)
    return slowest;
  const auto n = static_cast<double>(ranks.count);
  ranks.mean_ns /= n;
  double squares = 0;
  for (const double ns : ranks.by_rank)
    if (!std::isnan(ns))
      squares += (ns - ranks.mean_ns) * (ns - ranks.mean_ns);
  ranks.stddev_ns = ranks.count > 1 ? std::sqrt(squares / (n - 1)) : 0;
  ranks.imbalance = imbalance_of(ranks.max_ns, ranks.mean_ns);
  return slowest;
}

}  // namespace

void Ordinals::thin(std::uint32_t to_shift) {
  if (to_shift <= shift)
    return;
  const std::uint32_t by = to_shift - shift;
  std::vector<Longest> fewer;
  for (std::size_t i = 0; i < longest.size(); i += std::size_t{1} << by)
    fewer.push_back(longest[i]);
  longest = std::move(fewer);
  std::erase_if(ties, [&](const auto& tie) { return (tie.first & ((1u << by) - 1)) != 0; });
  for (auto& tie : ties)
    tie.first >>= by;
  shift = to_shift;
}

void Ordinals::add(const Ordinals& other, bool first) {
  if (first) {
    *this = other;
    return;
  }
  thin(other.shift);
  if (other.shift < shift) {
    Ordinals thinner = other;
    thinner.thin(shift);
    return add(thinner, false);
  }
  compared = std::min(compared, other.compared);
  if (const std::size_t size = std::min({kept(), longest.size(), other.longest.size()});
      size < longest.size())
    longest.resize(size);
  std::uint32_t from = 0;
  if (ties.empty() && other.ties.empty())
    for (; from < longest.size() && longest[from].ns != other.longest[from].ns; ++from)
      if (longest[from].ns < other.longest[from].ns)
        longest[from] = other.longest[from];
  if (from < longest.size())
    add_tied(other, from);
  if (longest.empty())
    ties.clear();
}

void Ordinals::add_tied(const Ordinals& other, std::uint32_t first) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
  auto mine = ties.cbegin();
  auto theirs = other.ties.cbegin();
  const auto keep = [&all](std::uint32_t at, auto& tie, auto end, bool kept) {
    for (; tie != end && tie->first == at; ++tie)
      if (kept)
        all.push_back(*tie);
  };
  for (std::uint32_t i = first; i < longest.size(); ++i) {
    Longest& one = longest[i];
    const Longest& two = other.longest[i];
    const bool equal = one.ns == two.ns, longer = one.ns > two.ns;
    const std::size_t from = all.size();
    keep(i, mine, ties.cend(), longer || equal);
    keep(i, theirs, other.ties.cend(), !longer);
    if (equal)
      all.emplace_back(i, std::max(one.rank, two.rank));
    if (all.size() > from)
      std::sort(all.begin() + static_cast<std::ptrdiff_t>(from), all.end());
    if (equal)
      one.rank = std::min(one.rank, two.rank);
    if (!equal && !longer)
      one = two;
  }
  ties = std::move(all);
}

std::uint64_t Ordinals::times(std::uint32_t rank) const {
  std::uint64_t count = 0;
  for (const Longest& one : longest)
    count += one.rank == rank ? 1 : 0;
  for (const auto& tie : ties)
    count += tie.second == rank ? 1 : 0;
  return count;
}

std::string ranks_named(std::span<const std::uint32_t> ranks) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  for (const std::uint32_t rank : ranks.first(std::min(kMost, ranks.size())))
    names.push_back(std::to_string(rank));
  const std::string more =
      ranks.size() > kMost ? " and " + std::to_string(ranks.size() - kMost) + " more" : "";
  return (ranks.size() > 1 ? "ranks " : "rank ") + base::join(names, ", ") + more;
}

std::uint32_t shift_for(std::size_t count, std::size_t most) {
  std::uint32_t shift = 0;
  while ((count >> shift) > most && shift < 32)
    ++shift;
  return shift;
}

RankTimes::RankTimes(const Regions& regions)
    : regions_(regions),
      own_(own_times(regions.session, regions.tree, waits_of(regions.session, false))),
      paced_(own_times(regions.session, regions.tree, waits_of(regions.session, true))) {}

ByRank RankTimes::of(std::span<const std::uint32_t> members, std::size_t most) const {
  struct Rank {
    std::int64_t sum = 0, own = 0, paced = 0;
    std::vector<std::uint32_t> listed;
    std::uint64_t unlisted = 0, first_listed = UINT64_MAX;
  };
  std::map<std::uint32_t, Rank> ranks;
  const auto& session = regions_.session;
  const auto rank_of = [&](std::uint32_t cell) {
    const std::uint32_t process = regions_.tree.cells[cell].process;
    return process < session.processes.size() ? session.processes[process].rank : kNone;
  };
  for (const std::uint32_t r : members) {
    for (const std::uint32_t cell : regions_.cells(r)) {
      const UnlistedOfCell* more = regions_.tree.unlisted(cell);
      if (more == nullptr || rank_of(cell) == kNone)
        continue;
      Rank& of = ranks[rank_of(cell)];
      of.sum += more->sum_ns;
      of.own += more->sum_ns - more->inside_ns;
      of.paced += more->sum_ns - more->inside_ns;
      of.unlisted += more->count();
      of.first_listed = std::min(of.first_listed, more->first_listed);
    }
    regions_.for_each_closed(r, [&](std::uint32_t o, const model::Range& range) {
      const std::uint32_t rank = rank_of(regions_.tree.cell[o]);
      if (rank == kNone)
        return;
      Rank& of = ranks[rank];
      of.sum += length_ns(range.start_ns, range.end_ns);
      of.own += own_[o];
      of.paced += paced_[o];
      of.listed.push_back(o);
    });
  }
  ByRank out;
  for (auto& [rank, of] : ranks) {
    std::sort(of.listed.begin(), of.listed.end(), Earlier{session, regions_.tree});
    const auto known =
        static_cast<std::size_t>(std::min<std::uint64_t>(of.listed.size(), of.first_listed));
    Ordinals ordinals{of.listed.size() + of.unlisted, shift_for(known, most), {}, {}};
    for (std::size_t i = 0; i < known; i += std::size_t{1} << ordinals.shift) {
      const model::Range& range = *closed_range(session, regions_.tree, of.listed[i]);
      ordinals.longest.push_back(
          {static_cast<std::uint64_t>(length_ns(range.start_ns, range.end_ns)), rank});
    }
    out.ordinals.add(ordinals, out.ranks.empty());
    out.ranks.push_back({rank, of.sum, of.own, of.paced});
    out.closed += of.listed.size() + of.unlisted;
  }
  return out;
}

std::optional<model::OverRanks> over_ranks(const std::vector<const ByRank*>& regions,
                                           const std::vector<model::Rank>& ranks) {
  if (ranks.size() < 2)
    return std::nullopt;
  model::OverRanks out;
  out.by_rank.assign(ranks.size(), model::kNan);
  out.own_by_rank.assign(ranks.size(), model::kNan);
  const auto add = [](double& sum, std::int64_t ns) {
    sum = (std::isnan(sum) ? 0 : sum) + number(ns);
  };
  for (const ByRank* region : regions) {
    std::size_t at = 0;  // both ascend
    for (const OfRank& one : region->ranks) {
      while (at < ranks.size() && ranks[at].rank < one.rank)
        ++at;
      if (at == ranks.size())
        break;
      if (ranks[at].rank != one.rank)
        continue;
      add(out.by_rank[at], one.sum_ns);
      add(out.own_by_rank[at], one.own_ns);
    }
  }
  for (double& own : out.own_by_rank)
    own = std::isnan(own) ? own : std::max(0.0, own);
  const std::size_t slowest = summarize(out);
  if (out.count == 0)
    return std::nullopt;
  out.slowest = ranks[slowest].rank;
  if (regions.size() > 1)
    return out;
  out.compared = static_cast<std::int64_t>(regions.front()->ordinals.longest.size());
  out.slowest_in = static_cast<std::int64_t>(regions.front()->ordinals.times(out.slowest));
  return out;
}

void list_ranks(const Session& session, model::Report& report) {
  std::map<std::uint32_t, model::Rank> ranks;
  std::map<std::uint32_t, std::set<std::string>> devices;
  std::map<std::uint32_t, bool> opened;
  for (std::uint32_t p = 0; p < session.processes.size(); ++p) {
    const model::Process& process = session.processes[p];
    if (process.rank == kNone)
      continue;
    model::Rank& rank = ranks[process.rank];
    const bool opens = p < report.processes.size() && report.processes[p].ranges > 0;
    if (rank.pid == 0 || (opens && !opened[process.rank]))
      rank.pid = process.pid;
    opened[process.rank] = opened[process.rank] || opens;
    rank.rank = process.rank;
    if (process.local_rank != kNone)
      rank.local_rank = process.local_rank;
    rank.world = std::max(rank.world, process.world);
    if (process.host != 0)
      rank.host = std::string(session.strings.view(process.host));
    if (process.run != 0)
      rank.run = std::string(session.strings.view(process.run));
  }
  for (std::size_t i = 0; i < report.devices.size() && i < report.device_names.size(); ++i) {
    const std::uint32_t process = report.devices[i].process;
    if (process < session.processes.size() && session.processes[process].rank != kNone)
      devices[session.processes[process].rank].insert(report.device_names[i]);
  }
  for (auto& [number, rank] : ranks) {
    const auto& names = devices[number];
    rank.device = base::join(std::vector<std::string>(names.begin(), names.end()), ", ");
    report.ranks.push_back(std::move(rank));
  }
}

}  // namespace rangescope::analyze
