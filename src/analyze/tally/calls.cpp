// Collectives of a merged digest: what find_collectives() would have found in all captures, so that the rest of analyze
// goes on from there.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "analyze/ranks/clocks.hpp"
#include "analyze/ranks/communication.hpp"
#include "analyze/tally/report.hpp"
#include "analyze/time/steady.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::tally {
namespace {

constexpr std::int64_t kSpan = 4096;  // of a made-up range, of which only the nesting counts

class Joiner {
 public:
  Joiner(const Digest& digest, model::Session& session) : digest_(digest), session_(session) {
    library_ = domain("MPI");
  }

  /// In `session` are then the ranges around calls, each path once.
  analyze::CollectiveCalls run(bool with_messages) {
    std::map<std::pair<bool, std::uint64_t>, std::vector<const Calls*>> communicators;
    for (const Calls& calls : digest_.collectives)
      if (digest_.processes[calls.process].rank != kNone)
        communicators[{calls.nccl, calls.communicator}].push_back(&calls);
    std::uint32_t more = 0;
    std::size_t all = 0;
    for (const Calls& calls : digest_.collectives) all += calls.calls.size();
    while ((all >> more) > kMostJoined) ++more;
    for (auto& [key, ranks] : communicators) join(key.first, key.second, ranks, more);
    if (with_messages) messages();
    return std::move(found_);
  }

  [[nodiscard]] std::uint32_t widest() const { return widest_; }
  [[nodiscard]] std::uint32_t messages_shift() const { return messages_shift_; }

  /// Of each region, by calls that run() found, moved since or not; nothing where one does not say where it stands.
  [[nodiscard]] std::vector<analyze::CommunicationSum> sum_up(const std::vector<analyze::Timed>& timed,
                                                              const analyze::CollectiveCalls& found) const {
    std::vector<analyze::CommunicationSum> of_context(digest_.contexts.size()), out(digest_.regions.size());
    for (const analyze::Timed& one : timed) {
      const bool message = std::less_equal<>()(found.messaging.data(), one.call) &&
                           std::less<>()(one.call, found.messaging.data() + found.messaging.size());
      const From& from = message ? from_messaging_[static_cast<std::size_t>(one.call - found.messaging.data())]
                                 : from_[static_cast<std::size_t>(one.call - found.calls.data())];
      if (from.call->context == kNone || from.call->hidden_ns == kUnknown) return {};  // damaged
      const auto time = static_cast<double>(analyze::length_ns(one.call->start_ns, one.call->end_ns)),
                 waited = std::min(one.wait_ns, time), hidden = static_cast<double>(from.call->hidden_ns);
      const std::int64_t begins = std::llround(waited);
      std::int64_t beside = 0;
      for (std::uint32_t i = from.call->beside; i < from.call->beside + from.call->parts; ++i)
        beside += std::max<std::int64_t>(0, std::min(begins, (*from.beside)[i].second) - (*from.beside)[i].first);
      const double beside_wait = std::min(static_cast<double>(beside), hidden);
      of_context[from.call->context].add(time, waited, beside_wait, hidden - beside_wait, one.cause, from.stands_for);
    }
    std::vector<std::uint32_t> seen(out.size(), kNone);
    for (std::uint32_t c = 0; c < of_context.size(); ++c)
      for (std::uint32_t region : digest_.contexts[c])
        for (; region != kNone && std::exchange(seen[region], c) != c; region = digest_.regions[region].parent)
          out[region].add(of_context[c]);
    return out;
  }

 private:
  void join(bool nccl, std::uint64_t id, std::vector<const Calls*>& ranks, std::uint32_t more) {
    const std::uint32_t number = communicator(nccl, id);
    for (const Calls* calls : ranks) {
      if (calls->made > 0) found_.made[number][digest_.processes[calls->process].rank] = calls->made;
      for (const Calls::Call& standing : calls->standing)
        found_.standing.push_back(call(standing, calls->process, number, true));
    }
    std::erase_if(ranks, [](const Calls* calls) { return calls->made == 0; });
    std::uint32_t shift = 0;
    std::uint64_t fewest = UINT64_MAX, most = 0;
    for (const Calls* calls : ranks) {
      found_.communicators[number].ranks = std::max(found_.communicators[number].ranks, calls->ranks);
      members_[number].insert(digest_.processes[calls->process].rank);
      shift = std::max(shift, calls->shift);
      fewest = std::min(fewest, calls->made);
      most = std::max(most, calls->made);
    }
    if (ranks.size() < 2) return;
    shift += more;
    widest_ = std::max(widest_, shift);
    std::size_t kept = SIZE_MAX;
    const auto at = [&](const Calls& calls, std::size_t n) -> const Calls::Call& {
      return calls.calls[n << (shift - calls.shift)];
    };
    for (const Calls* calls : ranks) {
      const std::uint32_t by = shift - calls->shift;
      kept = std::min(kept, (calls->calls.size() + (std::size_t{1} << by) - 1) >> by);
    }
    const auto same = [&](std::size_t n) {
      return std::all_of(ranks.begin(), ranks.end(),
                         [&](const Calls* calls) { return at(*calls, n).name == at(*ranks.front(), n).name; });
    };
    std::size_t n = 0;
    for (; n < kept && same(n); ++n) {
      analyze::JoinedCall joined;
      const std::uint64_t stands_for =
          std::min(std::uint64_t{1} << shift,
                   std::max<std::uint64_t>(fewest, (std::uint64_t{n} << shift) + 1) - (std::uint64_t{n} << shift));
      for (const Calls* calls : ranks) {
        joined.calls.push_back(static_cast<std::uint32_t>(found_.calls.size()));
        found_.calls.push_back(call(at(*calls, n), calls->process, number, calls == ranks.front()));
        from_.push_back({&at(*calls, n), &calls->beside, static_cast<double>(stands_for)});
      }
      found_.joined.push_back(std::move(joined));
    }
    found_.unjoined += most - (n == kept ? fewest : std::min<std::uint64_t>(fewest, std::uint64_t{n} << shift));
  }

  std::uint32_t communicator(bool nccl, std::uint64_t id) {
    const auto [at, added] =
        communicators_.try_emplace({nccl, id}, static_cast<std::uint32_t>(found_.communicators.size()));
    if (added) found_.communicators.push_back({nccl, id, 0});
    return at->second;
  }

  /// Both ends of messages, of all ranks by the coarsest one's choice.
  void messages() {
    for (const Messaging& of : digest_.messaging) messages_shift_ = std::max(messages_shift_, of.shift);
    const std::uint64_t mask = (std::uint64_t{1} << messages_shift_) - 1;
    for (const Messaging& of : digest_.messaging) {
      const std::uint32_t rank = digest_.processes[of.process].rank;
      if (rank == kNone) continue;
      std::vector<std::uint32_t> numbers;
      for (const Messaging::Communicator& one : of.communicators) {
        numbers.push_back(communicator(one.nccl, one.id));
        analyze::Communicator& known = found_.communicators[numbers.back()];
        known.ranks = std::max(known.ranks, one.ranks);
        members_[numbers.back()].insert(rank);
      }
      std::vector<char> kept(of.calls.size());
      for (const Messaging::End& end : of.ends)
        if ((of.hash(end) & mask) == 0) kept[end.call] = kept[end.done == kNone ? end.call : end.done] = 1;
      std::vector<std::uint32_t> place(of.calls.size(), kNone);
      for (std::size_t c = 0; c < kept.size(); ++c) {
        if (kept[c] == 0) continue;
        place[c] = static_cast<std::uint32_t>(found_.messaging.size());
        const Messaging::Call& from = of.calls[c];
        analyze::CollectiveCall& made = found_.messaging.emplace_back(call(from, of.process, 0, true));
        made.stream = from.stream;
        made.received = from.received;
        const double chance = 1.0 / static_cast<double>(mask + 1), all = std::max<std::uint32_t>(1, from.hashes);
        from_messaging_.push_back({&from, &of.beside, 1 / (1 - std::pow(1 - chance, all))});
      }
      for (const Messaging::End& end : of.ends) {
        if (place[end.call] == kNone || (of.hash(end) & mask) != 0) continue;
        analyze::CollectiveCall& made = found_.messaging[place[end.call]];
        made.communicator = numbers[end.communicator];
        made.self = of.communicators[end.communicator].self;
        made.done = end.done == kNone ? kNone : place[end.done];
        (end.sends ? made.to : made.from) = {end.peer, end.tag};
      }
    }
    analyze::match_messages(session_, members_, found_);
    found_.unmatched <<= messages_shift_;
  }

  analyze::CollectiveCall call(const Calls::Call& from, std::uint32_t process, std::uint32_t communicator, bool first) {
    analyze::CollectiveCall out{since(from.start_ns, digest_), since(from.end_ns, digest_), 0, process, communicator};
    const std::string& name = digest_.names[from.name];
    if (names_.size() <= from.name) names_.resize(digest_.names.size(), kNone);
    if (names_[from.name] == kNone) names_[from.name] = session_.strings.intern(name);
    out.name = names_[from.name];
    analyze::classify(name, out);
    out.bytes = from.bytes == kUnknown ? std::nan("") : static_cast<double>(from.bytes);
    out.hidden_ns = from.hidden_ns != kUnknown ? static_cast<double>(from.hidden_ns) : digest_.total ? std::nan("") : 0;
    if (first) out.range = around(from.region);
    return out;
  }

  /// A range that stands where the region's path is open.
  std::uint32_t around(std::uint32_t region) {
    const auto [at, added] = around_.try_emplace(region, 0);
    if (!added) return at->second;
    const std::int64_t base = static_cast<std::int64_t>(around_.size()) * kSpan;
    std::vector<std::uint32_t> path;
    for (std::uint32_t r = region; r != kNone; r = digest_.regions[r].parent) path.push_back(r);
    for (std::size_t i = path.size(); i-- > 0;) {
      const Region& from = digest_.regions[path[i]];
      const auto depth = static_cast<std::int64_t>(path.size() - 1 - i);
      range(base + depth, base + kSpan - 1 - depth, digest_.names[from.name], domain(digest_.names[from.domain]),
            from.kind);
    }
    at->second = static_cast<std::uint32_t>(session_.ranges.size());
    range(base + kSpan / 2, base + kSpan / 2 + 1, "call", library_, model::RangeKind::kPushPop);
    return at->second;
  }

  void range(std::int64_t start, std::int64_t end, std::string_view name, std::uint32_t domain, model::RangeKind kind) {
    model::Range range;
    range.start_ns = start;
    range.end_ns = end;
    range.name = session_.strings.intern(name);
    range.domain = domain;
    range.kind = kind;
    session_.ranges.push_back(range);
  }

  std::uint32_t domain(std::string_view name) {
    const model::StringId id = session_.strings.intern(name);
    const auto at = std::find_if(session_.domains.begin(), session_.domains.end(),
                                 [&](const model::Domain& domain) { return domain.name == id; });
    if (at != session_.domains.end()) return static_cast<std::uint32_t>(at - session_.domains.begin());
    session_.domains.push_back({id});
    return static_cast<std::uint32_t>(session_.domains.size() - 1);
  }

  struct From {
    const Calls::Call* call;
    const std::vector<std::pair<std::int64_t, std::int64_t>>* beside;
    double stands_for;  ///< calls
  };

  const Digest& digest_;
  model::Session& session_;
  analyze::CollectiveCalls found_;
  std::vector<From> from_, from_messaging_;  ///< of each of found_.calls and found_.messaging
  std::map<std::pair<bool, std::uint64_t>, std::uint32_t> communicators_;
  analyze::Members members_;
  std::vector<std::uint32_t> names_;  ///< strings of the session
  std::map<std::uint32_t, std::uint32_t> around_;
  std::uint32_t library_ = 0, widest_ = 0, messages_shift_ = 0;
};

/// As analyze::align(): the first host's clock for all.
void align(const std::vector<analyze::HostClock>& clocks, analyze::CollectiveCalls& found, Reported& into) {
  model::Session& session = into.session;
  const analyze::Moves moves(clocks);
  moves.move(found);
  session.begin_ns = INT64_MAX;
  session.end_ns = 0;
  for (std::uint32_t p = 0; p < session.processes.size(); ++p) {
    model::Process& process = session.processes[p];
    moves.both(p, process);
    session.begin_ns = std::min(session.begin_ns, process.start_ns);
    session.end_ns = std::max(session.end_ns, process.end_ns);
  }
  for (std::size_t p = 0; p < session.processes.size(); ++p) {
    into.report.processes[p].start_ns = analyze::since_ns(session.begin_ns, session.processes[p].start_ns);
    into.report.processes[p].end_ns = analyze::since_ns(session.begin_ns, session.processes[p].end_ns);
  }
  into.report.run.duration_ns = static_cast<double>(analyze::length_ns(session.begin_ns, session.end_ns));
}

void add_outside(const Digest& digest, const std::vector<analyze::HostClock>& clocks, Reported& into) {
  analyze::Spans all;
  std::int64_t closed = 0, waits = 0;
  for (const Open& open : digest.open) {
    const auto clock = std::find_if(clocks.begin(), clocks.end(), [&](const analyze::HostClock& each) {
      return each.host == digest.names[open.host];
    });
    const auto moved = [&](std::int64_t at) -> std::int64_t {
      if (at == INT64_MAX) return at;
      at = since(at, digest);
      return clock == clocks.end() ? at : at + std::llround(clock->add_at(static_cast<double>(at)));
    };
    for (const auto& [start, end] : open.spans) all.emplace_back(moved(start), moved(end));
    closed = plus(closed, open.closed_ns);
    waits = plus(waits, open.waits_ns);
  }
  into.report.outside =
      analyze::outside_of(std::move(all), into.session.begin_ns, into.session.end_ns, static_cast<double>(waits));
  if (closed > 0)
    into.report.notes.push_back("time outside ranges leaves out short gaps, of " +
                                base::format_ns(static_cast<double>(closed)) + " over all ranks at most");
}

}  // namespace

std::vector<analyze::CommunicationSum> add_collectives(const Digest& digest, bool whole, Reported& into) {
  model::Session& session = into.session;
  if (into.report.ranks.size() < 2) {
    add_outside(digest, {}, into);
    return {};
  }
  Joiner joiner(digest, session);
  analyze::CollectiveCalls found = joiner.run(whole);
  std::set<model::StringId> hosts;
  for (const model::Process& process : session.processes)
    if (process.host != 0 && process.rank != kNone) hosts.insert(process.host);
  std::vector<analyze::HostClock> clocks;
  if (hosts.size() > 1) {
    clocks = analyze::find_clocks(session, found);
    align(clocks, found, into);
    analyze::describe_clocks(clocks, session, into.report);
  }
  add_outside(digest, clocks, into);
  analyze::Tree tree = analyze::build_tree(session, analyze::Domains::kSeparate, 1);
  analyze::link_nodes(tree, session);
  const std::vector<analyze::Timed> timed = analyze::add_collectives(session, {}, tree, found, into.report);
  session.ranges.clear();
  for (model::Collective& row : into.report.collectives) {
    double hidden = 0, time = 0;
    for (const model::CollectiveOfRank& rank : row.by_rank) hidden += rank.hidden_ns, time += rank.time_ns;
    if (digest.total && time > 0 && !std::isnan(hidden)) row.hidden_share = hidden / time;
  }
  if (joiner.widest() > 0)
    into.report.notes.push_back("collectives rest on every " + std::to_string(1u << joiner.widest()) +
                                (joiner.widest() == 1 ? "nd" : "th") +
                                " call of the largest communicator: digests keep " +
                                base::format_count(std::int64_t{kMostKeptCalls}) + " of a rank (--captures has all)");
  if (const std::uint32_t shift = joiner.messages_shift(); shift > 0) {
    const auto times = static_cast<std::int64_t>(std::uint64_t{1} << shift);
    for (model::PointToPoint& row : into.report.messages) {
      for (auto* count : {&row.calls, &row.late_senders, &row.late_receivers}) *count *= times;
      for (auto* sum : {&row.bytes, &row.transfer_ns, &row.late_sender_ns, &row.late_receiver_ns})
        *sum *= static_cast<double>(times);
    }
    into.report.notes.push_back(
        "messages rest on one in " + std::to_string(times) + ", for which all others are taken: digests keep " +
        base::format_count(std::int64_t{kMostKeptEnds}) + " ends of a rank (--captures has all)");
  }
  return whole ? joiner.sum_up(timed, found) : std::vector<analyze::CommunicationSum>();
}

}  // namespace rangescope::analyze::tally
