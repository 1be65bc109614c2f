#include "analyze/ranks/communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "analyze/gpu/gpu.hpp"
#include "analyze/ranks/clocks.hpp"
#include "analyze/ranks/ranks.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/busy.hpp"
#include "analyze/tree/contexts.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

double length_of(const CollectiveCall& call) {
  return static_cast<double>(length_ns(call.start_ns, call.end_ns));
}

class Adding {
 public:
  Adding(const Session& session,
         const CollectiveCalls& found,
         const std::vector<Around>& around,
         const std::function<void(std::uint32_t, std::vector<std::string>&)>& name,
         bool gpu,
         model::Report& report)
      : session_(session),
        found_(found),
        around_(around),
        name_(name),
        gpu_(gpu),
        report_(report) {}

  std::vector<Timed> run() {
    missed();
    collectives();
    messages();
    return std::move(timed_);
  }

 private:
  [[nodiscard]] std::uint32_t rank_of(const CollectiveCall& call) const {
    return session_.processes[call.process].rank;
  }
  [[nodiscard]] const Around& around_call(std::size_t call) const { return around_[call]; }
  [[nodiscard]] const Around& around_message(std::size_t call) const {
    return around_[found_.calls.size() + call];
  }

  void path_to(std::uint32_t path, std::vector<std::string>& names) const {
    if (path != kNone)
      name_(path, names);
  }

  /// Ranks that the others still waited for when recording ended: hung, or dead.
  void missed() {
    struct Standing {
      std::set<std::uint32_t> ranks;
      const CollectiveCall* longest = nullptr;
    };
    std::map<std::pair<std::uint32_t, std::string_view>, Standing> all;
    for (const CollectiveCall& call : found_.standing) {
      Standing& one = all[{call.communicator, session_.strings.view(call.name)}];
      one.ranks.insert(rank_of(call));
      if (one.longest == nullptr || length_of(call) > length_of(*one.longest))
        one.longest = &call;
    }
    for (const auto& [where, standing] : all) {
      const Communicator& communicator = found_.communicators[where.first];
      const auto known = found_.made.find(where.first);
      std::map<std::uint32_t, std::uint64_t> made;
      if (known != found_.made.end())
        made = known->second;
      if (!communicator.nccl && communicator.id == 1)  // MPI_COMM_WORLD
        for (const model::Rank& rank : report_.ranks)
          made.try_emplace(rank.rank, 0);
      const std::uint64_t before = made[*standing.ranks.begin()];
      std::vector<std::uint32_t> missing;
      for (const auto& [rank, calls] : made)
        if (!standing.ranks.contains(rank) && calls <= before)
          missing.push_back(rank);
      if (!missing.empty())
        hung(
            {standing.ranks.begin(), standing.ranks.end()}, *standing.longest, before + 1, missing);
    }
  }

  void hung(const std::vector<std::uint32_t>& waiting,
            const CollectiveCall& call,
            std::uint64_t nth,
            const std::vector<std::uint32_t>& missing) {
    const Communicator& communicator = found_.communicators[call.communicator];
    std::vector<std::string> path;
    const auto number = static_cast<std::size_t>(&call - found_.standing.data());
    path_to(around_[found_.calls.size() + found_.messaging.size() + number].path, path);
    std::string text = fmt::format("{} never reached call {} ", ranks_named(missing), nth);
    if (communicator.id > 1)
      text += fmt::format("of communicator 0x{:x} ", communicator.id);
    text += fmt::format("({})", session_.strings.view(call.name));
    if (!path.empty())
      text += " in `" + base::printable(base::join(path, " > ")) + "`";
    report_.losses.push_back(
        {"collectives_unjoined",
         missing.size(),
         text + ", with " + ranks_named(waiting) + " in it when recording ended"});
    model::Verdict verdict;
    verdict.kind = kHung;
    verdict.text = text + ": the others waited " + base::format_ns(length_of(call));
    verdict.severity = model::Weight::kError;
    verdict.evidence = {{"rank", missing.front()},
                        {"ranks", static_cast<double>(missing.size())},
                        {"call", static_cast<double>(nth)},
                        {"waited_ns", length_of(call)}};
    report_.verdict.push_back(std::move(verdict));
  }

  void collectives() {
    if (found_.unjoined > 0)
      report_.losses.push_back({"collectives_unjoined",
                                found_.unjoined,
                                "collective calls of communicators whose ranks do not make the "
                                "same calls in the same order"});
    struct Sums {
      model::Collective row;
      std::map<std::uint32_t, model::CollectiveOfRank> ranks;
      Operation operation = Operation::kOther;
    };
    using Key = std::tuple<std::uint32_t, std::string_view, double, std::uint32_t>;
    std::map<Key, Sums> rows;
    for (const JoinedCall& joined : found_.joined) {
      const CollectiveCall& one = found_.calls[joined.calls.front()];
      const Communicator& communicator = found_.communicators[one.communicator];
      double least = length_of(one), most = least, bytes = one.bytes;
      std::size_t last = 0;
      for (std::size_t i = 1; i < joined.calls.size(); ++i) {
        const CollectiveCall& call = found_.calls[joined.calls[i]];
        const double length = length_of(call);
        if (length < least)
          least = length, last = i;
        most = std::max(most, length);
        if (call.bytes != bytes)
          bytes = std::max(bytes, call.bytes);  // a rank may send less in a gather
      }
      const std::uint32_t last_rank = rank_of(found_.calls[joined.calls[last]]);
      const std::string_view name = session_.strings.view(one.name);
      const std::uint32_t node = around_call(joined.calls.front()).path;
      Sums& sums = rows[Key(one.communicator, name, std::isnan(bytes) ? -1 : bytes, node)];
      if (sums.row.calls == 0) {
        sums.row.library = communicator.nccl ? "NCCL" : "MPI";
        if (communicator.id != 0)
          sums.row.communicator = fmt::format("0x{:x}", communicator.id);
        sums.row.operation = std::string(name.substr(communicator.nccl ? 4 : 0));
        sums.row.bytes = bytes;
        sums.row.ranks = std::max<std::int64_t>(communicator.ranks,
                                                static_cast<std::int64_t>(joined.calls.size()));
        sums.operation = one.operation;
        path_to(node, sums.row.path);
      }
      ++sums.row.calls;
      sums.row.transfer_ns += least;
      double waited = 0,
             next = most;  // the shortest but one: without the last rank the call would have begun
                           // so much earlier
      for (std::size_t i = 0; i < joined.calls.size(); ++i) {
        const CollectiveCall& call = found_.calls[joined.calls[i]];
        const double length = length_of(call);
        model::CollectiveOfRank& rank = sums.ranks[rank_of(call)];
        rank.wait_ns += length - least;
        rank.late_ns += most - length;
        rank.time_ns += length;
        rank.hidden_ns += around_call(joined.calls[i]).hidden_ns;
        waited += length - least;
        if (i != last)
          next = std::min(next, length);
        timed_.push_back({&call, joined.calls[i], length - least, i == last ? kNone : last_rank});
      }
      model::CollectiveOfRank& late = sums.ranks[last_rank];
      if (most > least)
        ++late.last;
      const bool first =
          &joined == &found_.joined.front() ||
          found_.calls[(&joined - 1)->calls.front()].communicator != one.communicator;
      if (!first) {  // the first call sets up connections: who comes last there holds nobody up in
                     // what follows
        late.holds_up_ns += next - least;
        late.costs_ns += waited;
      }
      sums.row.wait_ns += waited;
    }
    for (auto& [key, sums] : rows) {
      Bandwidth rate;
      if (bandwidth_of(sums.operation,
                       sums.row.bytes,
                       static_cast<double>(sums.row.ranks),
                       sums.row.transfer_ns / static_cast<double>(sums.row.calls),
                       rate)) {
        sums.row.algorithm_bytes_per_s = rate.algorithm;
        sums.row.bus_bytes_per_s = rate.bus;
      }
      double time = 0, beside = 0;
      for (auto& [rank, of_rank] : sums.ranks) {
        of_rank.rank = rank;
        time += of_rank.time_ns;
        beside += of_rank.hidden_ns;
        sums.row.by_rank.push_back(of_rank);
      }
      if (gpu_ && time > 0 && !std::isnan(beside))
        sums.row.hidden_share = beside / time;
      report_.collectives.push_back(std::move(sums.row));
    }
    std::ranges::stable_sort(report_.collectives, std::greater<>(), &model::Collective::wait_ns);
    if (report_.collectives.size() > kMostCollectives) {
      report_.notes.push_back(
          fmt::format("{} more kinds of collective calls, which waited less, are not listed",
                      report_.collectives.size() - kMostCollectives));
      report_.collectives.resize(kMostCollectives);
    }
  }

  /// Which processes' clocks agree: of one host, or aligned to the same one. Equal numbers agree;
  /// kNone: with none.
  [[nodiscard]] std::vector<std::uint32_t> agreeing_clocks() const {
    std::vector<std::uint32_t> of(session_.processes.size(), 0);
    const std::vector<HostClock> clocks = find_clocks(session_, found_);
    for (std::uint32_t host = 1; host < clocks.size(); ++host)
      for (const std::uint32_t process : clocks[host].processes)
        of[process] = clocks[host].knots.empty() ? host : 0;
    return of;
  }

  static bool only_begins(const CollectiveCall& call) {
    return call.operation == Operation::kSendLater || call.operation == Operation::kReceiveLater ||
           call.operation == Operation::kExchangeLater;
  }

  /// Is the end of a call that completed a receive that of the message? Not where it completed
  /// several, or where the message may have been there before the program asked: it asked first, or
  /// stood there for most of `began` to its end.
  static bool ends_with(const CollectiveCall& got,
                        const CollectiveCall& receive,
                        std::int64_t began) {
    if (&got == &receive)
      return !only_begins(receive);
    return got.received == 1 &&
           2 * length_ns(got.start_ns, got.end_ns) >= length_ns(began, got.end_ns);
  }

  void messages() {
    if (found_.messages.empty() && found_.unmatched == 0)
      return;
    const bool all = report_.ranks.size() >= report_.ranks.front().world;
    if (found_.unmatched > 0 && all)
      report_.losses.push_back({"messages_unmatched",
                                found_.unmatched,
                                "sends and receives without a matching call on the other rank"});
    const std::vector<std::uint32_t> clock_of = agreeing_clocks();
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
    struct Sums {
      model::PointToPoint row;
      bool whole = true;  ///< the transfer of each is known
    };
    std::map<Key, Sums> rows;
    std::vector<Timed> of_call(found_.messaging.size());
    std::vector<char> joined(found_.messaging.size());
    for (const MatchedMessage& message : found_.messages) {
      const CollectiveCall &send = found_.messaging[message.send],
                           &receive = found_.messaging[message.receive];
      const std::uint32_t node = around_message(message.send).path;
      Sums& sums = rows[Key(send.communicator, rank_of(send), rank_of(receive), node)];
      model::PointToPoint& row = sums.row;
      if (row.calls == 0) {
        const Communicator& communicator = found_.communicators[send.communicator];
        row.library = communicator.nccl ? "NCCL" : "MPI";
        if (communicator.id != 0)
          row.communicator = fmt::format("0x{:x}", communicator.id);
        row.from = rank_of(send);
        row.to = rank_of(receive);
        path_to(node, row.path);
      }
      ++row.calls;
      if (const double bytes = std::isnan(send.bytes) ? receive.bytes : send.bytes;
          !std::isnan(bytes))
        row.bytes += bytes;
      double late_sender = 0, late_receiver = 0, transfer = 0;
      const auto where = [&](std::uint32_t call) {
        const CollectiveCall& of = found_.messaging[call];
        return of.done != kNone && only_begins(of) ? of.done : call;  // MPI_Mprobe waits itself
      };
      // Where each end stood until the message was through; one that only began it and never asked
      // stood nowhere.
      const CollectiveCall &gave = found_.messaging[where(message.send)],
                           &got = found_.messaging[where(message.receive)];
      const bool held = &gave != &send || !only_begins(send),
                 awaited = &got != &receive || !only_begins(receive);
      if (send.stream != kNone && receive.stream != kNone) {
        transfer = std::min(length_of(send), length_of(receive));
        late_receiver = length_of(send) - transfer;
        late_sender = length_of(receive) - transfer;
      } else if (clock_of[send.process] == clock_of[receive.process]) {
        const auto since = [](std::int64_t from, std::int64_t to) {
          return static_cast<double>(length_ns(from, to));
        };
        if (awaited)
          late_sender = std::min(length_of(got), since(got.start_ns, send.start_ns));
        if (held && receive.start_ns <
                        gave.end_ns)  // it was blocked so long, and not only copied its data away
          late_receiver = since(gave.start_ns, receive.start_ns);
        if (ends_with(got, receive, std::max(send.start_ns, receive.start_ns)))
          transfer = since(std::max(send.start_ns, receive.start_ns), got.end_ns);
        else
          sums.whole = false;
      } else {
        sums.whole = false;
      }
      row.transfer_ns += transfer;
      row.late_sender_ns += late_sender;
      row.late_receiver_ns += late_receiver;
      row.late_senders += late_sender > 0 ? 1 : 0;
      row.late_receivers += late_receiver > 0 ? 1 : 0;
      const auto wait = [&](std::uint32_t call, double ns, std::uint32_t cause) {
        joined[call] = 1;
        if (ns > of_call[call].wait_ns)
          of_call[call].wait_ns = ns, of_call[call].cause = cause;
      };
      for (const std::uint32_t begun : {message.send, message.receive})
        joined[begun] = 1;
      wait(where(message.send), late_receiver, row.to);
      wait(where(message.receive), late_sender, row.from);
    }
    add_waits(of_call, joined);
    for (auto& [key, sums] : rows) {
      if (sums.whole && sums.row.transfer_ns > 0 && sums.row.bytes > 0)
        sums.row.bytes_per_s = sums.row.bytes / sums.row.transfer_ns * 1e9;
      report_.messages.push_back(std::move(sums.row));
    }
    std::stable_sort(
        report_.messages.begin(), report_.messages.end(), [](const auto& a, const auto& b) {
          const double x = a.late_sender_ns + a.late_receiver_ns,
                       y = b.late_sender_ns + b.late_receiver_ns;
          return x != y ? x > y
                        : std::tie(a.library, a.communicator, a.from, a.to, a.path) <
                              std::tie(b.library, b.communicator, b.from, b.to, b.path);
        });
    if (report_.messages.size() > kMostMessages) {
      report_.notes.push_back(
          fmt::format("{} more pairs of ranks, which waited less, are not listed",
                      report_.messages.size() - kMostMessages));
      report_.messages.resize(kMostMessages);
    }
  }

  /// Calls of a group share their kernel: one of them represents all.
  void add_waits(const std::vector<Timed>& of_call, const std::vector<char>& joined) {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t, std::int64_t>, std::size_t>
        groups;
    for (std::size_t c = 0; c < of_call.size(); ++c) {
      if (joined[c] == 0)
        continue;
      const CollectiveCall& call = found_.messaging[c];
      Timed one{&call, found_.calls.size() + c, of_call[c].wait_ns, of_call[c].cause};
      if (call.stream == kNone) {
        timed_.push_back(one);
        continue;
      }
      const auto [at, added] = groups.try_emplace(
          {call.process, call.stream, call.start_ns, call.end_ns}, timed_.size());
      if (added)
        timed_.push_back(one);
      else if (one.wait_ns > timed_[at->second].wait_ns)
        timed_[at->second].wait_ns = one.wait_ns, timed_[at->second].cause = one.cause;
    }
  }

  const Session& session_;
  const CollectiveCalls& found_;
  const std::vector<Around>& around_;
  const std::function<void(std::uint32_t, std::vector<std::string>&)>& name_;
  bool gpu_;
  model::Report& report_;
  std::vector<Timed> timed_;
};

/// Report::activity.
void add_activity(const Session& session,
                  const Options& options,
                  const Tree& tree,
                  const Surroundings& around,
                  const std::vector<Timed>& timed,
                  model::Report& report) {
  const auto begin = session.begin_ns, end = session.end_ns;
  if (length_ns(begin, end) < static_cast<std::int64_t>(kActivityBins))
    return;
  const double bin = static_cast<double>(length_ns(begin, end)) / kActivityBins;
  const auto edge = [&](std::size_t i) {
    return i == kActivityBins ? end
                              : begin + static_cast<std::int64_t>(bin * static_cast<double>(i));
  };
  std::map<std::uint32_t, std::size_t> place;
  for (std::size_t i = 0; i < report.ranks.size(); ++i)
    place[report.ranks[i].rank] = i;
  report.activity.resize(report.ranks.size());
  for (model::RankActivity& each : report.activity)
    for (auto* list : {&each.compute, &each.transfer, &each.wait})
      list->assign(kActivityBins, 0);
  const auto spread =
      [&](std::vector<float>& into, std::int64_t from, std::int64_t to, const Stretches* without) {
        from = std::max(from, begin);
        to = std::min(to, end);
        if (to <= from)
          return;
        auto first = static_cast<std::size_t>(static_cast<double>(from - begin) / bin);
        for (std::size_t i = std::min(first, kActivityBins - 1); i < kActivityBins && edge(i) < to;
             ++i) {
          const std::int64_t a = std::max(from, edge(i)), b = std::min(to, edge(i + 1));
          if (b <= a)
            continue;
          const std::int64_t covered = b - a - (without == nullptr ? 0 : without->within(a, b));
          into[i] += static_cast<float>(static_cast<double>(covered) / bin);
        }
      };
  std::vector<Stretches> ranges(report.ranks.size()), calls(report.ranks.size());
  for (const Timed& one : timed) {
    const std::size_t rank = place[session.processes[one.call->process].rank];
    const std::int64_t begins = one.call->start_ns + static_cast<std::int64_t>(one.wait_ns);
    const Stretches* beside = around.beside(one.call->process, one.call->stream);
    spread(report.activity[rank].wait, one.call->start_ns, begins, beside);
    spread(report.activity[rank].transfer, begins, one.call->end_ns, beside);
    calls[rank].add(one.call->start_ns, one.call->end_ns);
  }
  for (std::uint32_t o = 0; o < tree.range_of.size(); ++o) {
    if (tree.range_of[o] == kNone || tree.parent[o] != kNone)
      continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    const std::uint32_t rank = session.processes[session.threads[range.thread].process].rank;
    if (rank != kNone && range.kind == model::RangeKind::kPushPop &&
        !is_communication(session, range))
      ranges[place[rank]].add(range.start_ns, std::min(range.end_ns, end));
  }
  std::vector<std::vector<const Stretches*>> kernels(report.ranks.size());
  for (std::uint32_t p = 0; p < session.processes.size(); ++p)
    if (const Stretches* beside = around.beside(p, kNone);
        beside != nullptr && !beside->empty() && session.processes[p].rank != kNone)
      kernels[place[session.processes[p].rank]].push_back(beside);
  base::parallel_for(report.ranks.size(), options.threads, [&](std::size_t rank) {
    ranges[rank].finish();
    calls[rank].finish();
    model::RankActivity& of = report.activity[rank];
    for (std::size_t i = 0; i < kActivityBins; ++i) {
      std::int64_t busy = 0;
      for (const Stretches* each : kernels[rank])
        busy += each->within(edge(i), edge(i + 1));
      if (kernels[rank].empty())
        busy = std::max<std::int64_t>(
            0,
            ranges[rank].within(edge(i), edge(i + 1)) - calls[rank].within(edge(i), edge(i + 1)));
      of.compute[i] = static_cast<float>(static_cast<double>(busy) / bin);
      for (auto* list : {&of.compute, &of.transfer, &of.wait})
        (*list)[i] = std::min((*list)[i], 1.0F);
    }
  });
}
}  // namespace

void CommunicationSum::add(double time_ns,
                           double wait_ns,
                           double wait_beside_ns,
                           double beside_ns,
                           std::uint32_t cause,
                           double calls) {
  calls_ += calls;
  sums_.time_ns += calls * time_ns;
  sums_.wait_ns += calls * (wait_ns - wait_beside_ns);
  sums_.transfer_ns += calls * (time_ns - wait_ns - beside_ns);
  sums_.overlap_ns += calls * (wait_beside_ns + beside_ns);
  if (cause == kNone || wait_ns <= 0)
    return;
  causes_[cause].calls += calls;
  causes_[cause].ns += calls * (wait_ns - wait_beside_ns);
}

void CommunicationSum::add(const CommunicationSum& other) {
  calls_ += other.calls_;
  for (const auto field : {&model::Communication::time_ns,
                           &model::Communication::transfer_ns,
                           &model::Communication::wait_ns,
                           &model::Communication::overlap_ns})
    sums_.*field += other.sums_.*field;
  for (const auto& [rank, cause] : other.causes_) {
    causes_[rank].calls += cause.calls;
    causes_[rank].ns += cause.ns;
  }
}

std::optional<model::Communication> CommunicationSum::row() const {
  if (calls_ == 0)
    return std::nullopt;
  model::Communication out = sums_;
  out.calls = std::llround(calls_);
  for (const auto& [rank, cause] : causes_)
    out.held_up_by.push_back({rank, std::llround(cause.calls), cause.ns});
  std::stable_sort(out.held_up_by.begin(), out.held_up_by.end(), [](const auto& a, const auto& b) {
    return a.ns > b.ns;
  });
  return out;
}

Surroundings::Surroundings(const Session& session,
                           const Options& options,
                           const Tree& tree,
                           const CollectiveCalls& found) {
  std::size_t cards = 0;
  card_of_ = cards_of_streams(session, cards);
  const std::vector<char> nccl = nccl_kernels(session);
  std::vector<std::uint32_t> one(session.streams.size()), all(session.streams.size());
  for (std::size_t s = 0; s < session.streams.size(); ++s) {
    const std::uint32_t process = session.streams[s].process;
    for (auto [list, card] : {std::pair{&one, card_of_[s]}, std::pair{&all, kNone}})
      (*list)[s] = places_.try_emplace({process, card}, static_cast<std::uint32_t>(places_.size()))
                       .first->second;
  }
  stretches_.resize(places_.size());
  for (const model::Kernel& kernel : session.kernels) {
    if (kernel.stream >= one.size() || (kernel.name < nccl.size() && nccl[kernel.name] != 0))
      continue;
    stretches_[one[kernel.stream]].add(kernel.start_ns, kernel.end_ns);
    stretches_[all[kernel.stream]].add(kernel.start_ns, kernel.end_ns);
  }
  base::parallel_for(
      stretches_.size(), options.threads, [&](std::size_t i) { stretches_[i].finish(); });

  std::vector<model::Launch> calls;
  for (const auto* list : {&found.calls, &found.messaging, &found.standing}) {
    for (const CollectiveCall& call : *list) {
      const model::Range& range = session.ranges[call.stood != kNone ? call.stood : call.range];
      const std::int64_t end_ns = range.end_ns == kOpen ? range.start_ns : range.end_ns;
      calls.push_back({.start_ns = range.start_ns, .end_ns = end_ns, .thread = range.thread});
      const Stretches* kernels = beside(call.process, call.stream);
      around.emplace_back().hidden_ns =
          kernels == nullptr ? 0 : static_cast<double>(kernels->within(call.start_ns, call.end_ns));
    }
  }
  const Contexts found_in = build_contexts(session, tree, options, calls);
  contexts.resize(found_in.size());
  // The innermost range of the program: the own thread's before inherited ones, push/pop ranges
  // before others.
  std::vector<std::uint32_t> paths(found_in.size(), kNone);
  for (std::uint32_t c = 0; c < contexts.size(); ++c) {
    std::tuple<bool, bool, std::int64_t> of_best{};
    for (const std::uint32_t entry : found_in.of(c)) {
      contexts[c].push_back(tree.cell[entry & ~kInherited]);
      for (std::uint32_t o = entry & ~kInherited; o != kNone; o = tree.parent[o]) {
        const std::uint32_t at = tree.range_of[o];
        if (at == kNone || is_communication(session, session.ranges[at]))
          continue;
        const model::Range& range = session.ranges[at];
        const std::tuple standing(
            (entry & kInherited) == 0, range.kind == model::RangeKind::kPushPop, range.start_ns);
        if (paths[c] == kNone || standing > of_best)
          paths[c] = tree.cells[tree.cell[o]].node, of_best = standing;
        break;
      }
    }
  }
  for (std::size_t i = 0; i < around.size(); ++i) {
    around[i].context = found_in.of_launch[i];
    around[i].path = paths[around[i].context];
  }
}

const Stretches* Surroundings::beside(std::uint32_t process, std::uint32_t stream) const {
  const auto found = places_.find({process, stream < card_of_.size() ? card_of_[stream] : kNone});
  return found == places_.end() ? nullptr : &stretches_[found->second];
}

std::vector<Timed> report_calls(
    const Session& session,
    const CollectiveCalls& found,
    const std::vector<Around>& around,
    const std::function<void(std::uint32_t, std::vector<std::string>&)>& name,
    bool gpu,
    model::Report& report) {
  return Adding(session, found, around, name, gpu, report).run();
}

std::map<std::uint32_t, CommunicationSum> sum_up(
    const std::vector<Timed>& timed,
    const std::vector<Around>& around,
    const std::vector<std::vector<std::uint32_t>>& contexts,
    const PlaceRules& rules) {
  std::map<std::uint32_t, CommunicationSum> of_context, out;
  for (const Timed& one : timed) {
    const Around& at = around[one.number];
    if (at.context == kNone || std::isnan(at.hidden_ns))
      return {};
    const double time = length_of(*one.call), waited = std::min(one.wait_ns, time);
    const double beside_wait = rules.beside(one, std::llround(waited));
    of_context[at.context].add(
        time, waited, beside_wait, at.hidden_ns - beside_wait, one.cause, at.stands_for);
  }
  std::vector<std::uint32_t> seen(rules.count, kNone);
  for (const auto& [context, sum] : of_context)
    for (std::uint32_t place : contexts[context])
      for (; place != kNone && std::exchange(seen[rules.same(place)], context) != context;
           place = rules.parent(place))
        out[place].add(sum);
  return out;
}

void add_communication(const Regions& regions,
                       const CollectiveCalls& found,
                       model::Report& report) {
  const Session& session = regions.session;
  const Tree& tree = regions.tree;
  const Surroundings around(session, regions.options, tree, found);
  const auto name = [&](std::uint32_t node, std::vector<std::string>& path) {
    for (const auto part : path_of(tree, session, node))
      path.emplace_back(part);
  };
  const std::vector<Timed> timed =
      report_calls(session, found, around.around, name, has_gpu_work(session), report);
  PlaceRules rules;
  rules.beside = [&](const Timed& one, std::int64_t ns) {
    const Stretches* kernels = around.beside(one.call->process, one.call->stream);
    const std::int64_t start = one.call->start_ns;
    return kernels == nullptr ? 0.0 : static_cast<double>(kernels->within(start, start + ns));
  };
  rules.parent = [&](std::uint32_t cell) { return tree.cells[cell].parent; };
  rules.same = [&](std::uint32_t cell) { return tree.cells[cell].node; };
  rules.count = tree.nodes.size();
  const std::map<std::uint32_t, CommunicationSum> of_cell =
      sum_up(timed, around.around, around.contexts, rules);
  const auto sum_of = [&](std::span<const std::uint32_t> members) {
    CommunicationSum sum;
    for (const std::uint32_t r : members)
      for (const std::uint32_t cell : regions.cells(r))
        if (const auto at = of_cell.find(cell); at != of_cell.end())
          sum.add(at->second);
    return sum.row();
  };
  for (std::uint32_t r = 0; r < regions.keys.size() && r < report.regions.size(); ++r)
    report.regions[r].communication = sum_of(std::span(&r, 1));
  for (model::TableRow& row : report.rows)
    if (row.merged)
      row.merged->communication = sum_of(row.members);
  add_activity(session, regions.options, tree, around, timed, report);
}

}  // namespace rangescope::analyze
