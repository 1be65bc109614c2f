// Collectives of a merged digest: what find_collectives() would have found in all captures, so that
// the rest of analyze goes on from there.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analyze/ranks/clocks.hpp"
#include "analyze/ranks/communication.hpp"
#include "analyze/tally/report.hpp"
#include "analyze/time/steady.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::tally {
namespace {

class Joiner {
 public:
  Joiner(const Digest& digest, model::Session& session) : digest_(digest), session_(session) {}

  analyze::CollectiveCalls run(bool with_messages) {
    std::map<std::pair<bool, std::uint64_t>, std::vector<const Calls*>> communicators;
    for (const Calls& calls : digest_.collectives)
      if (digest_.processes[calls.process].rank != kNone)
        communicators[{calls.nccl, calls.communicator}].push_back(&calls);
    std::uint32_t more = 0;
    std::size_t all = 0;
    for (const Calls& calls : digest_.collectives)
      all += calls.calls.size();
    while ((all >> more) > kMostJoined)
      ++more;
    for (auto& [key, ranks] : communicators)
      join(key.first, key.second, ranks, more);
    if (with_messages)
      messages();
    for (auto* list : {&of_messages_, &of_standing_})
      from_.insert(from_.end(), list->begin(), list->end());
    for (const From& from : from_) {
      Around& one = around_.emplace_back();
      one.path = from.call->region;
      one.context = from.call->context;
      one.hidden_ns =
          from.call->hidden_ns == kUnknown && !digest_.total ? 0 : number(from.call->hidden_ns);
      one.represented_calls = from.stands_for;
    }
    return std::move(found_);
  }

  [[nodiscard]] const std::vector<Around>& around() const {
    return around_;
  }  ///< of the calls that run() found
  [[nodiscard]] std::uint32_t widest() const { return widest_; }
  [[nodiscard]] std::uint32_t messages_shift() const { return messages_shift_; }

  /// What of the first nanoseconds of a call lies beside other kernels.
  [[nodiscard]] double beside(const Timed& one, std::int64_t ns) const {
    const From& from = from_[one.number];
    std::int64_t sum = 0;
    for (std::uint32_t i = from.call->beside; i < from.call->beside + from.call->parts; ++i)
      sum += std::max<std::int64_t>(
          0, std::min(ns, (*from.beside)[i].second) - (*from.beside)[i].first);
    return std::min(number(sum), around_[one.number].hidden_ns);
  }

 private:
  void join(bool nccl, std::uint64_t id, std::vector<const Calls*>& ranks, std::uint32_t more) {
    const std::uint32_t number = found_.communicator(nccl, id);
    for (const Calls* calls : ranks) {
      if (calls->made > 0)
        found_.made[number][digest_.processes[calls->process].rank] = calls->made;
      for (const Calls::Call& standing : calls->standing) {
        found_.standing.push_back(call(standing, calls->process, number));
        of_standing_.push_back({&standing, &calls->beside, 1});
      }
    }
    std::erase_if(ranks, [](const Calls* calls) { return calls->made == 0; });
    std::uint32_t shift = 0;
    std::uint64_t fewest = UINT64_MAX, most = 0;
    for (const Calls* calls : ranks) {
      found_.communicators[number].ranks =
          std::max(found_.communicators[number].ranks, calls->ranks);
      members_[number].insert(digest_.processes[calls->process].rank);
      shift = std::max(shift, calls->shift);
      fewest = std::min(fewest, calls->made);
      most = std::max(most, calls->made);
    }
    if (ranks.size() < 2)
      return;
    shift += more;
    widest_ = std::max(widest_, shift);
    std::vector<RankCalls> kept;
    for (const Calls* calls : ranks) {
      kept.push_back({found_.calls.size(), 0});
      for (std::size_t n = 0; n < calls->calls.size();
           n += std::size_t{1} << (shift - calls->shift)) {
        const std::uint64_t place = std::uint64_t{found_.calls.size() - kept.back().first} << shift,
                            stands_for = std::min(std::uint64_t{1} << shift,
                                                  std::max(fewest, place + 1) - place);
        found_.calls.push_back(call(calls->calls[n], calls->process, number));
        from_.push_back({&calls->calls[n], &calls->beside, static_cast<double>(stands_for)});
      }
      kept.back().last = found_.calls.size();
    }
    join_calls(session_, kept, shift, fewest, most, found_);
  }

  /// Both ends of messages, of all ranks by the coarsest one's choice.
  void messages() {
    for (const Messaging& of : digest_.messaging)
      messages_shift_ = std::max(messages_shift_, of.shift);
    const std::uint64_t mask = (std::uint64_t{1} << messages_shift_) - 1;
    for (const Messaging& of : digest_.messaging) {
      const std::uint32_t rank = digest_.processes[of.process].rank;
      if (rank == kNone)
        continue;
      std::vector<std::uint32_t> numbers;
      for (const Messaging::Communicator& one : of.communicators) {
        numbers.push_back(found_.communicator(one.nccl, one.id));
        analyze::Communicator& known = found_.communicators[numbers.back()];
        known.ranks = std::max(known.ranks, one.ranks);
        members_[numbers.back()].insert(rank);
      }
      std::vector<char> kept(of.calls.size());
      for (const Messaging::End& end : of.ends)
        if ((of.hash(end) & mask) == 0)
          kept[end.call] = kept[end.done == kNone ? end.call : end.done] = 1;
      std::vector<std::uint32_t> place(of.calls.size(), kNone);
      for (std::size_t c = 0; c < kept.size(); ++c) {
        if (kept[c] == 0)
          continue;
        place[c] = static_cast<std::uint32_t>(found_.messaging.size());
        const Messaging::Call& from = of.calls[c];
        analyze::CollectiveCall& made = found_.messaging.emplace_back(call(from, of.process, 0));
        made.stream = from.stream;
        made.received = from.received;
        const double chance = 1.0 / static_cast<double>(mask + 1),
                     all = std::max<std::uint32_t>(1, from.hashes);
        of_messages_.push_back({&from, &of.beside, 1 / (1 - std::pow(1 - chance, all))});
      }
      for (const Messaging::End& end : of.ends) {
        if (place[end.call] == kNone || (of.hash(end) & mask) != 0)
          continue;
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

  analyze::CollectiveCall call(const Calls::Call& from,
                               std::uint32_t process,
                               std::uint32_t communicator) {
    analyze::CollectiveCall out{
        since(from.start_ns, digest_), since(from.end_ns, digest_), 0, process, communicator};
    const std::string& name = digest_.names[from.name];
    if (names_.size() <= from.name)
      names_.resize(digest_.names.size(), kNone);
    if (names_[from.name] == kNone)
      names_[from.name] = session_.strings.intern(name);
    out.name = names_[from.name];
    analyze::classify(name, out);
    out.bytes = number(from.bytes);
    return out;
  }

  struct From {
    const Calls::Call* call;
    const std::vector<std::pair<std::int64_t, std::int64_t>>* beside;
    double stands_for;  ///< calls
  };

  const Digest& digest_;
  model::Session& session_;
  analyze::CollectiveCalls found_;
  std::vector<From> from_, of_messages_, of_standing_;
  std::vector<Around> around_;
  analyze::Members members_;
  std::vector<std::uint32_t> names_;  ///< strings of the session
  std::uint32_t widest_ = 0, messages_shift_ = 0;
};

void add_outside(const Digest& digest,
                 const std::vector<analyze::HostClock>& clocks,
                 Reported& into) {
  analyze::Spans all;
  std::int64_t closed = 0, waits = 0;
  for (const Open& open : digest.open) {
    const auto clock =
        std::find_if(clocks.begin(), clocks.end(), [&](const analyze::HostClock& each) {
          return each.host == digest.names[open.host];
        });
    const auto moved = [&](std::int64_t at) -> std::int64_t {
      if (at == INT64_MAX)
        return at;
      at = since(at, digest);
      return clock == clocks.end() ? at : at + std::llround(clock->add_at(static_cast<double>(at)));
    };
    for (const auto& [start, end] : open.spans)
      all.emplace_back(moved(start), moved(end));
    closed = plus(closed, open.closed_ns);
    waits = plus(waits, open.waits_ns);
  }
  into.report.outside = analyze::outside_of(
      std::move(all), into.session.begin_ns, into.session.end_ns, static_cast<double>(waits));
  if (closed > 0)
    into.report.notes.push_back("time outside ranges leaves out short gaps, of " +
                                base::format_ns(static_cast<double>(closed)) +
                                " over all ranks at most");
}

void add_lacks(const Joiner& joiner, model::Report& report) {
  if (joiner.widest() > 0)
    report.notes.push_back(
        "collectives rest on every " + std::to_string(1u << joiner.widest()) +
        (joiner.widest() == 1 ? "nd" : "th") + " call of the largest communicator: digests keep " +
        base::format_count(std::int64_t{kMostKeptCalls}) + " of a rank (--captures has all)");
  const std::uint32_t shift = joiner.messages_shift();
  if (shift == 0)
    return;
  const auto times = static_cast<std::int64_t>(std::uint64_t{1} << shift);
  for (model::PointToPoint& row : report.messages) {
    for (auto* count : {&row.calls, &row.late_senders, &row.late_receivers})
      *count *= times;
    for (auto* sum : {&row.bytes, &row.transfer_ns, &row.late_sender_ns, &row.late_receiver_ns})
      *sum *= static_cast<double>(times);
  }
  report.notes.push_back("messages rest on one in " + std::to_string(times) +
                         ", for which all others are taken: digests keep " +
                         base::format_count(std::int64_t{kMostKeptEnds}) +
                         " ends of a rank (--captures has all)");
}

}  // namespace

std::map<std::uint32_t, analyze::CommunicationSum> add_collectives(const Digest& digest,
                                                                   bool whole,
                                                                   Reported& into) {
  model::Session& session = into.session;
  Joiner joiner(digest, session);
  analyze::CollectiveCalls found;
  if (into.report.ranks.size() > 1)
    found = joiner.run(whole);
  const std::vector<analyze::HostClock> clocks = analyze::align_hosts(session, found);
  analyze::describe_clocks(clocks, session, into.report);
  add_outside(digest, clocks, into);
  if (into.report.ranks.size() < 2)
    return {};
  const auto name = [&](std::uint32_t region, std::vector<std::string>& path) {
    const std::size_t before = path.size();
    for (; region != kNone; region = digest.regions[region].parent)
      path.push_back(digest.names[digest.regions[region].name]);
    std::reverse(path.begin() + static_cast<std::ptrdiff_t>(before), path.end());
  };
  const std::vector<analyze::Timed> timed = analyze::report_calls(
      session, found, joiner.around(), name, digest.total.has_value(), into.report);
  add_lacks(joiner, into.report);
  if (!whole)
    return {};
  PlaceRules rules;
  rules.hidden_ns = [&](const Timed& one, std::int64_t ns) { return joiner.beside(one, ns); };
  rules.parent = [&](std::uint32_t region) { return digest.regions[region].parent; };
  rules.same = [](std::uint32_t region) { return region; };
  rules.count = digest.regions.size();
  return analyze::sum_up(timed, joiner.around(), digest.contexts, rules);
}

}  // namespace rangescope::analyze::tally
