// Why ranks of a job differ: a GPU that is slower for the same kernels, a host that is slower for
// the same ranges, more work on some of them, a link that is slower for transfers of one size.
//
// Those that differ are the few above the widest gap: more than kStandsOut times as far from the
// rest as the rest lie apart. Causes of a rank with more work are not looked for in its GPU or its
// host.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analyze/ranks/ranks.hpp"
#include "analyze/statistics/spread.hpp"
#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using base::format_ns;
using base::format_share;

/// Indexes of the values above the gap, at most half of them and of two one; `least`: how far above
/// at least, as a share of the largest of the rest. Empty where nothing stands out.
std::vector<std::size_t> standing_out(const std::vector<double>& values, double least) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i]))
      order.push_back(i);
  const std::size_t n = order.size();
  if (n < 2)
    return {};
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] < values[b];
  });
  for (std::size_t few = 1; few <= std::max<std::size_t>(1, (n - 1) / 2); ++few) {
    const double next = values[order[n - few - 1]];
    const double gap = values[order[n - few]] - next;
    const double spread_of_rest = next - values[order.front()];
    if (gap >= least * next && gap > kStandsOut * spread_of_rest)
      return {order.end() - static_cast<std::ptrdiff_t>(few), order.end()};
  }
  return {};
}

bool contains(const std::vector<std::size_t>& places, std::size_t place) {
  return std::ranges::find(places, place) != places.end();
}

std::string places_named(const model::Report& report, const std::vector<std::size_t>& places) {
  std::vector<std::uint32_t> ranks;
  for (const std::size_t place : places)
    ranks.push_back(report.ranks[place].rank);
  return ranks_named(ranks);
}

double median_of_rest(const model::Report& report,
                      const std::vector<std::size_t>& few,
                      double (*get)(const model::Rank&)) {
  std::vector<double> rest;
  for (std::size_t place = 0; place < report.ranks.size(); ++place) {
    const double value = get(report.ranks[place]);
    if (!std::isnan(value) && !contains(few, place))
      rest.push_back(value);
  }
  return rest.empty() ? model::kNan : median_of(rest);
}

/// A verdict about the ranks at `places`.
model::Verdict verdict_of_ranks(const Case& facts,
                                std::string_view kind,
                                const std::vector<std::size_t>& places,
                                std::string text,
                                double saves_ns) {
  model::Verdict verdict = facts.about_run(kind, std::move(text), saves_ns);
  facts.blame(facts.report().ranks[places.front()].rank, verdict);
  verdict.evidence["ranks"] = static_cast<double>(places.size());
  return verdict;
}

/// A measure of a rank's work.
struct Amount {
  std::string_view unit;
  std::string (*text)(double);
  double (*get)(const model::Rank&);
};
std::string count_text(double value) {
  return base::format_count(static_cast<std::int64_t>(value));
}
constexpr Amount kAmounts[] = {
    {"tokens", count_text, [](const model::Rank& r) { return r.work.tokens; }},
    {"kernels",
     count_text,
     [](const model::Rank& r) { return static_cast<double>(r.work.kernels); }},
    {"threads of kernels", count_text, [](const model::Rank& r) { return r.work.kernel_threads; }},
    {"bytes copied", base::format_bytes, [](const model::Rank& r) { return r.work.copied_bytes; }},
};

/// Time of a rank that is not waiting: its kernels, without a GPU what its ranges take themselves.
std::vector<double> working_ns(const Case& facts) {
  const model::Report& report = facts.report();
  std::vector<double> out(report.ranks.size());
  const bool has_kernels = std::ranges::any_of(
      report.ranks, [](const model::Rank& rank) { return rank.work.kernels > 0; });
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    out[rank] = report.ranks[rank].work.kernel_ns;
    for (std::size_t row = 0; row < facts.rows() && !has_kernels; ++row) {
      const auto& ranks = facts.region(row).ranks;
      if (ranks && !std::isnan(ranks->own_by_rank[rank]))
        out[rank] += ranks->own_by_rank[rank] / facts.threads_at_once(row);
    }
  }
  return out;
}

/// What the few ranks at `places` work longer than the median of the others.
double longest_excess_ns(const std::vector<double>& working_ns,
                         const std::vector<std::size_t>& places) {
  std::vector<double> others_ns;
  for (std::size_t place = 0; place < working_ns.size(); ++place)
    if (!contains(places, place))
      others_ns.push_back(working_ns[place]);
  double longest_ns = 0;
  for (const std::size_t place : places)
    longest_ns = std::max(longest_ns, working_ns[place] - median_of(others_ns));
  return longest_ns;
}

/// Ranks that have more to do than the others, and work longer.
struct MoreWork {
  std::vector<std::size_t> places;
  const Amount* amount = nullptr;
  double ratio = 0, costs_ns = 0;
};

/// By the amount in which they differ most.
MoreWork most_work(const Case& facts) {
  MoreWork out;
  const model::Report& report = facts.report();
  std::vector<double> working;
  for (const Amount& amount : kAmounts) {
    std::vector<double> values;
    for (const model::Rank& rank : report.ranks)
      values.push_back(amount.get(rank));
    const auto few = standing_out(values, kMuchMoreWork);
    if (few.empty())
      continue;
    const double rest = median_of_rest(report, few, amount.get);
    if (!(rest > 0) || values[few.front()] / rest <= out.ratio)
      continue;
    if (working.empty())
      working = working_ns(facts);
    const double costs_ns = longest_excess_ns(working, few);
    if (facts.matters(costs_ns))
      out = {few, &amount, values[few.front()] / rest, costs_ns};
  }
  return out;
}

bool has_more_work(const Case& facts, const std::vector<std::size_t>& places) {
  const MoreWork more = most_work(facts);
  return std::ranges::any_of(places,
                             [&](std::size_t place) { return contains(more.places, place); });
}

/// " on node2: CARD"; ", CARD" where the host is unknown.
std::string card_text(const model::Rank& rank) {
  std::string text;
  if (!rank.host.empty())
    text = " on " + base::printable(rank.host);
  if (rank.card.empty())
    return text;
  const std::string_view separator = text.empty() ? "," : ":";
  return fmt::format("{}{} {}", text, separator, base::printable(rank.card));
}

}  // namespace

void find_uneven_work(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  if (report.ranks.size() < 2)
    return;
  const MoreWork more = most_work(facts);
  if (more.places.empty())
    return;
  const double amount = more.amount->get(report.ranks[more.places.front()]);
  const double amount_of_others = median_of_rest(report, more.places, more.amount->get);
  std::string text =
      fmt::format("{} has more work: {} {}, the others {} (median), and works {} longer",
                  places_named(report, more.places),
                  more.amount->text(amount),
                  more.amount->unit,
                  more.amount->text(amount_of_others),
                  format_ns(more.costs_ns));
  model::Verdict verdict =
      verdict_of_ranks(facts, "uneven_work", more.places, std::move(text), more.costs_ns);
  verdict.evidence["amount"] = amount;
  verdict.evidence["amount_of_others"] = amount_of_others;
  out.push_back(std::move(verdict));
}

void find_slow_gpus(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  if (report.ranks.size() < 2)
    return;
  std::vector<double> pace;
  for (const model::Rank& rank : report.ranks)
    pace.push_back(rank.work.kernel_pace);
  const auto slow = standing_out(pace, kSlowerGpu);
  if (slow.empty() || has_more_work(facts, slow))
    return;
  double costs = 0;
  for (const std::size_t place : slow)
    costs = std::max(costs, report.ranks[place].work.paced_kernel_ns * (1 - 1 / pace[place]));
  if (!facts.matters(costs))
    return;
  const model::Rank& worst = report.ranks[slow.back()];
  std::string text =
      fmt::format("the GPU of {}{} takes {} longer for the same kernels than the others'",
                  places_named(report, slow),
                  card_text(worst),
                  format_share(pace[slow.back()] - 1));
  const double clock = worst.work.sm_clock_hz;
  const double usual =
      median_of_rest(report, slow, [](const model::Rank& rank) { return rank.work.sm_clock_hz; });
  if (!std::isnan(clock) && !std::isnan(usual))
    text += fmt::format(", at {:.0f} MHz, the others' {:.0f} MHz", clock * 1e-6, usual * 1e-6);
  if (worst.work.clock_limited > kThrottled)
    text += fmt::format(", its clocks were throttled by power or heat during {} of its work",
                        format_share(worst.work.clock_limited));
  model::Verdict verdict =
      verdict_of_ranks(facts, "slow_gpu", {slow.rbegin(), slow.rend()}, std::move(text), costs);
  verdict.evidence["kernel_pace"] = pace[slow.back()];
  if (!std::isnan(clock))
    verdict.evidence["sm_clock_hz"] = clock;
  if (!std::isnan(usual))
    verdict.evidence["sm_clock_hz_of_others"] = usual;
  verdict.evidence["compared_ns"] = worst.work.paced_kernel_ns;
  verdict.next = std::isnan(clock) ? facts.profile_again("--sample 10ms")
                                   : "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER";
  out.push_back(std::move(verdict));
}

namespace {

/// A host that is slower than all others for the same work on the CPU.
struct SlowHost {
  std::string name;
  std::vector<std::size_t> places;
  double pace = 0;  ///< of its fastest rank: one slow rank makes no slow host
};

using PlacesByHost = std::map<std::string, std::vector<std::size_t>>;

PlacesByHost places_by_host(const model::Report& report) {
  PlacesByHost hosts;
  for (std::size_t place = 0; place < report.ranks.size(); ++place) {
    const model::Rank& rank = report.ranks[place];
    if (!rank.host.empty() && !std::isnan(rank.work.cpu_pace))
      hosts[rank.host].push_back(place);
  }
  return hosts;
}

std::optional<SlowHost> slowest_host(const model::Report& report, const PlacesByHost& hosts) {
  std::vector<SlowHost> candidates;
  std::vector<double> paces;
  for (const auto& [host, places] : hosts) {
    double fastest = std::numeric_limits<double>::infinity();
    for (const std::size_t place : places)
      fastest = std::min(fastest, report.ranks[place].work.cpu_pace);
    candidates.push_back({host, places, fastest});
    paces.push_back(fastest);
  }
  const auto slow = standing_out(paces, kSlowerHost);
  if (slow.size() != 1 || paces[slow.front()] < 1 + kSlowerHost)
    return std::nullopt;
  return candidates[slow.front()];
}

/// Are most ranges of all its ranks slower, and not a single one?
bool are_most_ranges_slower(const model::Report& report, const SlowHost& host) {
  return std::ranges::all_of(host.places, [&](std::size_t place) {
    const model::RankWork& work = report.ranks[place].work;
    const bool is_more_than_one_range = host.places.size() > 1 || work.cpu_ranges > 1;
    return work.slower_ranges * 2 > work.cpu_ranges && is_more_than_one_range;
  });
}

/// The pace of the slowest rank of the other hosts.
double slowest_pace_elsewhere(const model::Report& report,
                              const PlacesByHost& hosts,
                              const SlowHost& slow) {
  double slowest = 0;
  for (const auto& [host, places] : hosts)
    for (const std::size_t place : places)
      if (host != slow.name)
        slowest = std::max(slowest, report.ranks[place].work.cpu_pace);
  return slowest;
}

}  // namespace

void find_slow_hosts(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  const PlacesByHost hosts = places_by_host(report);
  if (hosts.size() < 2)
    return;
  const std::optional<SlowHost> host = slowest_host(report, hosts);
  if (!host || !are_most_ranges_slower(report, *host))
    return;
  if (host->pace <= slowest_pace_elsewhere(report, hosts, *host))
    return;
  if (has_more_work(facts, host->places))
    return;
  double costs_ns = 0;
  for (const std::size_t place : host->places) {
    const model::RankWork& work = report.ranks[place].work;
    costs_ns = std::max(costs_ns, work.paced_cpu_ns * (1 - 1 / work.cpu_pace));
  }
  if (!facts.matters(costs_ns))
    return;
  const model::RankWork& work = report.ranks[host->places.front()].work;
  std::string text = fmt::format(
      "host {} takes {} longer for the same work on the CPU than the others: {} of {} "
      "ranges, all of its {}",
      base::printable(host->name),
      format_share(host->pace - 1),
      work.slower_ranges,
      work.cpu_ranges,
      base::counted(host->places.size(), "rank"));
  model::Verdict verdict =
      verdict_of_ranks(facts, "slow_host", host->places, std::move(text), costs_ns);
  verdict.evidence["cpu_pace"] = host->pace;
  verdict.evidence["slower_ranges"] = static_cast<double>(work.slower_ranges);
  verdict.evidence["cpu_ranges"] = static_cast<double>(work.cpu_ranges);
  verdict.evidence["compared_ns"] = work.paced_cpu_ns;
  out.push_back(std::move(verdict));
}

namespace {

/// Transfers between the same ranks, and how their bandwidth compares with the best of their kind
/// and size.
struct Transfers {
  std::set<std::uint32_t> ranks;
  bool between_hosts = false;
  double rate = 0, relative = 0, transfer_ns = 0;
  std::int64_t calls = 0;
};

using AllTransfers = std::vector<Transfers>;

/// Collects transfers by operation, number of ranks, size in powers of two, and whether they are
/// between hosts: those of one kind should be equally fast.
class TransferKinds {
 public:
  explicit TransferKinds(const model::Report& report) {
    for (const model::Rank& rank : report.ranks)
      host_by_rank_[rank.rank] = rank.host;
  }

  void add(const model::Collective& row) {
    if (!row.bus_bytes_per_s)
      return;
    Transfers transfers{
        .rate = *row.bus_bytes_per_s, .transfer_ns = row.transfer_ns, .calls = row.calls};
    for (const model::CollectiveOfRank& of_rank : row.by_rank)
      transfers.ranks.insert(of_rank.rank);
    add(row.library + row.operation, row.bytes, std::move(transfers));
  }

  void add(const model::PointToPoint& row) {
    if (!row.bytes_per_s)
      return;
    Transfers transfers{.ranks = {row.from, row.to},
                        .rate = *row.bytes_per_s,
                        .transfer_ns = row.transfer_ns,
                        .calls = row.calls};
    add(row.library, row.bytes / static_cast<double>(row.calls), std::move(transfers));
  }

  /// Of all kinds with several transfers, their rates relative to the best of the kind.
  [[nodiscard]] AllTransfers take_compared() {
    AllTransfers compared;
    for (auto& [kind, list] : kinds_) {
      if (list.size() < 2)
        continue;
      double best_rate = 0;
      for (const Transfers& transfers : list)
        best_rate = std::max(best_rate, transfers.rate);
      for (Transfers& transfers : list) {
        transfers.relative = transfers.rate / best_rate;
        compared.push_back(std::move(transfers));
      }
    }
    return compared;
  }

 private:
  using Kind = std::tuple<std::string, std::size_t, int, bool>;

  void add(const std::string& operation, double bytes, Transfers transfers) {
    if (bytes < kLargeMessage)
      return;
    std::set<std::string> hosts;
    for (const std::uint32_t rank : transfers.ranks)
      if (const auto host = host_by_rank_.find(rank); host != host_by_rank_.end())
        hosts.insert(host->second);
    transfers.between_hosts = hosts.size() > 1;
    const Kind kind(operation, transfers.ranks.size(), std::ilogb(bytes), transfers.between_hosts);
    kinds_[kind].push_back(std::move(transfers));
  }

  std::map<std::uint32_t, std::string> host_by_rank_;
  std::map<Kind, AllTransfers> kinds_;
};

AllTransfers compared_transfers(const model::Report& report) {
  TransferKinds kinds(report);
  for (const model::Collective& row : report.collectives)
    kinds.add(row);
  for (const model::PointToPoint& row : report.messages)
    kinds.add(row);
  return kinds.take_compared();
}

struct SlowLink {
  std::vector<std::size_t> places;
  bool is_pair = false;  ///< the link between two ranks, and not all of theirs
  double rate = 0, rate_of_others = 0, costs_ns = 0;
  std::int64_t calls = 0;
};

/// Adds `places` to `out` where the transfers for which `is_theirs` holds are all slower than all
/// others.
template <class IsTheirs>
bool add_if_slower(const AllTransfers& all,
                   IsTheirs is_theirs,
                   const std::vector<std::size_t>& places,
                   SlowLink& out) {
  double fastest_of_theirs = 0, slowest_of_others = std::numeric_limits<double>::infinity();
  std::vector<double> rates, rates_of_others;
  std::int64_t calls = 0;
  for (const Transfers& transfers : all) {
    if (is_theirs(transfers)) {
      rates.push_back(transfers.rate);
      fastest_of_theirs = std::max(fastest_of_theirs, transfers.relative);
      calls += transfers.calls;
    } else {
      rates_of_others.push_back(transfers.rate);
      slowest_of_others = std::min(slowest_of_others, transfers.relative);
    }
  }
  if (rates.empty() || rates_of_others.empty())
    return false;
  if (fastest_of_theirs > kSlowerLink * slowest_of_others)
    return false;
  double costs_ns = 0;
  for (const Transfers& transfers : all) {
    if (!is_theirs(transfers))
      continue;
    const double as_others = transfers.relative / slowest_of_others;
    costs_ns = std::max(costs_ns, transfers.transfer_ns * (1 - as_others));
  }
  out.places.insert(out.places.end(), places.begin(), places.end());
  if (costs_ns > out.costs_ns) {
    out.rate = median_of(rates);
    out.rate_of_others = median_of(rates_of_others);
    out.costs_ns = costs_ns;
    out.calls = calls;
  }
  return true;
}

/// Ranks all of whose transfers are slower than all others, else a host, else two ranks of which
/// that holds.
SlowLink slow_link(const model::Report& report, const AllTransfers& all) {
  SlowLink out;
  std::map<std::string, std::vector<std::size_t>> hosts;
  std::map<std::uint32_t, std::size_t> place_of;
  for (std::size_t place = 0; place < report.ranks.size(); ++place) {
    const std::uint32_t rank = report.ranks[place].rank;
    place_of[rank] = place;
    hosts[report.ranks[place].host].push_back(place);
    const auto is_of_rank = [&](const Transfers& transfers) {
      return transfers.ranks.contains(rank);
    };
    add_if_slower(all, is_of_rank, {place}, out);
  }
  for (const auto& [host, places] : hosts) {
    const auto is_of_host = [&, &host_places = places](const Transfers& transfers) {
      return std::ranges::any_of(host_places, [&](std::size_t place) {
        return transfers.ranks.contains(report.ranks[place].rank);
      });
    };
    if (out.places.empty() && add_if_slower(all, is_of_host, places, out))
      break;
  }
  std::set<std::set<std::uint32_t>> pairs;
  for (const Transfers& transfers : all)
    if (transfers.ranks.size() == 2)
      pairs.insert(transfers.ranks);
  for (const auto& pair : pairs) {
    if (!out.places.empty())
      break;
    const auto is_of_pair = [&](const Transfers& transfers) { return transfers.ranks == pair; };
    const std::vector<std::size_t> places = {place_of[*pair.begin()], place_of[*pair.rbegin()]};
    out.is_pair = add_if_slower(all, is_of_pair, places, out);
  }
  return out;
}

/// "rank 3 (node2)"
std::string rank_and_host_text(const model::Rank& rank) {
  std::string text = fmt::format("rank {}", rank.rank);
  if (!rank.host.empty())
    text += " (" + base::printable(rank.host) + ")";
  return text;
}

/// All ranks that the slow transfers are between: of one rank those of all its transfers.
std::set<std::string> hosts_of(const model::Report& report,
                               const SlowLink& slow,
                               const AllTransfers& all) {
  std::set<std::uint32_t> slow_ranks;
  for (const std::size_t place : slow.places)
    slow_ranks.insert(report.ranks[place].rank);
  std::set<std::uint32_t> ranks = slow_ranks;
  for (const Transfers& transfers : all) {
    const auto is_slow_rank = [&](std::uint32_t rank) { return slow_ranks.contains(rank); };
    const bool is_slow = !slow.is_pair && std::ranges::any_of(transfers.ranks, is_slow_rank);
    if (is_slow)
      ranks.insert(transfers.ranks.begin(), transfers.ranks.end());
  }
  std::set<std::string> hosts;
  for (const model::Rank& rank : report.ranks)
    if (ranks.contains(rank.rank))
      hosts.insert(rank.host);
  return hosts;
}

/// "between rank 0 (a) and rank 3 (b)", "of host b (ranks 2, 3)", "of rank 3"
std::string link_text(const model::Report& report, const SlowLink& slow, bool is_between_hosts) {
  const model::Rank& first = report.ranks[slow.places.front()];
  const auto is_on_host = [&](std::size_t place) { return report.ranks[place].host == first.host; };
  const bool is_one_host = !first.host.empty() && std::ranges::all_of(slow.places, is_on_host);
  std::string text = slow.is_pair ? "between " : "of ";
  if (is_between_hosts && is_one_host) {
    text += "host " + base::printable(first.host);
    return text + " (" + places_named(report, slow.places) + ")";
  }
  if (!slow.is_pair)
    return text + places_named(report, slow.places);
  text += rank_and_host_text(first) + " and ";
  return text + rank_and_host_text(report.ranks[slow.places.back()]);
}

model::Verdict slow_link_verdict(const Case& facts,
                                 const SlowLink& slow,
                                 const AllTransfers& transfers,
                                 bool is_between_hosts) {
  const model::Report& report = facts.report();
  std::string text = fmt::format("transfers {} move {}/s, those of the others {}/s (median)",
                                 link_text(report, slow, is_between_hosts),
                                 base::format_bytes(slow.rate),
                                 base::format_bytes(slow.rate_of_others));
  if (is_between_hosts)
    text += ", between hosts";
  model::Verdict verdict =
      verdict_of_ranks(facts, "slow_link", slow.places, std::move(text), slow.costs_ns);
  verdict.evidence["bytes_per_s"] = slow.rate;
  verdict.evidence["bytes_per_s_of_others"] = slow.rate_of_others;
  verdict.evidence["calls"] = static_cast<double>(slow.calls);
  if (slow.is_pair)
    verdict.evidence["peer"] = report.ranks[slow.places.back()].rank;
  const std::set<std::string> hosts = hosts_of(report, slow, transfers);
  if (hosts.size() == 1 && !hosts.contains("")) {  // no network is between them
    const bool has_gpus = !report.ranks[slow.places.front()].device.empty();
    verdict.evidence[has_gpus ? "gpus_of_one_host" : "cores_of_one_host"] = 1;
  }
  return verdict;
}

}  // namespace

void find_slow_links(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  if (report.ranks.size() < 3)
    return;
  const AllTransfers all = compared_transfers(report);
  AllTransfers within_hosts, between_hosts;
  for (const Transfers& transfers : all)
    (transfers.between_hosts ? between_hosts : within_hosts).push_back(transfers);
  for (const AllTransfers* candidates :
       {&all, &std::as_const(between_hosts), &std::as_const(within_hosts)}) {
    const SlowLink slow = slow_link(report, *candidates);
    if (slow.places.empty() || !facts.matters(slow.costs_ns))
      continue;
    out.push_back(slow_link_verdict(facts, slow, *candidates, candidates == &between_hosts));
    return;
  }
}

}  // namespace rangescope::analyze
