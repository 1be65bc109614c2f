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
    const double next = values[order[n - few - 1]], gap = values[order[n - few]] - next;
    if (gap >= least * next && gap > kStandsOut * (next - values[order.front()]))
      return {order.end() - static_cast<std::ptrdiff_t>(few), order.end()};
  }
  return {};
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
  for (std::size_t i = 0; i < report.ranks.size(); ++i)
    if (const double value = get(report.ranks[i]);
        !std::isnan(value) && std::find(few.begin(), few.end(), i) == few.end())
      rest.push_back(value);
  return rest.empty() ? model::kNan : median_of(rest);
}

model::Verdict made(const Case& known,
                    std::string_view kind,
                    const std::vector<std::size_t>& places,
                    std::string text,
                    double saves_ns) {
  model::Verdict verdict = known.about_run(kind, std::move(text), saves_ns);
  known.blame(known.report().ranks[places.front()].rank, verdict);
  verdict.evidence["ranks"] = static_cast<double>(places.size());
  return verdict;
}

struct Amount {
  std::string_view what;
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
std::vector<double> working_ns(const Case& known) {
  const model::Report& report = known.report();
  std::vector<double> out(report.ranks.size());
  const bool gpu = std::any_of(
      report.ranks.begin(), report.ranks.end(), [](const auto& r) { return r.work.kernels > 0; });
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    out[rank] = report.ranks[rank].work.kernel_ns;
    for (std::size_t row = 0; row < known.rows() && !gpu; ++row)
      if (const auto& ranks = known.region(row).ranks;
          ranks && !std::isnan(ranks->own_by_rank[rank]))
        out[rank] += ranks->own_by_rank[rank] / known.threads_at_once(row);
  }
  return out;
}

struct MoreWork {
  std::vector<std::size_t> places;
  const Amount* amount = nullptr;
  double ratio = 0, costs_ns = 0;
};
MoreWork most_work(const Case& known) {
  MoreWork out;
  const model::Report& report = known.report();
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
      working = working_ns(known);
    std::vector<double> others;
    for (std::size_t i = 0; i < working.size(); ++i)
      if (std::find(few.begin(), few.end(), i) == few.end())
        others.push_back(working[i]);
    double costs = 0;
    for (const std::size_t place : few)
      costs = std::max(costs, working[place] - median_of(others));
    if (known.matters(costs))
      out = {few, &amount, values[few.front()] / rest, costs};
  }
  return out;
}

bool has_more_work(const Case& known, const std::vector<std::size_t>& places) {
  const MoreWork more = most_work(known);
  return std::any_of(places.begin(), places.end(), [&](std::size_t place) {
    return std::find(more.places.begin(), more.places.end(), place) != more.places.end();
  });
}

}  // namespace

void find_uneven_work(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  if (report.ranks.size() < 2)
    return;
  const MoreWork more = most_work(known);
  if (more.places.empty())
    return;
  const double here = more.amount->get(report.ranks[more.places.front()]),
               rest = median_of_rest(report, more.places, more.amount->get);
  model::Verdict verdict =
      made(known,
           "uneven_work",
           more.places,
           fmt::format("{} has more work: {} {}, the others {} (median), and works {} longer",
                       places_named(report, more.places),
                       more.amount->text(here),
                       more.amount->what,
                       more.amount->text(rest),
                       format_ns(more.costs_ns)),
           more.costs_ns);
  verdict.evidence["amount"] = here;
  verdict.evidence["amount_of_others"] = rest;
  out.push_back(std::move(verdict));
}

void find_slow_gpus(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  if (report.ranks.size() < 2)
    return;
  std::vector<double> pace;
  for (const model::Rank& rank : report.ranks)
    pace.push_back(rank.work.kernel_pace);
  const auto slow = standing_out(pace, kSlowerGpu);
  if (slow.empty() || has_more_work(known, slow))
    return;
  double costs = 0;
  for (const std::size_t place : slow)
    costs = std::max(costs, report.ranks[place].work.paced_kernel_ns * (1 - 1 / pace[place]));
  if (!known.matters(costs))
    return;
  const model::Rank& worst = report.ranks[slow.back()];
  std::string where;
  if (!worst.host.empty())
    where = " on " + base::printable(worst.host);
  if (!worst.card.empty())
    where += fmt::format("{} {}", where.empty() ? "," : ":", base::printable(worst.card));
  std::string text =
      fmt::format("the GPU of {}{} takes {} longer for the same kernels than the others'",
                  places_named(report, slow),
                  where,
                  format_share(pace[slow.back()] - 1));
  const double clock = worst.work.sm_clock_hz,
               usual = median_of_rest(
                   report, slow, [](const model::Rank&r) { return r.work.sm_clock_hz; });
  if (!std::isnan(clock) && !std::isnan(usual))
    text += fmt::format(", at {:.0f} MHz, the others' {:.0f} MHz", clock * 1e-6, usual * 1e-6);
  if (worst.work.clock_limited > kThrottled)
    text += fmt::format(", its clocks were throttled by power or heat during {} of its work",
                        format_share(worst.work.clock_limited));
  model::Verdict verdict =
      made(known, "slow_gpu", {slow.rbegin(), slow.rend()}, std::move(text), costs);
  verdict.evidence["kernel_pace"] = pace[slow.back()];
  if (!std::isnan(clock))
    verdict.evidence["sm_clock_hz"] = clock;
  if (!std::isnan(usual))
    verdict.evidence["sm_clock_hz_of_others"] = usual;
  verdict.evidence["compared_ns"] = worst.work.paced_kernel_ns;
  verdict.next = std::isnan(clock) ? known.profile_again("--sample 10ms")
                                   : "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER";
  out.push_back(std::move(verdict));
}

void find_slow_hosts(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  std::map<std::string, std::vector<std::size_t>> hosts;
  for (std::size_t i = 0; i < report.ranks.size(); ++i)
    if (!report.ranks[i].host.empty() && !std::isnan(report.ranks[i].work.cpu_pace))
      hosts[report.ranks[i].host].push_back(i);
  if (hosts.size() < 2)
    return;
  std::vector<std::string> names;
  std::vector<double> pace;
  const auto of = [&](std::size_t place) { return report.ranks[place].work.cpu_pace; };
  for (const auto& [host, places] :
       hosts) {  // as slow as its fastest rank: a rank that is slow alone is no host
    names.push_back(host);
    pace.push_back(of(*std::min_element(
        places.begin(), places.end(), [&](auto a, auto b) { return of(a) < of(b); })));
  }
  const auto slow = standing_out(pace, kSlowerHost);
  if (slow.size() != 1 || pace[slow.front()] < 1 + kSlowerHost)
    return;
  const std::string& host = names[slow.front()];
  const auto& places = hosts[host];
  const bool most_ranges = std::all_of(places.begin(), places.end(), [&](std::size_t place) {
    const model::RankWork& work = report.ranks[place].work;
    return work.slower_ranges * 2 > work.cpu_ranges && (places.size() > 1 || work.cpu_ranges > 1);
  });
  const double next = [&] {
    double most = 0;
    for (const auto& [other, list] : hosts)
      for (const std::size_t place : list)
        if (other != host)
          most = std::max(most, of(place));
    return most;
  }();
  if (!most_ranges || pace[slow.front()] <= next || has_more_work(known, places))
    return;
  double costs = 0;
  for (const std::size_t place : places)
    costs = std::max(costs, report.ranks[place].work.paced_cpu_ns * (1 - 1 / of(place)));
  if (!known.matters(costs))
    return;
  const model::RankWork& work = report.ranks[places.front()].work;
  model::Verdict verdict =
      made(known,
           "slow_host",
           places,
           fmt::format("host {} takes {} longer for the same work on the CPU than the others: {} "
                       "of {} ranges, all of its {}",
                       base::printable(host),
                       format_share(pace[slow.front()] - 1),
                       work.slower_ranges,
                       work.cpu_ranges,
                       base::counted(places.size(), "rank")),
           costs);
  verdict.evidence["cpu_pace"] = pace[slow.front()];
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

std::vector<Transfers> transfers_of(const model::Report& report) {
  std::map<std::uint32_t, const std::string*> host_of;
  for (const model::Rank& rank : report.ranks)
    host_of[rank.rank] = &rank.host;
  using Kind = std::tuple<std::string,
                          std::size_t,
                          int,
                          bool>;  // operation, ranks, size in powers of two, hosts
  std::map<Kind, std::vector<Transfers>> kinds;
  const auto add = [&](const std::string& operation, double bytes, double rate, Transfers one) {
    std::set<std::string> hosts;
    for (const std::uint32_t rank : one.ranks)
      if (host_of.count(rank) != 0)
        hosts.insert(*host_of[rank]);
    if (bytes < kLargeMessage)
      return;
    one.rate = rate;
    one.between_hosts = hosts.size() > 1;
    kinds[{operation, one.ranks.size(), std::ilogb(bytes), one.between_hosts}].push_back(
        std::move(one));
  };
  for (const model::Collective& row : report.collectives) {
    if (!row.bus_bytes_per_s)
      continue;
    Transfers one{.transfer_ns = row.transfer_ns, .calls = row.calls};
    for (const auto& rank : row.by_rank)
      one.ranks.insert(rank.rank);
    add(row.library + row.operation, row.bytes, *row.bus_bytes_per_s, std::move(one));
  }
  for (const model::PointToPoint& row : report.messages)
    if (row.bytes_per_s)
      add(row.library,
          row.bytes / static_cast<double>(row.calls),
          *row.bytes_per_s,
          {.ranks = {row.from, row.to}, .transfer_ns = row.transfer_ns, .calls = row.calls});
  std::vector<Transfers> out;
  for (auto& [kind, list] : kinds) {
    double best = 0;
    for (const Transfers& one : list)
      best = std::max(best, one.rate);
    for (Transfers& one : list) {
      if (list.size() < 2)
        continue;  // nothing to hold it against
      one.relative = one.rate / best;
      out.push_back(std::move(one));
    }
  }
  return out;
}

struct SlowLink {
  std::vector<std::size_t> places;
  bool pair = false;  ///< the link between two ranks, and not all of theirs
  double rate = 0, others = 0, costs_ns = 0;
  std::int64_t calls = 0;
};

/// Takes in `places` where the transfers for which `mine` holds are all slower than all others.
template <class Mine>
bool slower(const std::vector<Transfers>& all,
            Mine mine,
            const std::vector<std::size_t>& places,
            SlowLink& out) {
  double fastest = 0, slowest = std::numeric_limits<double>::infinity(), costs = 0;
  std::vector<double> rates, others;
  std::int64_t calls = 0;
  for (const Transfers& one : all) {
    (mine(one) ? rates : others).push_back(one.rate);
    if (mine(one))
      fastest = std::max(fastest, one.relative), calls += one.calls;
    else
      slowest = std::min(slowest, one.relative);
  }
  if (rates.empty() || others.empty() || fastest > kSlowerLink * slowest)
    return false;
  for (const Transfers& one : all)
    if (mine(one))
      costs = std::max(costs, one.transfer_ns * (1 - one.relative / slowest));
  out.places.insert(out.places.end(), places.begin(), places.end());
  if (costs > out.costs_ns)
    out.rate = median_of(rates), out.others = median_of(others), out.costs_ns = costs,
    out.calls = calls;
  return true;
}

/// Ranks all of whose transfers are slower than all others, else a host, else two ranks of which
/// that holds.
SlowLink slow_link(const model::Report& report, const std::vector<Transfers>& all) {
  SlowLink out;
  std::map<std::string, std::vector<std::size_t>> hosts;
  std::map<std::uint32_t, std::size_t> place_of;
  for (std::size_t place = 0; place < report.ranks.size(); ++place) {
    const std::uint32_t rank = report.ranks[place].rank;
    place_of[rank] = place;
    hosts[report.ranks[place].host].push_back(place);
    slower(
        all, [&](const Transfers& one) { return one.ranks.count(rank) != 0; }, {place}, out);
  }
  for (const auto& [host, places] : hosts) {
    const auto of_host = [&, &list = places](const Transfers& one) {
      return std::any_of(list.begin(), list.end(), [&](std::size_t place) {
        return one.ranks.count(report.ranks[place].rank) != 0;
      });
    };
    if (out.places.empty() && slower(all, of_host, places, out))
      break;
  }
  std::set<std::set<std::uint32_t>> pairs;
  for (const Transfers& one : all)
    if (one.ranks.size() == 2)
      pairs.insert(one.ranks);
  for (const auto& pair : pairs)
    if (out.places.empty())
      out.pair = slower(
          all,
          [&](const Transfers& one) { return one.ranks == pair; },
          {place_of[*pair.begin()], place_of[*pair.rbegin()]},
          out);
  return out;
}

std::string between_named(const model::Report& report, const std::vector<std::size_t>& places) {
  const auto one = [&](std::size_t place) {
    const model::Rank& rank = report.ranks[place];
    return fmt::format(
        "rank {}{}", rank.rank, rank.host.empty() ? "" : " (" + base::printable(rank.host) + ")");
  };
  return one(places.front()) + " and " + one(places.back());
}

/// All ranks that the slow transfers are between: of one rank those of all its transfers.
std::set<std::string> hosts_of(const model::Report& report,
                               const SlowLink& slow,
                               const std::vector<Transfers>& all) {
  std::set<std::uint32_t> slow_ranks;
  for (const std::size_t place : slow.places)
    slow_ranks.insert(report.ranks[place].rank);
  std::set<std::uint32_t> ranks = slow_ranks;
  for (const Transfers& one : all) {
    const auto is_slow_rank = [&](std::uint32_t rank) { return slow_ranks.contains(rank); };
    const bool is_slow = !slow.pair && std::ranges::any_of(one.ranks, is_slow_rank);
    if (is_slow)
      ranks.insert(one.ranks.begin(), one.ranks.end());
  }
  std::set<std::string> hosts;
  for (const model::Rank& rank : report.ranks)
    if (ranks.contains(rank.rank))
      hosts.insert(rank.host);
  return hosts;
}

}  // namespace

void find_slow_links(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  if (report.ranks.size() < 3)
    return;
  const std::vector<Transfers> all = transfers_of(report);
  std::vector<Transfers> within, between;
  for (const Transfers& one : all)
    (one.between_hosts ? between : within).push_back(one);
  for (const auto* some : {&all, &std::as_const(between), &std::as_const(within)}) {
    const SlowLink slow = slow_link(report, *some);
    if (slow.places.empty() || !known.matters(slow.costs_ns))
      continue;
    const std::string& host = report.ranks[slow.places.front()].host;
    const bool whole_host =
        some == &between && !host.empty() &&
        std::all_of(slow.places.begin(), slow.places.end(), [&](std::size_t place) {
          return report.ranks[place].host == host;
        });
    model::Verdict verdict =
        made(known,
             "slow_link",
             slow.places,
             fmt::format("transfers {} {}{} move {}/s, those of the others {}/s (median){}",
                         slow.pair ? "between" : "of",
                         whole_host  ? "host " + base::printable(host)
                         : slow.pair ? between_named(report, slow.places)
                                     : places_named(report, slow.places),
                         whole_host ? " (" + places_named(report, slow.places) + ")" : "",
                         base::format_bytes(slow.rate),
                         base::format_bytes(slow.others),
                         some == &between ? ", between hosts" : ""),
             slow.costs_ns);
    verdict.evidence["bytes_per_s"] = slow.rate;
    verdict.evidence["bytes_per_s_of_others"] = slow.others;
    verdict.evidence["calls"] = static_cast<double>(slow.calls);
    if (slow.pair)
      verdict.evidence["peer"] = report.ranks[slow.places.back()].rank;
    const std::set<std::string> hosts = hosts_of(report, slow, *some);
    if (hosts.size() == 1 && !hosts.contains("")) {  // no network is between them
      const bool has_gpus = !report.ranks[slow.places.front()].device.empty();
      verdict.evidence[has_gpus ? "gpus_of_one_host" : "cores_of_one_host"] = 1;
    }
    out.push_back(std::move(verdict));
    return;
  }
}

}  // namespace rangescope::analyze
