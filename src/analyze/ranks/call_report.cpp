#include "analyze/ranks/call_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "analyze/ranks/clocks.hpp"
#include "analyze/ranks/ranks.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

/// Of a send or receive that returns at once.
bool only_begins(const CollectiveCall& call) {
  return call.operation == Operation::kSendLater || call.operation == Operation::kReceiveLater ||
         call.operation == Operation::kExchangeLater;
}

std::string_view library_name(const Communicator& communicator) {
  return communicator.nccl ? "NCCL" : "MPI";
}

/// "0x1f"; "" where the library does not say.
std::string communicator_text(const Communicator& communicator) {
  if (communicator.id == 0)
    return {};
  return fmt::format("0x{:x}", communicator.id);
}

/// How long the ranks were in a joined call: the last one to arrive for the shortest time, which is
/// its transfer.
struct JoinedTimes {
  std::size_t last = 0;  ///< index into JoinedCall::calls
  double shortest_ns = 0, longest_ns = 0;
  /// The shortest but one: without the last rank the call would have begun so much earlier.
  double next_ns = 0;
};

JoinedTimes times_of_joined(const std::vector<CollectiveCall>& calls, const JoinedCall& joined) {
  JoinedTimes times;
  times.shortest_ns = times.longest_ns = call_ns_of(calls[joined.calls.front()]);
  for (std::size_t i = 1; i < joined.calls.size(); ++i) {
    const double call_ns = call_ns_of(calls[joined.calls[i]]);
    if (call_ns < times.shortest_ns) {
      times.shortest_ns = call_ns;
      times.last = i;
    }
    times.longest_ns = std::max(times.longest_ns, call_ns);
  }
  times.next_ns = times.longest_ns;
  for (std::size_t i = 0; i < joined.calls.size(); ++i)
    if (i != times.last)
      times.next_ns = std::min(times.next_ns, call_ns_of(calls[joined.calls[i]]));
  return times;
}

/// Of the ranks of a joined call the largest: one may send less in a gather.
double bytes_of_joined(const std::vector<CollectiveCall>& calls, const JoinedCall& joined) {
  double bytes = calls[joined.calls.front()].bytes;
  for (const std::uint32_t index : joined.calls) {
    const CollectiveCall& call = calls[index];
    if (call.bytes != bytes)
      bytes = std::max(bytes, call.bytes);
  }
  return bytes;
}

/// A message by the calls at its ends.
struct MessageEnds {
  MessageEnds(const std::vector<CollectiveCall>& calls, const MatchedMessage& message)
      : send_wait(waiting_call(calls, message.send)),
        receive_wait(waiting_call(calls, message.receive)),
        send(calls[message.send]),
        receive(calls[message.receive]),
        sender(calls[send_wait]),
        receiver(calls[receive_wait]),
        is_sender_in_call(send_wait != message.send || !only_begins(send)),
        is_receiver_in_call(receive_wait != message.receive || !only_begins(receive)) {}

  /// Is the end of the receiving call that of the message? Not where it completed several, or where
  /// the message may have been there before the program asked: it asked first, or was in the call
  /// for most of the time since both had begun.
  [[nodiscard]] bool ends_with_receiver() const {
    if (&receiver == &receive)
      return !only_begins(receive);
    const std::int64_t in_call_ns = length_ns(receiver.start_ns, receiver.end_ns);
    const std::int64_t since_begun_ns = length_ns(begun_ns(), receiver.end_ns);
    return receiver.received == 1 && 2 * in_call_ns >= since_begun_ns;
  }

  /// When both had begun.
  [[nodiscard]] std::int64_t begun_ns() const { return std::max(send.start_ns, receive.start_ns); }

  /// Where the program was until the message was through; indexes of calls. Where it only began the
  /// message and never asked, in none: then these are the calls that began it.
  std::uint32_t send_wait, receive_wait;
  const CollectiveCall &send, &receive;     ///< that began it
  const CollectiveCall &sender, &receiver;  ///< those of `send_wait` and `receive_wait`
  bool is_sender_in_call, is_receiver_in_call;

 private:
  /// MPI_Mprobe waits itself.
  static std::uint32_t waiting_call(const std::vector<CollectiveCall>& calls, std::uint32_t call) {
    const bool has_wait = calls[call].done != kNone && only_begins(calls[call]);
    return has_wait ? calls[call].done : call;
  }
};

struct MessageTimes {
  double late_sender_ns = 0, late_receiver_ns = 0;
  std::optional<double> transfer_ns;  ///< nothing where it is unknown
};

/// By the kernels of both ends: what one is longer it waits.
MessageTimes times_of_kernels(const MessageEnds& ends) {
  const double transfer_ns = std::min(call_ns_of(ends.send), call_ns_of(ends.receive));
  return {.late_sender_ns = call_ns_of(ends.receive) - transfer_ns,
          .late_receiver_ns = call_ns_of(ends.send) - transfer_ns,
          .transfer_ns = transfer_ns};
}

/// By clocks that agree.
MessageTimes times_of_clocks(const MessageEnds& ends) {
  const auto between = [](std::int64_t from_ns, std::int64_t to_ns) {
    return static_cast<double>(length_ns(from_ns, to_ns));
  };
  MessageTimes times;
  if (ends.is_receiver_in_call)
    times.late_sender_ns =
        std::min(call_ns_of(ends.receiver), between(ends.receiver.start_ns, ends.send.start_ns));
  // It was blocked so long, and did not only copy its data away.
  const bool is_sender_blocked = ends.receive.start_ns < ends.sender.end_ns;
  if (ends.is_sender_in_call && is_sender_blocked)
    times.late_receiver_ns = between(ends.sender.start_ns, ends.receive.start_ns);
  if (ends.ends_with_receiver())
    times.transfer_ns = between(ends.begun_ns(), ends.receiver.end_ns);
  return times;
}

class CallReport {
 public:
  CallReport(const Session& session,
             const CollectiveCalls& found,
             const std::vector<Around>& around,
             const std::function<void(std::uint32_t, std::vector<std::string>&)>& name,
             bool has_gpu,
             model::Report& report)
      : session_(session),
        found_(found),
        around_(around),
        name_(name),
        has_gpu_(has_gpu),
        report_(report) {}

  std::vector<Timed> run() {
    report_missing_ranks();
    report_collectives();
    report_messages();
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

  /// Ranks in a call of one name when recording ended.
  struct StandingRanks {
    std::set<std::uint32_t> ranks;
    const CollectiveCall* longest = nullptr;
  };

  /// Ranks that the others still waited for when recording ended: hung, or dead.
  void report_missing_ranks() {
    std::map<std::pair<std::uint32_t, std::string_view>, StandingRanks> standing_by_call;
    for (const CollectiveCall& call : found_.standing) {
      StandingRanks& standing =
          standing_by_call[{call.communicator, session_.strings.view(call.name)}];
      standing.ranks.insert(rank_of(call));
      if (standing.longest == nullptr || call_ns_of(call) > call_ns_of(*standing.longest))
        standing.longest = &call;
    }
    for (const auto& [call, standing] : standing_by_call) {
      std::map<std::uint32_t, std::uint64_t> calls_by_rank = calls_on(call.first);
      const std::uint64_t calls_before = calls_by_rank[*standing.ranks.begin()];
      std::vector<std::uint32_t> missing;
      for (const auto& [rank, calls] : calls_by_rank)
        if (!standing.ranks.contains(rank) && calls <= calls_before)
          missing.push_back(rank);
      if (!missing.empty())
        report_hung(standing, calls_before + 1, missing);
    }
  }

  /// Calls of each rank on a communicator; of MPI_COMM_WORLD also of ranks that made none.
  [[nodiscard]] std::map<std::uint32_t, std::uint64_t> calls_on(std::uint32_t number) const {
    std::map<std::uint32_t, std::uint64_t> calls_by_rank;
    const auto recorded = found_.made.find(number);
    if (recorded != found_.made.end())
      calls_by_rank = recorded->second;
    const Communicator& communicator = found_.communicators[number];
    const bool is_comm_world = !communicator.nccl && communicator.id == 1;
    if (is_comm_world)
      for (const model::Rank& rank : report_.ranks)
        calls_by_rank.try_emplace(rank.rank, 0);
    return calls_by_rank;
  }

  void report_hung(const StandingRanks& standing,
                   std::uint64_t nth,
                   const std::vector<std::uint32_t>& missing) {
    const CollectiveCall& call = *standing.longest;
    const std::vector<std::uint32_t> waiting(standing.ranks.begin(), standing.ranks.end());
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
    verdict.text = text + ": the others waited " + base::format_ns(call_ns_of(call));
    verdict.severity = model::Weight::kError;
    verdict.evidence = {{"rank", missing.front()},
                        {"ranks", static_cast<double>(missing.size())},
                        {"call", static_cast<double>(nth)},
                        {"waited_ns", call_ns_of(call)}};
    report_.verdict.push_back(std::move(verdict));
  }

  /// Of a row of Report::collectives.
  struct CollectiveSums {
    model::Collective row;
    std::map<std::uint32_t, model::CollectiveOfRank> ranks;
    Operation operation = Operation::kOther;
  };
  /// Communicator, name, bytes (-1: unknown), path.
  using CollectiveKey = std::tuple<std::uint32_t, std::string_view, double, std::uint32_t>;
  using CollectiveRows = std::map<CollectiveKey, CollectiveSums>;

  void report_collectives() {
    if (found_.unjoined > 0)
      report_.losses.push_back({"collectives_unjoined",
                                found_.unjoined,
                                "collective calls of communicators whose ranks do not make the "
                                "same calls in the same order"});
    CollectiveRows rows;
    for (const JoinedCall& joined : found_.joined)
      add_joined(joined, rows);
    for (auto& [key, sums] : rows)
      report_.collectives.push_back(finished(sums));
    std::ranges::stable_sort(report_.collectives, std::greater<>(), &model::Collective::wait_ns);
    if (report_.collectives.size() > kMostCollectives) {
      report_.notes.push_back(
          fmt::format("{} more kinds of collective calls, which waited less, are not listed",
                      report_.collectives.size() - kMostCollectives));
      report_.collectives.resize(kMostCollectives);
    }
  }

  CollectiveSums& sums_of(const JoinedCall& joined, CollectiveRows& rows) const {
    const CollectiveCall& first = found_.calls[joined.calls.front()];
    const std::string_view name = session_.strings.view(first.name);
    const std::uint32_t path = around_call(joined.calls.front()).path;
    const double bytes = bytes_of_joined(found_.calls, joined);
    const double bytes_key = std::isnan(bytes) ? -1 : bytes;
    CollectiveSums& sums = rows[CollectiveKey(first.communicator, name, bytes_key, path)];
    if (sums.row.calls > 0)
      return sums;
    const Communicator& communicator = found_.communicators[first.communicator];
    const std::size_t prefix = communicator.nccl ? std::string_view("nccl").size() : 0;
    const auto ranks = static_cast<std::int64_t>(joined.calls.size());
    sums.row.library = library_name(communicator);
    sums.row.communicator = communicator_text(communicator);
    sums.row.operation = std::string(name.substr(prefix));
    sums.row.bytes = bytes;
    sums.row.ranks = std::max<std::int64_t>(communicator.ranks, ranks);
    sums.operation = first.operation;
    path_to(path, sums.row.path);
    return sums;
  }

  void add_joined(const JoinedCall& joined, CollectiveRows& rows) {
    const JoinedTimes times = times_of_joined(found_.calls, joined);
    const std::uint32_t last_rank = rank_of(found_.calls[joined.calls[times.last]]);
    CollectiveSums& sums = sums_of(joined, rows);
    double waited_ns = 0;
    for (std::size_t i = 0; i < joined.calls.size(); ++i) {
      const CollectiveCall& call = found_.calls[joined.calls[i]];
      const double call_ns = call_ns_of(call);
      const double wait_ns = call_ns - times.shortest_ns;
      model::CollectiveOfRank& rank = sums.ranks[rank_of(call)];
      rank.wait_ns += wait_ns;
      rank.late_ns += times.longest_ns - call_ns;
      rank.time_ns += call_ns;
      rank.hidden_ns += around_call(joined.calls[i]).hidden_ns;
      waited_ns += wait_ns;
      const std::uint32_t cause = i == times.last ? kNone : last_rank;
      timed_.push_back({&call, joined.calls[i], wait_ns, cause});
    }
    model::CollectiveOfRank& last = sums.ranks[last_rank];
    if (times.longest_ns > times.shortest_ns)
      ++last.last;
    if (!is_first_of_communicator(joined)) {
      last.holds_up_ns += times.next_ns - times.shortest_ns;
      last.costs_ns += waited_ns;
    }
    ++sums.row.calls;
    sums.row.transfer_ns += times.shortest_ns;
    sums.row.wait_ns += waited_ns;
  }

  /// That call sets up connections: a rank that is last there does not delay what follows.
  [[nodiscard]] bool is_first_of_communicator(const JoinedCall& joined) const {
    if (&joined == &found_.joined.front())
      return true;
    const auto communicator_of = [&](const JoinedCall& call) {
      return found_.calls[call.calls.front()].communicator;
    };
    return communicator_of(*(&joined - 1)) != communicator_of(joined);
  }

  model::Collective finished(CollectiveSums& sums) const {
    model::Collective& row = sums.row;
    Bandwidth rate;
    const double mean_transfer_ns = row.transfer_ns / static_cast<double>(row.calls);
    const auto ranks = static_cast<double>(row.ranks);
    if (bandwidth_of(sums.operation, row.bytes, ranks, mean_transfer_ns, rate)) {
      row.algorithm_bytes_per_s = rate.algorithm;
      row.bus_bytes_per_s = rate.bus;
    }
    double time_ns = 0, hidden_ns = 0;
    for (auto& [rank, of_rank] : sums.ranks) {
      of_rank.rank = rank;
      time_ns += of_rank.time_ns;
      hidden_ns += of_rank.hidden_ns;
      row.by_rank.push_back(of_rank);
    }
    if (has_gpu_ && time_ns > 0 && !std::isnan(hidden_ns))
      row.hidden_share = hidden_ns / time_ns;
    return std::move(row);
  }

  /// Which processes' clocks agree: of one host, or aligned to the same one. Equal numbers agree.
  [[nodiscard]] std::vector<std::uint32_t> agreeing_clocks() const {
    std::vector<std::uint32_t> clock_of_process(session_.processes.size(), 0);
    const std::vector<HostClock> clocks = find_clocks(session_, found_);
    for (std::uint32_t host = 1; host < clocks.size(); ++host)
      for (const std::uint32_t process : clocks[host].processes)
        clock_of_process[process] = clocks[host].knots.empty() ? host : 0;
    return clock_of_process;
  }

  /// Of a row of Report::messages.
  struct MessageSums {
    model::PointToPoint row;
    bool is_transfer_known = true;  ///< of each message
  };
  /// Communicator, ranks of sender and receiver, path.
  using MessageKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  using MessageRows = std::map<MessageKey, MessageSums>;

  /// Of one of `found_.messaging`: whether it is an end of a message, and what it waited.
  struct MessageWait {
    bool is_joined = false;
    double wait_ns = 0;
    std::uint32_t cause = kNone;

    void add(double ns, std::uint32_t rank) {
      is_joined = true;
      if (!(ns > wait_ns))
        return;
      wait_ns = ns;
      cause = rank;
    }
  };

  void report_messages() {
    if (found_.messages.empty() && found_.unmatched == 0)
      return;
    const bool has_all_ranks = report_.ranks.size() >= report_.ranks.front().world;
    if (found_.unmatched > 0 && has_all_ranks)
      report_.losses.push_back({"messages_unmatched",
                                found_.unmatched,
                                "sends and receives without a matching call on the other rank"});
    const std::vector<std::uint32_t> clock_of = agreeing_clocks();
    MessageRows rows;
    std::vector<MessageWait> waits(found_.messaging.size());
    for (const MatchedMessage& message : found_.messages) {
      const MessageEnds ends(found_.messaging, message);
      MessageTimes times;
      if (ends.send.stream != kNone && ends.receive.stream != kNone)
        times = times_of_kernels(ends);
      else if (clock_of[ends.send.process] == clock_of[ends.receive.process])
        times = times_of_clocks(ends);
      MessageSums& sums = sums_of(message, rows);
      add_message(ends, times, sums);
      waits[message.send].is_joined = true;
      waits[message.receive].is_joined = true;
      waits[ends.send_wait].add(times.late_receiver_ns, sums.row.to);
      waits[ends.receive_wait].add(times.late_sender_ns, sums.row.from);
    }
    add_waits(waits);
    for (auto& [key, sums] : rows) {
      model::PointToPoint& row = sums.row;
      if (sums.is_transfer_known && row.transfer_ns > 0 && row.bytes > 0)
        row.bytes_per_s = row.bytes / row.transfer_ns * 1e9;
      report_.messages.push_back(std::move(row));
    }
    keep_longest_messages();
  }

  MessageSums& sums_of(const MatchedMessage& message, MessageRows& rows) const {
    const CollectiveCall& send = found_.messaging[message.send];
    const std::uint32_t sender = rank_of(send);
    const std::uint32_t receiver = rank_of(found_.messaging[message.receive]);
    const std::uint32_t path = around_message(message.send).path;
    MessageSums& sums = rows[MessageKey(send.communicator, sender, receiver, path)];
    if (sums.row.calls > 0)
      return sums;
    const Communicator& communicator = found_.communicators[send.communicator];
    sums.row.library = library_name(communicator);
    sums.row.communicator = communicator_text(communicator);
    sums.row.from = sender;
    sums.row.to = receiver;
    path_to(path, sums.row.path);
    return sums;
  }

  static void add_message(const MessageEnds& ends, const MessageTimes& times, MessageSums& sums) {
    model::PointToPoint& row = sums.row;
    ++row.calls;
    const double bytes = std::isnan(ends.send.bytes) ? ends.receive.bytes : ends.send.bytes;
    if (!std::isnan(bytes))
      row.bytes += bytes;
    row.transfer_ns += times.transfer_ns.value_or(0);
    if (!times.transfer_ns)
      sums.is_transfer_known = false;
    row.late_sender_ns += times.late_sender_ns;
    row.late_receiver_ns += times.late_receiver_ns;
    if (times.late_sender_ns > 0)
      ++row.late_senders;
    if (times.late_receiver_ns > 0)
      ++row.late_receivers;
  }

  void keep_longest_messages() {
    const auto wait_ns = [](const model::PointToPoint& row) {
      return row.late_sender_ns + row.late_receiver_ns;
    };
    const auto name = [](const model::PointToPoint& row) {
      return std::tie(row.library, row.communicator, row.from, row.to, row.path);
    };
    const auto goes_first = [&](const model::PointToPoint& a, const model::PointToPoint& b) {
      if (wait_ns(a) != wait_ns(b))
        return wait_ns(a) > wait_ns(b);
      return name(a) < name(b);
    };
    std::ranges::stable_sort(report_.messages, goes_first);
    if (report_.messages.size() > kMostMessages) {
      report_.notes.push_back(
          fmt::format("{} more pairs of ranks, which waited less, are not listed",
                      report_.messages.size() - kMostMessages));
      report_.messages.resize(kMostMessages);
    }
  }

  /// Calls of a group share their kernel: one of them represents all.
  void add_waits(const std::vector<MessageWait>& waits) {
    using Group = std::tuple<std::uint32_t, std::uint32_t, std::int64_t, std::int64_t>;
    std::map<Group, std::size_t> groups;
    for (std::size_t index = 0; index < waits.size(); ++index) {
      const MessageWait& wait = waits[index];
      if (!wait.is_joined)
        continue;
      const CollectiveCall& call = found_.messaging[index];
      const Timed timed{&call, found_.calls.size() + index, wait.wait_ns, wait.cause};
      if (call.stream == kNone) {
        timed_.push_back(timed);
        continue;
      }
      const auto [group, is_new] = groups.try_emplace(
          {call.process, call.stream, call.start_ns, call.end_ns}, timed_.size());
      if (is_new) {
        timed_.push_back(timed);
        continue;
      }
      Timed& of_group = timed_[group->second];
      if (timed.wait_ns > of_group.wait_ns) {
        of_group.wait_ns = timed.wait_ns;
        of_group.cause = timed.cause;
      }
    }
  }

  const Session& session_;
  const CollectiveCalls& found_;
  const std::vector<Around>& around_;
  const std::function<void(std::uint32_t, std::vector<std::string>&)>& name_;
  bool has_gpu_;
  model::Report& report_;
  std::vector<Timed> timed_;
};

}  // namespace

double call_ns_of(const CollectiveCall& call) {
  return static_cast<double>(length_ns(call.start_ns, call.end_ns));
}

std::vector<Timed> report_calls(
    const Session& session,
    const CollectiveCalls& found,
    const std::vector<Around>& around,
    const std::function<void(std::uint32_t, std::vector<std::string>&)>& name,
    bool has_gpu,
    model::Report& report) {
  return CallReport(session, found, around, name, has_gpu, report).run();
}

}  // namespace rangescope::analyze
