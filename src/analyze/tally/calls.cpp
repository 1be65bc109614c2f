// Collectives of a merged digest: what find_collectives() would have found in all captures, so that
// the rest of analyze goes on from there.
#include <fmt/format.h>

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
    std::size_t kept_calls = 0;
    for (const Calls& calls : digest_.collectives) {
      kept_calls += calls.calls.size();
      if (digest_.processes[calls.process].rank != kNone)
        communicators[{calls.nccl, calls.communicator}].push_back(&calls);
    }
    std::uint32_t added_shift = 0;
    while ((kept_calls >> added_shift) > kMostJoined)
      ++added_shift;
    for (auto& [key, ranks] : communicators)
      join(key.first, key.second, ranks, added_shift);
    if (with_messages)
      add_messages();
    for (auto* list : {&of_messages_, &of_standing_})
      sources_.insert(sources_.end(), list->begin(), list->end());
    for (const Source& source : sources_)
      around_.push_back(around_of(source));
    return std::move(found_);
  }

  /// Of the calls that run() found.
  [[nodiscard]] const std::vector<Around>& around() const { return around_; }
  [[nodiscard]] std::uint32_t widest() const { return widest_; }
  [[nodiscard]] std::uint32_t messages_shift() const { return messages_shift_; }

  /// In which part of the first nanoseconds of a call other kernels ran.
  [[nodiscard]] double hidden_ns(const Timed& call, std::int64_t first_ns) const {
    const Source& source = sources_[call.number];
    const std::uint32_t first = source.call->first_span;
    std::int64_t sum_ns = 0;
    for (std::uint32_t i = first; i < first + source.call->spans; ++i) {
      const auto& [start_ns, end_ns] = (*source.other_kernels)[i];
      sum_ns += std::max<std::int64_t>(0, std::min(first_ns, end_ns) - start_ns);
    }
    return std::min(number(sum_ns), around_[call.number].hidden_ns);
  }

 private:
  /// A call in the digest.
  struct Source {
    const Calls::Call* call;
    const Spans* other_kernels;
    double represented_calls;
  };

  [[nodiscard]] Around around_of(const Source& source) const {
    const Calls::Call& call = *source.call;
    const bool has_no_kernels = call.hidden_ns == kUnknown && !digest_.total;
    Around around;
    around.path = call.region;
    around.context = call.context;
    around.hidden_ns = has_no_kernels ? 0 : number(call.hidden_ns);
    around.represented_calls = source.represented_calls;
    return around;
  }

  void join(bool nccl,
            std::uint64_t id,
            std::vector<const Calls*>& ranks,
            std::uint32_t added_shift) {
    const std::uint32_t communicator = found_.communicator(nccl, id);
    for (const Calls* calls : ranks) {
      if (calls->made_calls > 0)
        found_.made[communicator][digest_.processes[calls->process].rank] = calls->made_calls;
      for (const Calls::Call& standing : calls->standing) {
        found_.standing.push_back(call(standing, calls->process, communicator));
        of_standing_.push_back({&standing, &calls->other_kernels, 1});
      }
    }
    std::erase_if(ranks, [](const Calls* calls) { return calls->made_calls == 0; });
    std::uint32_t shift = 0;
    std::uint64_t fewest = UINT64_MAX, most = 0;
    std::uint32_t& size = found_.communicators[communicator].ranks;
    for (const Calls* calls : ranks) {
      size = std::max(size, calls->ranks);
      members_[communicator].insert(digest_.processes[calls->process].rank);
      shift = std::max(shift, calls->shift);
      fewest = std::min(fewest, calls->made_calls);
      most = std::max(most, calls->made_calls);
    }
    if (ranks.size() < 2)
      return;
    shift += added_shift;
    widest_ = std::max(widest_, shift);
    std::vector<RankCalls> kept;
    for (const Calls* calls : ranks)
      kept.push_back(keep_calls(*calls, communicator, shift, fewest));
    join_calls(session_, kept, shift, fewest, most, found_);
  }

  /// Every 2^shift-th of them: each represents those up to the next one, as far as all ranks made
  /// them (`fewest`).
  RankCalls keep_calls(const Calls& calls,
                       std::uint32_t communicator,
                       std::uint32_t shift,
                       std::uint64_t fewest) {
    const std::size_t first = found_.calls.size();
    const std::size_t step = std::size_t{1} << (shift - calls.shift);
    for (std::size_t n = 0; n < calls.calls.size(); n += step) {
      const std::uint64_t place = std::uint64_t{found_.calls.size() - first} << shift;
      const std::uint64_t represented =
          std::min(std::uint64_t{1} << shift, std::max(fewest, place + 1) - place);
      found_.calls.push_back(call(calls.calls[n], calls.process, communicator));
      sources_.push_back({&calls.calls[n], &calls.other_kernels, static_cast<double>(represented)});
    }
    return {first, found_.calls.size()};
  }

  /// Both ends of messages, of all ranks by the coarsest one's choice.
  void add_messages() {
    for (const Messaging& messaging : digest_.messaging)
      messages_shift_ = std::max(messages_shift_, messaging.shift);
    for (const Messaging& messaging : digest_.messaging)
      if (digest_.processes[messaging.process].rank != kNone)
        add_messaging(messaging);
    analyze::match_messages(session_, members_, found_);
    found_.unmatched <<= messages_shift_;
  }

  [[nodiscard]] bool is_kept(const Messaging& messaging, const Messaging::End& end) const {
    const std::uint64_t mask = (std::uint64_t{1} << messages_shift_) - 1;
    return (messaging.hash(end) & mask) == 0;
  }

  void add_messaging(const Messaging& messaging) {
    const std::vector<std::uint32_t> communicators = add_communicators(messaging);
    const std::vector<std::uint32_t> place = add_kept_calls(messaging);
    for (const Messaging::End& end : messaging.ends) {
      if (place[end.call] == kNone || !is_kept(messaging, end))
        continue;
      analyze::CollectiveCall& call = found_.messaging[place[end.call]];
      call.communicator = communicators[end.communicator];
      call.self = messaging.communicators[end.communicator].self;
      call.done = end.done == kNone ? kNone : place[end.done];
      (end.sends ? call.to : call.from) = {end.peer, end.tag};
    }
  }

  /// Numbers in `found_` of the communicators of a process.
  std::vector<std::uint32_t> add_communicators(const Messaging& messaging) {
    std::vector<std::uint32_t> numbers;
    for (const Messaging::Communicator& communicator : messaging.communicators) {
      const std::uint32_t number = found_.communicator(communicator.nccl, communicator.id);
      std::uint32_t& ranks = found_.communicators[number].ranks;
      ranks = std::max(ranks, communicator.ranks);
      members_[number].insert(digest_.processes[messaging.process].rank);
      numbers.push_back(number);
    }
    return numbers;
  }

  /// Those that complete ends which are kept, else began them; index in `found_.messaging` of each
  /// call, kNone of the others.
  std::vector<std::uint32_t> add_kept_calls(const Messaging& messaging) {
    std::vector<char> kept(messaging.calls.size());
    for (const Messaging::End& end : messaging.ends) {
      if (!is_kept(messaging, end))
        continue;
      kept[end.call] = 1;
      if (end.done != kNone)
        kept[end.done] = 1;
    }
    const double share_of_hashes = 1.0 / static_cast<double>(std::uint64_t{1} << messages_shift_);
    std::vector<std::uint32_t> place(messaging.calls.size(), kNone);
    for (std::size_t index = 0; index < kept.size(); ++index) {
      if (kept[index] == 0)
        continue;
      place[index] = static_cast<std::uint32_t>(found_.messaging.size());
      const Messaging::Call& source = messaging.calls[index];
      analyze::CollectiveCall& added =
          found_.messaging.emplace_back(call(source, messaging.process, 0));
      added.stream = source.stream;
      added.received = source.received;
      // Any of its hashes is enough to keep it.
      const double hashes = std::max<std::uint32_t>(1, source.hashes);
      const double chance_to_be_kept = 1 - std::pow(1 - share_of_hashes, hashes);
      of_messages_.push_back({&source, &messaging.other_kernels, 1 / chance_to_be_kept});
    }
    return place;
  }

  analyze::CollectiveCall call(const Calls::Call& source,
                               std::uint32_t process,
                               std::uint32_t communicator) {
    analyze::CollectiveCall out{
        since(source.start_ns, digest_), since(source.end_ns, digest_), 0, process, communicator};
    const std::string& name = digest_.names[source.name];
    if (names_.size() <= source.name)
      names_.resize(digest_.names.size(), kNone);
    if (names_[source.name] == kNone)
      names_[source.name] = session_.strings.intern(name);
    out.name = names_[source.name];
    analyze::classify(name, out);
    out.bytes = number(source.bytes);
    return out;
  }

  const Digest& digest_;
  model::Session& session_;
  analyze::CollectiveCalls found_;
  std::vector<Source> sources_, of_messages_, of_standing_;
  std::vector<Around> around_;
  analyze::Members members_;
  std::vector<std::uint32_t> names_;  ///< strings of the session
  std::uint32_t widest_ = 0, messages_shift_ = 0;
};

void add_outside(const Digest& digest,
                 const std::vector<analyze::HostClock>& clocks,
                 Reported& into) {
  analyze::Spans spans;
  std::int64_t closed_ns = 0, waits_ns = 0;
  for (const Open& open : digest.open) {
    const auto clock =
        std::ranges::find(clocks, digest.names[open.host], &analyze::HostClock::host);
    const auto moved = [&](std::int64_t utc_ns) -> std::int64_t {
      if (utc_ns == INT64_MAX)
        return utc_ns;
      const std::int64_t time_ns = since(utc_ns, digest);
      if (clock == clocks.end())
        return time_ns;
      return time_ns + std::llround(clock->add_at(static_cast<double>(time_ns)));
    };
    for (const auto& [start, end] : open.spans)
      spans.emplace_back(moved(start), moved(end));
    closed_ns = plus(closed_ns, open.closed_ns);
    waits_ns = plus(waits_ns, open.waits_ns);
  }
  into.report.outside = analyze::outside_of(
      std::move(spans), into.session.begin_ns, into.session.end_ns, static_cast<double>(waits_ns));
  if (closed_ns > 0)
    into.report.notes.push_back("time outside ranges leaves out short gaps, of " +
                                base::format_ns(static_cast<double>(closed_ns)) +
                                " over all ranks at most");
}

void add_lacks(const Joiner& joiner, model::Report& report) {
  if (joiner.widest() > 0) {
    const std::string_view ordinal_ending = joiner.widest() == 1 ? "nd" : "th";
    report.notes.push_back(
        fmt::format("collectives rest on every {}{} call of the largest communicator: digests keep "
                    "{} of a rank (--captures has all)",
                    1u << joiner.widest(),
                    ordinal_ending,
                    base::format_count(std::int64_t{kMostKeptCalls})));
  }
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
  rules.hidden_ns = [&](const Timed& call, std::int64_t first_ns) {
    return joiner.hidden_ns(call, first_ns);
  };
  rules.parent = [&](std::uint32_t region) { return digest.regions[region].parent; };
  rules.same = [](std::uint32_t region) { return region; };
  rules.count = digest.regions.size();
  return analyze::sum_up(timed, joiner.around(), digest.contexts, rules);
}

}  // namespace rangescope::analyze::tally
