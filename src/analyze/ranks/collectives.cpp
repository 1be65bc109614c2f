#include "analyze/ranks/collectives.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/text.hpp"
#include "model/kernel_name.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

struct KnownCalls {
  Operation operation;
  std::string_view names;  // with | between
};
// Collectives with sizes of their own for each rank have no bandwidth.
constexpr KnownCalls kCalls[] = {
    {Operation::kAllReduce, "ncclAllReduce|MPI_Allreduce"},
    {Operation::kReduceScatter, "ncclReduceScatter|MPI_Reduce_scatter_block"},
    {Operation::kAllGather, "ncclAllGather|MPI_Allgather"},
    {Operation::kBroadcast, "ncclBroadcast|ncclBcast|MPI_Bcast"},
    {Operation::kReduce, "ncclReduce|MPI_Reduce"},
    {Operation::kAllToAll, "ncclAlltoAll|MPI_Alltoall"},
    {Operation::kGather, "ncclGather|MPI_Gather"},
    {Operation::kScatter, "ncclScatter|MPI_Scatter"},
    {Operation::kBarrier, "MPI_Barrier"},
    {Operation::kOther,
     "MPI_Allgatherv|MPI_Alltoallv|MPI_Gatherv|MPI_Scatterv|"
     "MPI_Reduce_scatter|MPI_Scan|MPI_Exscan|MPI_Alltoallw|MPI_Win_create|"
     "MPI_Win_allocate|MPI_Win_allocate_shared|MPI_Win_create_dynamic|"
     "MPI_Win_fence|MPI_Win_free"},
    {Operation::kSend, "ncclSend|MPI_Send|MPI_Ssend|MPI_Rsend"},
    {Operation::kReceive, "ncclRecv|MPI_Recv|MPI_Mprobe"},
    {Operation::kSendLater,
     "MPI_Bsend|MPI_Isend|MPI_Issend|MPI_Irsend|MPI_Ibsend|"
     "MPI_Start (MPI_Send_init)|MPI_Start (MPI_Ssend_init)|"
     "MPI_Start (MPI_Rsend_init)|MPI_Start (MPI_Bsend_init)|"
     "MPI_Start (MPI_Psend_init)"},
    {Operation::kReceiveLater,
     "MPI_Irecv|MPI_Start (MPI_Recv_init)|MPI_Start (MPI_Precv_init)|"
     "MPI_Improbe"},
    {Operation::kExchange, "MPI_Sendrecv|MPI_Sendrecv_replace"},
    {Operation::kExchangeLater, "MPI_Isendrecv|MPI_Isendrecv_replace"},
    {Operation::kWait,
     "MPI_Mrecv|MPI_Wait|MPI_Waitall|MPI_Waitany|MPI_Waitsome|MPI_Test|"
     "MPI_Testall|MPI_Testany|MPI_Testsome"},
};

bool is_message(Operation operation) {
  return operation >= Operation::kSend;
}

std::optional<Operation> find_call(std::string_view name) {
  static const auto calls = [] {
    std::unordered_map<std::string_view, Operation> out;
    for (const auto& [operation, names] : kCalls)
      for (const std::string_view each : base::split(names, '|'))
        out.emplace(each, operation);
    return out;
  }();
  const auto found = calls.find(name);
  return found == calls.end() ? std::nullopt : std::optional(found->second);
}

/// Of MPI_Iallreduce that of MPI_Allreduce. Nothing for what begins no collective.
std::optional<Operation> find_later(std::string_view name) {
  constexpr std::string_view kBegins = "MPI_I";
  if (!name.starts_with(kBegins) || name.size() == kBegins.size())
    return std::nullopt;
  std::string blocking = "MPI_" + std::string(name.substr(kBegins.size()));
  blocking[4] = static_cast<char>(std::toupper(static_cast<unsigned char>(blocking[4])));
  const auto call = find_call(blocking);
  return !call || is_message(*call) ? std::nullopt : call;
}

std::string_view domain_of(const Session& session, const model::Range& range) {
  return range.domain < session.domains.size()
             ? session.strings.view(session.domains[range.domain].name)
             : std::string_view{};
}

/// The numbers of a call's payload that matter, by the names that NCCL and our MPI layer give them.
struct Fields {
  static constexpr std::int32_t kUnsaid = INT32_MIN;
  std::uint64_t communicator = 0;
  double bytes = model::kNan;
  std::uint32_t ranks = 0;
  std::int32_t self = CollectiveCall::kNobody;
  CollectiveCall::End peer, source{kUnsaid, 0};
  std::uint64_t request = 0;  ///< 0: none
};
Fields fields_of(const Session& session, std::span<const model::PayloadField> fields) {
  Fields out;
  for (const model::PayloadField& field : fields) {
    const std::string_view name = session.strings.view(field.name);
    if (name == "NCCL communicator ID" || name == "MPI communicator ID")
      out.communicator = field.bits;
    if (name == "Message size [bytes]")
      out.bytes = static_cast<double>(field.bits);
    if (name == "No. of ranks")
      out.ranks = static_cast<std::uint32_t>(field.bits);
    if (name == "Rank")
      out.self = static_cast<std::int32_t>(field.bits);
    if (name == "Peer rank")
      out.peer.rank = static_cast<std::int32_t>(field.bits);
    if (name == "Tag")
      out.peer.tag = static_cast<std::int32_t>(field.bits);
    if (name == "Source rank")
      out.source.rank = static_cast<std::int32_t>(field.bits);
    if (name == "Source tag")
      out.source.tag = static_cast<std::int32_t>(field.bits);
    if (name == "Request")
      out.request = field.bits;
  }
  return out;
}

/// What waiting calls report of the requests that they completed.
class Requests {
 public:
  void begun(const CollectiveCall& call, std::uint64_t request) {
    if (request != 0)
      begun_[{call.process, request}] = call.range;
  }
  /// False where a call completed nothing.
  bool completed(const Session& session,
                 std::span<const model::PayloadField> fields,
                 std::uint32_t process) {
    const std::size_t before = completed_.size();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (session.strings.view(fields[i].name) != "Completed request")
        continue;
      std::size_t last = i + 1;
      while (last < fields.size() && session.strings.view(fields[last].name) != "Completed request")
        ++last;
      completed_.push_back({fields[i].range,
                            {process, fields[i].bits},
                            fields_of(session, fields.subspan(i, last - i))});
    }
    return completed_.size() > before;
  }
  /// Sorts the messages by their start, and notes in each what became of it; then of collectives
  /// that were begun.
  void settle(const Session& session,
              std::vector<CollectiveCall>& calls,
              std::vector<CollectiveCall>& collectives) const {
    std::sort(calls.begin(), calls.end(), [&](const CollectiveCall& a, const CollectiveCall& b) {
      const std::int64_t x = session.ranges[a.range].start_ns, y = session.ranges[b.range].start_ns;
      return x != y ? x < y : a.range < b.range;
    });
    const auto places = [](const std::vector<CollectiveCall>& of) {
      std::unordered_map<std::uint32_t, std::uint32_t> place;
      for (std::uint32_t c = 0; c < of.size(); ++c)
        place[of[c].range] = c;
      return place;
    };
    const auto place = places(calls), of_collective = places(collectives);
    std::map<std::uint32_t, CollectiveCall*>
        last_of;  // by the call that completes it, null beside messages
    for (const Completed& one : completed_) {
      const auto from = begun_.find(one.request);
      const auto wait = place.find(one.range);
      if (from == begun_.end() || wait == place.end())
        continue;
      if (const auto begun = of_collective.find(from->second); begun != of_collective.end()) {
        CollectiveCall* const call = &collectives[begun->second];
        const auto [last, added] = last_of.try_emplace(wait->second, call);
        if (!added && last->second != nullptr &&
            session.ranges[call->range].start_ns > session.ranges[last->second->range].start_ns)
          last->second = call;
      }
      const auto begun = place.find(from->second);
      if (begun == place.end())
        continue;
      last_of[wait->second] = nullptr;
      CollectiveCall& call = calls[begun->second];
      call.done = wait->second;
      if (one.said.source.rank == CollectiveCall::kNobody)
        call.to = call.from = {};  // cancelled
      if (call.operation == Operation::kSendLater)
        continue;
      call.from = one.said.source;
      if (call.operation != Operation::kExchangeLater)
        call.bytes = one.said.bytes;
      ++calls[wait->second].received;
    }
    for (CollectiveCall& call : collectives)
      if (call.later)
        call.start_ns = call.end_ns;
    for (const auto& [wait, call] : last_of) {
      if (call == nullptr)
        continue;
      call->start_ns = calls[wait].start_ns;
      call->end_ns = calls[wait].end_ns;
      call->stood = calls[wait].range;
    }
  }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // process, number
  struct Completed {
    std::uint32_t range;
    Key request;
    Fields said;
  };
  std::map<Key, std::uint32_t> begun_;
  std::vector<Completed> completed_;
};

/// Gives calls of NCCL the time of their kernels: those that the same thread launched after them
/// and before the next call. A group (ncclGroupStart ... End) launches for several calls at once.
class CallKernels {
 public:
  CallKernels(const Session& session, std::vector<CollectiveCall>& calls)
      : session_(session), calls_(calls) {}

  void run() {
    struct Event {
      std::uint32_t thread;
      std::int64_t at_ns;
      std::uint32_t call, kernel;
    };
    std::vector<Event> events;
    for (std::uint32_t c = 0; c < calls_.size(); ++c) {
      const model::Range& range = session_.ranges[calls_[c].range];
      if (domain_of(session_, range) == "NCCL")
        events.push_back({range.thread, range.start_ns, c, kNone});
    }
    if (events.empty())
      return;
    const std::vector<char> nccl = nccl_kernels(session_);
    for (std::uint32_t k = 0; k < session_.kernels.size(); ++k) {
      const model::Kernel& kernel = session_.kernels[k];
      if (kernel.launch >= session_.launches.size() || kernel.name >= nccl.size() ||
          nccl[kernel.name] == 0)
        continue;
      const model::Launch& launch = session_.launches[kernel.launch];
      events.push_back({launch.thread, launch.start_ns, kNone, k});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.thread, a.at_ns, a.call, a.kernel) <
             std::tie(b.thread, b.at_ns, b.call, b.kernel);
    });
    std::vector<std::uint32_t> waiting, kernels;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool other = i > 0 && events[i].thread != events[i - 1].thread;
      if (other || (events[i].call != kNone && !kernels.empty()))
        settle(waiting, kernels);
      if (other)
        waiting.clear();
      if (events[i].call != kNone)
        waiting.push_back(events[i].call);
      else if (!waiting.empty())
        kernels.push_back(events[i].kernel);
    }
    settle(waiting, kernels);
    std::erase_if(calls_, [](const CollectiveCall& call) { return call.range == kNone; });
  }

 private:
  void settle(std::vector<std::uint32_t>& waiting, std::vector<std::uint32_t>& kernels) {
    if (!waiting.empty() && !kernels.empty()) {
      const auto take = [&](CollectiveCall& call, std::size_t first, std::size_t last) {
        call.stream = session_.kernels[kernels[first]].stream;
        call.start_ns = session_.kernels[kernels[first]].start_ns;
        call.end_ns = session_.kernels[kernels[first]].end_ns;
        for (std::size_t k = first + 1; k < last; ++k) {
          call.start_ns = std::min(call.start_ns, session_.kernels[kernels[k]].start_ns);
          call.end_ns = std::max(call.end_ns, session_.kernels[kernels[k]].end_ns);
        }
      };
      const bool message = std::any_of(waiting.begin(), waiting.end(), [&](std::uint32_t call) {
        return is_message(calls_[call].operation);
      });
      if (message) {  // of a group: which kernel moved which is unknown
        for (const std::uint32_t call : waiting)
          take(calls_[call], 0, kernels.size());
      } else if (kernels.size() == waiting.size()) {
        for (std::size_t i = 0; i < waiting.size(); ++i)
          take(calls_[waiting[i]], i, i + 1);
      } else {  // one kernel for several calls: they are one call of all their bytes
        CollectiveCall& whole = calls_[waiting.front()];
        take(whole, 0, kernels.size());
        for (std::size_t i = 1; i < waiting.size(); ++i) {
          CollectiveCall& part = calls_[waiting[i]];
          if (part.communicator != whole.communicator || part.operation != whole.operation) {
            whole.bytes = model::kNan;
          } else {
            whole.bytes += part.bytes;
          }
          part.range = kNone;
        }
      }
    }
    if (!kernels.empty())
      waiting.clear();
    kernels.clear();
  }

  const Session& session_;
  std::vector<CollectiveCall>& calls_;
};

}  // namespace

std::vector<char> nccl_kernels(const Session& session) {
  std::vector<char> out;
  for (const model::KernelName& name : session.kernel_names)
    out.push_back(model::is_nccl(session.strings.view(name.short_name)) ? 1 : 0);
  return out;
}

bool is_communication(const Session& session, const model::Range& range) {
  return is_communication(domain_of(session, range));
}

bool is_communication(std::string_view domain) {
  return domain == "NCCL" || domain == "MPI";
}

bool bandwidth_of(Operation operation, double bytes, double ranks, double ns, Bandwidth& out) {
  if (!(bytes > 0) || ranks < 2 || !(ns > 0))
    return false;
  double all = bytes, factor = 1;
  switch (operation) {
    case Operation::kAllReduce: factor = 2 * (ranks - 1) / ranks; break;
    case Operation::kReduceScatter:
    case Operation::kAllGather:
    case Operation::kAllToAll:
    case Operation::kGather:
    case Operation::kScatter:
      all = bytes * ranks;
      factor = (ranks - 1) / ranks;
      break;
    case Operation::kBroadcast:
    case Operation::kReduce: break;
    default: return false;
  }
  out.algorithm = all / ns * 1e9;
  out.bus = out.algorithm * factor;
  return true;
}

void classify(std::string_view name, CollectiveCall& call) {
  auto known = find_call(name);
  if (!known)
    call.later = (known = find_later(name)).has_value();
  call.operation = known.value_or(Operation::kOther);
}

void match_messages(const Session& session, const Members& members, CollectiveCalls& out) {
  // Where it is unknown, the ranks of a communicator are numbered as those of the job that it
  // joins.
  const auto self_of = [&](const CollectiveCall& call) -> std::int32_t {
    if (call.self >= 0)
      return call.self;
    const auto known = members.find(call.communicator);
    if (known == members.end())
      return CollectiveCall::kNobody;
    const auto& all = known->second;
    const std::uint32_t size = out.communicators[call.communicator].ranks;
    if (size > 0 && all.size() != size)
      return CollectiveCall::kNobody;
    return static_cast<std::int32_t>(
        std::distance(all.begin(), all.find(session.processes[call.process].rank)));
  };
  using Key = std::tuple<std::uint32_t,
                         std::int32_t,
                         std::int32_t,
                         std::int32_t>;  // communicator, from, to, tag
  struct Ends {
    std::vector<std::uint32_t> sends, receives;
  };
  std::map<Key, Ends> keys;
  for (std::uint32_t c = 0; c < out.messaging.size(); ++c) {
    const CollectiveCall& call = out.messaging[c];
    const std::int32_t self = self_of(call);
    if (call.operation == Operation::kWait)
      continue;
    if (call.to.rank > CollectiveCall::kNobody)
      keys[{call.communicator, self, call.to.rank, call.to.tag}].sends.push_back(c);
    if (call.from.rank > CollectiveCall::kNobody)
      keys[{call.communicator, call.from.rank, self, call.from.tag}].receives.push_back(c);
  }
  for (const auto& [key, ends] : keys) {
    const std::size_t both = std::min(ends.sends.size(), ends.receives.size());
    for (std::size_t i = 0; i < both; ++i)
      out.messages.push_back({ends.sends[i], ends.receives[i]});
    out.unmatched += ends.sends.size() + ends.receives.size() - 2 * both;
  }
}

CollectiveCalls find_collectives(const Session& session) {
  CollectiveCalls out;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> selves;
  Requests requests;
  std::size_t field = 0;
  const auto& fields = session.payload_fields;
  for (std::uint32_t r = 0; r < session.ranges.size(); ++r) {
    const std::size_t first = field;
    while (field < fields.size() && fields[field].range == r)
      ++field;
    const model::Range& range = session.ranges[r];
    if (!is_communication(session, range) || range.thread >= session.threads.size())
      continue;
    const std::uint32_t process = session.threads[range.thread].process;
    if (process >= session.processes.size() || session.processes[process].rank == kNone)
      continue;
    const bool nccl = domain_of(session, range) == "NCCL";
    const Fields said = fields_of(session, std::span(fields).subspan(first, field - first));
    if (said.ranks > 0 && said.communicator != 0) {
      const std::uint32_t made = out.communicator(nccl, said.communicator);
      out.communicators[made].ranks = said.ranks;
      if (said.self >= 0)
        selves[{made, process}] = said.self;
    }
    const std::string_view name = session.strings.view(range.name);
    auto call = find_call(name);
    const bool later = !call && (call = find_later(name));
    if (!call)
      continue;
    if (!nccl && said.communicator == 0 && *call != Operation::kWait)
      continue;  // nobody saw it made
    CollectiveCall made{range.start_ns,
                        range.end_ns,
                        r,
                        process,
                        out.communicator(nccl, said.communicator),
                        range.name,
                        *call,
                        said.bytes};
    made.self = said.self;
    made.later = later;
    if (*call == Operation::kBarrier)
      made.bytes = 0;
    if (*call != Operation::kWait)
      requests.begun(made, said.request);
    else if (!requests.completed(session, std::span(fields).subspan(first, field - first), process))
      continue;
    const bool sends = *call == Operation::kSend || *call == Operation::kSendLater;
    if (*call == Operation::kExchange || *call == Operation::kExchangeLater)
      made.to = said.peer, made.from = said.source;
    else if (is_message(*call))
      (sends ? made.to : made.from) = said.peer;
    if (range.end_ns != kOpen) {
      out.calls.push_back(made);
    } else if (!is_message(*call)) {
      made.end_ns = session.end_ns;
      out.standing.push_back(made);
    }
  }
  CallKernels(session, out.calls).run();
  const auto others =
      std::stable_partition(out.calls.begin(), out.calls.end(), [](const CollectiveCall& call) {
        return !is_message(call.operation);
      });
  out.messaging.assign(others, out.calls.end());
  out.calls.erase(others, out.calls.end());
  requests.settle(session, out.messaging, out.calls);
  Members members;
  for (auto* list : {&out.calls, &out.messaging}) {
    for (CollectiveCall& call : *list) {
      members[call.communicator].insert(session.processes[call.process].rank);
      if (call.self >= 0)
        continue;
      if (const auto said = selves.find({call.communicator, call.process}); said != selves.end())
        call.self = said->second;
    }
  }
  match_messages(session, members, out);

  // By communicator, rank and time; then the n-th beside the n-th.
  const auto rank_of = [&](const CollectiveCall& call) {
    return session.processes[call.process].rank;
  };
  for (const CollectiveCall& call : out.calls)
    ++out.made[call.communicator][rank_of(call)];
  std::sort(
      out.calls.begin(), out.calls.end(), [&](const CollectiveCall& a, const CollectiveCall& b) {
        return std::tuple(a.communicator, rank_of(a), session.ranges[a.range].start_ns, a.range) <
               std::tuple(b.communicator, rank_of(b), session.ranges[b.range].start_ns, b.range);
      });
  for (std::size_t i = 0; i < out.calls.size();) {
    std::vector<RankCalls> ranks;
    const std::uint32_t one = out.calls[i].communicator;
    std::uint64_t fewest = UINT64_MAX, most = 0;
    for (std::size_t last = i; i < out.calls.size() && out.calls[i].communicator == one; i = last) {
      while (last < out.calls.size() && out.calls[last].communicator == one &&
             rank_of(out.calls[last]) == rank_of(out.calls[i]))
        ++last;
      ranks.push_back({i, last});
      fewest = std::min<std::uint64_t>(fewest, last - i);
      most = std::max<std::uint64_t>(most, last - i);
    }
    if (ranks.size() > 1)
      join_calls(session, ranks, 0, fewest, most, out);
  }
  return out;
}

std::size_t join_calls(const Session& session,
                       const std::vector<RankCalls>& ranks,
                       std::uint32_t shift,
                       std::uint64_t fewest,
                       std::uint64_t most,
                       CollectiveCalls& found) {
  std::size_t kept = SIZE_MAX;
  for (const RankCalls& calls : ranks)
    kept = std::min(kept, calls.last - calls.first);
  const auto same = [&](std::size_t n) {
    const CollectiveCall& one = found.calls[ranks.front().first + n];
    return std::all_of(ranks.begin(), ranks.end(), [&](const RankCalls& calls) {
      const CollectiveCall& other = found.calls[calls.first + n];
      return other.operation == one.operation &&
             session.strings.view(other.name) == session.strings.view(one.name);
    });
  };
  std::size_t n = 0;
  for (; n < kept && same(n); ++n) {
    JoinedCall joined;
    for (const RankCalls& calls : ranks)
      joined.calls.push_back(static_cast<std::uint32_t>(calls.first + n));
    found.joined.push_back(std::move(joined));
  }
  found.unjoined +=
      most - (n == kept ? fewest : std::min<std::uint64_t>(fewest, std::uint64_t{n} << shift));
  return n;
}

}  // namespace rangescope::analyze
