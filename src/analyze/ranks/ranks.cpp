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
  for (const model::Launch& call : session.launches) {
    const bool is_wait = call.kind == model::LaunchKind::kSynchronize && call.end_ns != kOpen;
    if (for_the_gpu && is_wait && call.thread < threads.size())
      threads[call.thread].add(call.start_ns, call.end_ns);
  }
  for (Stretches& waits : threads)
    waits.finish();
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
    if (inside.empty())
      continue;
    const std::uint32_t unlisted = inside[tree.range_of[o]];
    if (unlisted != kNone)
      own[o] -= session.unlisted_inside[unlisted].ns;
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
    if (ranks.count == 0 || sum > ranks.max_ns) {
      ranks.max_ns = sum;
      slowest = rank;
    }
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
  const std::uint32_t added_shift = to_shift - shift;
  std::vector<Longest> thinned;
  for (std::size_t i = 0; i < longest.size(); i += std::size_t{1} << added_shift)
    thinned.push_back(longest[i]);
  longest = std::move(thinned);
  const std::uint32_t dropped_bits = (1u << added_shift) - 1;
  std::erase_if(ties, [&](const auto& tie) { return (tie.first & dropped_bits) != 0; });
  for (auto& tie : ties)
    tie.first >>= added_shift;
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
  longest.resize(std::min({kept(), longest.size(), other.longest.size()}));
  const bool has_no_ties = ties.empty() && other.ties.empty();
  std::uint32_t first_tie = 0;
  while (has_no_ties && first_tie < longest.size()) {
    Longest& own = longest[first_tie];
    const Longest& theirs = other.longest[first_tie];
    if (own.ns == theirs.ns)
      break;
    if (own.ns < theirs.ns)
      own = theirs;
    ++first_tie;
  }
  if (first_tie < longest.size())
    add_tied(other, first_tie);
  if (longest.empty())
    ties.clear();
}

void Ordinals::add_tied(const Ordinals& other, std::uint32_t first) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> merged;
  auto own_tie = ties.cbegin();
  auto their_tie = other.ties.cbegin();
  // Reads the ties of a position, and keeps them or not.
  const auto read = [&merged](std::uint32_t position, auto& tie, auto end, bool keep) {
    for (; tie != end && tie->first == position; ++tie)
      if (keep)
        merged.push_back(*tie);
  };
  for (std::uint32_t position = first; position < longest.size(); ++position) {
    Longest& own = longest[position];
    const Longest& theirs = other.longest[position];
    const bool is_equal = own.ns == theirs.ns;
    const bool is_own_longer = own.ns > theirs.ns;
    const auto first_of_position = static_cast<std::ptrdiff_t>(merged.size());
    read(position, own_tie, ties.cend(), is_own_longer || is_equal);
    read(position, their_tie, other.ties.cend(), !is_own_longer);
    if (is_equal)
      merged.emplace_back(position, std::max(own.rank, theirs.rank));
    std::sort(merged.begin() + first_of_position, merged.end());
    if (is_equal)
      own.rank = std::min(own.rank, theirs.rank);
    else if (!is_own_longer)
      own = theirs;
  }
  ties = std::move(merged);
}

std::uint64_t Ordinals::times(std::uint32_t rank) const {
  const auto count =
      std::ranges::count(longest, rank, &Longest::rank) +
      std::ranges::count(ties, rank, &std::pair<std::uint32_t, std::uint32_t>::second);
  return static_cast<std::uint64_t>(count);
}

std::string ranks_named(std::span<const std::uint32_t> ranks) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  for (const std::uint32_t rank : ranks.first(std::min(kMost, ranks.size())))
    names.push_back(std::to_string(rank));
  std::string text = ranks.size() > 1 ? "ranks " : "rank ";
  text += base::join(names, ", ");
  if (ranks.size() > kMost)
    text += " and " + std::to_string(ranks.size() - kMost) + " more";
  return text;
}

std::uint32_t shift_for(std::size_t count, std::size_t max_kept) {
  std::uint32_t shift = 0;
  while ((count >> shift) > max_kept && shift < 32)
    ++shift;
  return shift;
}

RankTimes::RankTimes(const Regions& regions)
    : regions_(regions),
      own_(own_times(regions.session, regions.tree, waits_of(regions.session, false))),
      paced_(own_times(regions.session, regions.tree, waits_of(regions.session, true))) {}

namespace {

/// What a rank has of some regions while they are added up.
struct RankSums {
  std::int64_t sum_ns = 0, own_ns = 0, paced_ns = 0;
  std::vector<std::uint32_t> listed;  ///< occurrences
  std::uint64_t unlisted = 0, listed_before = UINT64_MAX;

  void add(const UnlistedOfCell& cell) {
    sum_ns += cell.sum_ns;
    own_ns += cell.sum_ns - cell.inside_ns;
    paced_ns += cell.sum_ns - cell.inside_ns;
    unlisted += cell.count();
    listed_before = std::min(listed_before, cell.first_listed);
  }

  [[nodiscard]] std::uint64_t occurrences() const { return listed.size() + unlisted; }
};

/// Lengths of its occurrences before the first unlisted one, at most `max_lengths`.
Ordinals ordinals_of(const RankSums& sums,
                     std::uint32_t rank,
                     const Regions& regions,
                     std::size_t max_lengths) {
  const std::uint64_t listed = sums.listed.size();
  const auto before_unlisted = static_cast<std::size_t>(std::min(listed, sums.listed_before));
  Ordinals ordinals{sums.occurrences(), shift_for(before_unlisted, max_lengths), {}, {}};
  for (std::size_t i = 0; i < before_unlisted; i += std::size_t{1} << ordinals.shift) {
    const model::Range& range = *closed_range(regions.session, regions.tree, sums.listed[i]);
    const auto ns = static_cast<std::uint64_t>(length_ns(range.start_ns, range.end_ns));
    ordinals.longest.push_back({ns, rank});
  }
  return ordinals;
}

}  // namespace

ByRank RankTimes::of(std::span<const std::uint32_t> members, std::size_t max_lengths) const {
  const model::Session& session = regions_.session;
  const Tree& tree = regions_.tree;
  const auto rank_of = [&](std::uint32_t cell) {
    const std::uint32_t process = tree.cells[cell].process;
    if (process >= session.processes.size())
      return kNone;
    return session.processes[process].rank;
  };
  std::map<std::uint32_t, RankSums> ranks;
  for (const std::uint32_t region : members) {
    for (const std::uint32_t cell : regions_.cells(region)) {
      const UnlistedOfCell* unlisted = tree.unlisted(cell);
      const std::uint32_t rank = rank_of(cell);
      if (unlisted != nullptr && rank != kNone)
        ranks[rank].add(*unlisted);
    }
    regions_.for_each_closed(region, [&](std::uint32_t occurrence, const model::Range& range) {
      const std::uint32_t rank = rank_of(tree.cell[occurrence]);
      if (rank == kNone)
        return;
      RankSums& sums = ranks[rank];
      sums.sum_ns += length_ns(range.start_ns, range.end_ns);
      sums.own_ns += own_[occurrence];
      sums.paced_ns += paced_[occurrence];
      sums.listed.push_back(occurrence);
    });
  }
  ByRank out;
  for (auto& [rank, sums] : ranks) {
    std::sort(sums.listed.begin(), sums.listed.end(), Earlier{session, tree});
    out.ordinals.add(ordinals_of(sums, rank, regions_, max_lengths), out.ranks.empty());
    out.ranks.push_back({rank, sums.sum_ns, sums.own_ns, sums.paced_ns});
    out.closed += sums.occurrences();
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
    if (std::isnan(sum))
      sum = 0;
    sum += number(ns);
  };
  for (const ByRank* region : regions) {
    std::size_t place = 0;  // both ascend
    for (const OfRank& of_rank : region->ranks) {
      while (place < ranks.size() && ranks[place].rank < of_rank.rank)
        ++place;
      if (place == ranks.size())
        break;
      if (ranks[place].rank != of_rank.rank)
        continue;
      add(out.by_rank[place], of_rank.sum_ns);
      add(out.own_by_rank[place], of_rank.own_ns);
    }
  }
  for (double& own_ns : out.own_by_rank)
    if (!std::isnan(own_ns))
      own_ns = std::max(0.0, own_ns);
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

namespace {

/// Adds what a process of the rank knows.
void describe_rank(const Session& session, const model::Process& process, model::Rank& rank) {
  rank.rank = process.rank;
  if (process.local_rank != kNone)
    rank.local_rank = process.local_rank;
  rank.world = std::max(rank.world, process.world);
  if (process.host != 0)
    rank.host = std::string(session.strings.view(process.host));
  if (process.run != 0)
    rank.run = std::string(session.strings.view(process.run));
}

/// Names of the GPUs of each rank.
std::map<std::uint32_t, std::set<std::string>> devices_by_rank(const Session& session,
                                                               const model::Report& report) {
  std::map<std::uint32_t, std::set<std::string>> devices;
  for (std::size_t i = 0; i < report.devices.size() && i < report.device_names.size(); ++i) {
    const std::uint32_t process = report.devices[i].process;
    if (process >= session.processes.size())
      continue;
    const std::uint32_t rank = session.processes[process].rank;
    if (rank != kNone)
      devices[rank].insert(report.device_names[i]);
  }
  return devices;
}

}  // namespace

void list_ranks(const Session& session, model::Report& report) {
  std::map<std::uint32_t, model::Rank> ranks;
  std::set<std::uint32_t> with_ranges;  // ranks whose process ID is one that opened ranges
  for (std::uint32_t p = 0; p < session.processes.size(); ++p) {
    const model::Process& process = session.processes[p];
    if (process.rank == kNone)
      continue;
    model::Rank& rank = ranks[process.rank];
    const bool opens = p < report.processes.size() && report.processes[p].ranges > 0;
    const bool is_first_to_open = opens && with_ranges.insert(process.rank).second;
    if (rank.pid == 0 || is_first_to_open)
      rank.pid = process.pid;
    describe_rank(session, process, rank);
  }
  auto devices = devices_by_rank(session, report);
  for (auto& [number, rank] : ranks) {
    const auto& names = devices[number];
    rank.device = base::join(std::vector<std::string>(names.begin(), names.end()), ", ");
    report.ranks.push_back(std::move(rank));
  }
}

}  // namespace rangescope::analyze
