#include "analyze/ranks/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analyze/ranks/collectives.hpp"
#include "analyze/statistics/imbalance.hpp"
#include "analyze/statistics/stretches.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr double kNotOpened = std::numeric_limits<double>::quiet_NaN();

/// Of each thread, when it was in calls of communication libraries, and in those that wait for the GPU.
std::vector<Stretches> waits_of(const Session& session, OwnTime which) {
  std::vector<Stretches> threads(session.threads.size());
  for (const model::Range& range : session.ranges)
    if (range.end_ns != kOpen && range.thread < threads.size() && is_communication(session, range))
      threads[range.thread].add(range.start_ns, range.end_ns);
  for (const model::Launch& call : session.launches)
    if (which == OwnTime::kWithoutGpuWaits && call.kind == model::LaunchKind::kSynchronize && call.end_ns != kOpen &&
        call.thread < threads.size())
      threads[call.thread].add(call.start_ns, call.end_ns);
  for (Stretches& each : threads) each.finish();
  return threads;
}

const model::Range* closed_range(const Session& session, const Tree& tree, std::uint32_t occurrence) {
  const std::uint32_t range = tree.range_of[occurrence];
  return range == kNone || session.ranges[range].end_ns == kOpen ? nullptr : &session.ranges[range];
}

class Ranks {
 public:
  Ranks(const Session& session, const Tree& tree, const Buckets& by_cell, const model::Report& report)
      : session_(session), tree_(tree), by_cell_(by_cell), count_(report.ranks.size()) {
    std::map<std::uint32_t, std::uint32_t> place;
    for (std::uint32_t i = 0; i < report.ranks.size(); ++i) {
      place[report.ranks[i].rank] = i;
      numbers_.push_back(report.ranks[i].rank);
    }
    for (const model::Process& process : session.processes)
      rank_of_.push_back(process.rank == kNone ? kNone : place[process.rank]);
    own_ = own_times(session, tree);
  }

  [[nodiscard]] std::optional<model::OverRanks> over(const std::vector<std::uint32_t>& cells) {
    std::vector<std::vector<std::uint32_t>> occurrences(count_);
    for (const std::uint32_t cell : cells) {
      const std::uint32_t process = tree_.cells[cell].process;
      const std::uint32_t rank = process < rank_of_.size() ? rank_of_[process] : kNone;
      if (rank == kNone) continue;
      for (const std::uint32_t o : by_cell_.of(cell))
        if (range_at(o) != nullptr) occurrences[rank].push_back(o);
    }
    model::OverRanks out;
    out.by_rank.assign(count_, kNotOpened);
    out.own_by_rank.assign(count_, kNotOpened);
    std::size_t fewest = SIZE_MAX;
    for (std::size_t rank = 0; rank < count_; ++rank) {
      auto& list = occurrences[rank];
      if (list.empty()) continue;
      std::sort(list.begin(), list.end(), [&](std::uint32_t a, std::uint32_t b) {
        const std::int64_t x = range_at(a)->start_ns, y = range_at(b)->start_ns;
        return x != y ? x < y : a < b;
      });
      double sum = 0, own = 0;
      for (const std::uint32_t o : list) {
        sum += length(o);
        own += own_[o];
      }
      out.by_rank[rank] = sum;
      out.own_by_rank[rank] = std::max(0.0, own);
      fewest = std::min(fewest, list.size());
    }
    const std::size_t slowest = sum_up(out);
    if (out.count == 0) return std::nullopt;
    out.slowest = numbers_[slowest];
    out.compared = static_cast<std::int64_t>(fewest);
    for (std::size_t i = 0; i < fewest; ++i) {
      const double longest = length(occurrences[slowest][i]);
      const bool all = std::all_of(occurrences.begin(), occurrences.end(),
                                   [&](const auto& list) { return list.empty() || length(list[i]) <= longest; });
      out.slowest_in += all ? 1 : 0;
    }
    return out;
  }

 private:
  [[nodiscard]] const model::Range* range_at(std::uint32_t occurrence) const {
    return closed_range(session_, tree_, occurrence);
  }
  [[nodiscard]] double length(std::uint32_t occurrence) const {
    const model::Range* range = range_at(occurrence);
    return static_cast<double>(length_ns(range->start_ns, range->end_ns));
  }

  const Session& session_;
  const Tree& tree_;
  const Buckets& by_cell_;
  std::size_t count_;
  std::vector<std::uint32_t> numbers_, rank_of_;
  std::vector<double> own_;  ///< of each occurrence
};

}  // namespace

std::vector<double> own_times(const Session& session, const Tree& tree, OwnTime which) {
  const std::vector<Stretches> waits = waits_of(session, which);
  std::vector<double> own(tree.range_of.size(), 0);
  for (std::uint32_t o = 0; o < tree.range_of.size(); ++o) {
    const model::Range* range = closed_range(session, tree, o);
    if (range == nullptr) continue;
    const auto work = static_cast<double>(length_ns(range->start_ns, range->end_ns) -
                                          waits[range->thread].within(range->start_ns, range->end_ns));
    own[o] += work;
    if (tree.parent[o] != kNone) own[tree.parent[o]] -= work;
  }
  return own;
}

std::size_t sum_up(model::OverRanks& ranks) {
  std::size_t slowest = 0;
  ranks.count = 0;
  ranks.mean_ns = 0;
  for (std::size_t rank = 0; rank < ranks.by_rank.size(); ++rank) {
    const double sum = ranks.by_rank[rank];
    if (std::isnan(sum)) continue;
    ranks.mean_ns += sum;
    ranks.min_ns = ranks.count == 0 ? sum : std::min(ranks.min_ns, sum);
    if (ranks.count == 0 || sum > ranks.max_ns) ranks.max_ns = sum, slowest = rank;
    ++ranks.count;
  }
  if (ranks.count == 0) return slowest;
  const auto n = static_cast<double>(ranks.count);
  ranks.mean_ns /= n;
  double squares = 0;
  for (const double ns : ranks.by_rank)
    if (!std::isnan(ns)) squares += (ns - ranks.mean_ns) * (ns - ranks.mean_ns);
  ranks.stddev_ns = ranks.count > 1 ? std::sqrt(squares / (n - 1)) : 0;
  ranks.imbalance = imbalance_of(ranks.max_ns, ranks.mean_ns);
  return slowest;
}

void list_ranks(const Session& session, model::Report& report) {
  std::map<std::uint32_t, model::Rank> ranks;
  std::map<std::uint32_t, std::set<std::string>> devices;
  std::map<std::uint32_t, bool> opened;
  for (std::uint32_t p = 0; p < session.processes.size(); ++p) {
    const model::Process& process = session.processes[p];
    if (process.rank == kNone) continue;
    model::Rank& rank = ranks[process.rank];
    const bool opens = p < report.processes.size() && report.processes[p].ranges > 0;
    if (rank.pid == 0 || (opens && !opened[process.rank])) rank.pid = process.pid;
    opened[process.rank] = opened[process.rank] || opens;
    rank.rank = process.rank;
    if (process.local_rank != kNone) rank.local_rank = process.local_rank;
    rank.world = std::max(rank.world, process.world);
    if (process.host != 0) rank.host = std::string(session.strings.view(process.host));
    if (process.run != 0) rank.run = std::string(session.strings.view(process.run));
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

void add_over_ranks(const Session& session, const Tree& tree, const std::vector<RegionKey>& keys,
                    const Buckets& by_cell, model::Report& report) {
  if (report.ranks.size() < 2) return;
  Ranks ranks(session, tree, by_cell, report);
  const auto cells = [&](const RegionKey& key, std::vector<std::uint32_t>& into) {
    into.insert(into.end(), tree.node_cells.begin() + static_cast<std::ptrdiff_t>(key.first),
                tree.node_cells.begin() + static_cast<std::ptrdiff_t>(key.last));
  };
  for (std::size_t r = 0; r < keys.size() && r < report.regions.size(); ++r) {
    if (keys[r].process != kNone || keys[r].thread != kNone) continue;
    std::vector<std::uint32_t> list;
    cells(keys[r], list);
    report.regions[r].ranks = ranks.over(list);
  }
  for (model::TableRow& row : report.rows) {
    if (!row.merged) continue;
    std::vector<std::uint32_t> list;
    for (const std::uint32_t id : row.members) cells(keys[id], list);
    row.merged->ranks = ranks.over(list);
  }
}

}  // namespace rangescope::analyze
