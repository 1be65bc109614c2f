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
      for (const std::string_view call_name : base::split(names, '|'))
        out.emplace(call_name, operation);
    return out;
  }();
  const auto found = calls.find(name);
  if (found == calls.end())
    return std::nullopt;
  return found->second;
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

/// Sets operation and `later`; false where the name is no call.
bool name_call(std::string_view name, CollectiveCall& call) {
  std::optional<Operation> operation = find_call(name);
  if (!operation) {
    operation = find_later(name);
    call.later = operation.has_value();
  }
  call.operation = operation.value_or(Operation::kOther);
  return operation.has_value();
}

std::string_view domain_of(const Session& session, const model::Range& range) {
  if (range.domain >= session.domains.size())
    return {};
  return session.strings.view(session.domains[range.domain].name);
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
              std::vector<CollectiveCall>& messages,
              std::vector<CollectiveCall>& collectives) const {
    std::ranges::sort(messages, {}, [&](const CollectiveCall& call) {
      return std::pair(session.ranges[call.range].start_ns, call.range);
    });
    const auto message_of = places_by_range(messages);
    const auto collective_of = places_by_range(collectives);
    // The last collective that a call completes, by that call; null where it completes messages.
    std::map<std::uint32_t, CollectiveCall*> last_collective_of;
    for (const Completed& completed : completed_) {
      const auto begin_range = begun_.find(completed.request);
      const auto wait = message_of.find(completed.range);
      if (begin_range == begun_.end() || wait == message_of.end())
        continue;
      const auto collective = collective_of.find(begin_range->second);
      if (collective != collective_of.end()) {
        CollectiveCall* const call = &collectives[collective->second];
        const auto [entry, is_first] = last_collective_of.try_emplace(wait->second, call);
        CollectiveCall*& last = entry->second;
        const auto start_ns = [&](const CollectiveCall& begun) {
          return session.ranges[begun.range].start_ns;
        };
        if (!is_first && last != nullptr && start_ns(*call) > start_ns(*last))
          last = call;
      }
      const auto message = message_of.find(begin_range->second);
      if (message == message_of.end())
        continue;
      last_collective_of[wait->second] = nullptr;
      complete(completed.payload, wait->second, messages[message->second], messages);
    }
    for (CollectiveCall& call : collectives)
      if (call.later)
        call.start_ns = call.end_ns;
    for (const auto& [wait, call] : last_collective_of) {
      if (call == nullptr)
        continue;
      call->start_ns = messages[wait].start_ns;
      call->end_ns = messages[wait].end_ns;
      call->stood = messages[wait].range;
    }
  }

 private:
  /// Notes in a message that was begun what the call that completed it says.
  static void complete(const Fields& payload,
                       std::uint32_t wait,
                       CollectiveCall& message,
                       std::vector<CollectiveCall>& messages) {
    message.done = wait;
    if (payload.source.rank == CollectiveCall::kNobody)
      message.to = message.from = {};  // cancelled
    if (message.operation == Operation::kSendLater)
      return;
    message.from = payload.source;
    if (message.operation != Operation::kExchangeLater)
      message.bytes = payload.bytes;
    ++messages[wait].received;
  }

  static std::unordered_map<std::uint32_t, std::uint32_t> places_by_range(
      const std::vector<CollectiveCall>& calls) {
    std::unordered_map<std::uint32_t, std::uint32_t> places;
    for (std::uint32_t place = 0; place < calls.size(); ++place)
      places[calls[place].range] = place;
    return places;
  }

  using Key = std::pair<std::uint32_t, std::uint64_t>;  // process, number
  struct Completed {
    std::uint32_t range;
    Key request;
    Fields payload;
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
      const bool is_other_thread = i > 0 && events[i].thread != events[i - 1].thread;
      if (is_other_thread || (events[i].call != kNone && !kernels.empty()))
        settle(waiting, kernels);
      if (is_other_thread)
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
  using Kernels = std::span<const std::uint32_t>;

  void settle(std::vector<std::uint32_t>& waiting, std::vector<std::uint32_t>& kernels) {
    if (!waiting.empty() && !kernels.empty())
      share_out(waiting, kernels);
    if (!kernels.empty())
      waiting.clear();
    kernels.clear();
  }

  void share_out(const std::vector<std::uint32_t>& waiting, Kernels kernels) {
    const bool has_message = std::ranges::any_of(
        waiting, [&](std::uint32_t call) { return is_message(calls_[call].operation); });
    if (has_message) {  // of a group: which kernel moved which is unknown
      for (const std::uint32_t call : waiting)
        set_time(kernels, calls_[call]);
    } else if (kernels.size() == waiting.size()) {
      for (std::size_t i = 0; i < waiting.size(); ++i)
        set_time(kernels.subspan(i, 1), calls_[waiting[i]]);
    } else {
      merge(waiting, kernels);
    }
  }

  void set_time(Kernels kernels, CollectiveCall& call) const {
    const model::Kernel& first = session_.kernels[kernels.front()];
    call.stream = first.stream;
    call.start_ns = first.start_ns;
    call.end_ns = first.end_ns;
    for (const std::uint32_t kernel : kernels.subspan(1)) {
      call.start_ns = std::min(call.start_ns, session_.kernels[kernel].start_ns);
      call.end_ns = std::max(call.end_ns, session_.kernels[kernel].end_ns);
    }
  }

  /// Calls that do not have a kernel each are one call of all their bytes.
  void merge(const std::vector<std::uint32_t>& waiting, Kernels kernels) {
    CollectiveCall& merged = calls_[waiting.front()];
    set_time(kernels, merged);
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      CollectiveCall& part = calls_[waiting[i]];
      const bool is_same_kind =
          part.communicator == merged.communicator && part.operation == merged.operation;
      if (is_same_kind)
        merged.bytes += part.bytes;
      else
        merged.bytes = model::kNan;
      part.range = kNone;
    }
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
  double total_bytes = bytes, factor = 1;
  switch (operation) {
    case Operation::kAllReduce: factor = 2 * (ranks - 1) / ranks; break;
    case Operation::kReduceScatter:
    case Operation::kAllGather:
    case Operation::kAllToAll:
    case Operation::kGather:
    case Operation::kScatter:
      total_bytes = bytes * ranks;
      factor = (ranks - 1) / ranks;
      break;
    case Operation::kBroadcast:
    case Operation::kReduce: break;
    default: return false;
  }
  out.algorithm = total_bytes / ns * 1e9;
  out.bus = out.algorithm * factor;
  return true;
}

void classify(std::string_view name, CollectiveCall& call) {
  name_call(name, call);
}

void match_messages(const Session& session, const Members& members, CollectiveCalls& out) {
  // Where it is unknown, the ranks of a communicator are numbered as those of the job that it
  // joins.
  const auto self_of = [&](const CollectiveCall& call) -> std::int32_t {
    if (call.self >= 0)
      return call.self;
    const auto found = members.find(call.communicator);
    if (found == members.end())
      return CollectiveCall::kNobody;
    const std::set<std::uint32_t>& ranks = found->second;
    const std::uint32_t size = out.communicators[call.communicator].ranks;
    if (size > 0 && ranks.size() != size)
      return CollectiveCall::kNobody;
    const auto self = ranks.find(session.processes[call.process].rank);
    return static_cast<std::int32_t>(std::distance(ranks.begin(), self));
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
    const std::size_t matched = std::min(ends.sends.size(), ends.receives.size());
    for (std::size_t i = 0; i < matched; ++i)
      out.messages.push_back({ends.sends[i], ends.receives[i]});
    out.unmatched += ends.sends.size() + ends.receives.size() - 2 * matched;
  }
}

namespace {

/// Finds the calls of a session, range by range, and brings those of all ranks together.
class CallFinder {
 public:
  explicit CallFinder(const Session& session) : session_(session) {}

  CollectiveCalls run() {
    std::size_t field = 0;
    const std::span fields(session_.payload_fields);
    for (std::uint32_t range = 0; range < session_.ranges.size(); ++range) {
      const std::size_t first = field;
      while (field < fields.size() && fields[field].range == range)
        ++field;
      add_range(range, fields.subspan(first, field - first));
    }
    CallKernels(session_, out_.calls).run();
    separate_messages();
    requests_.settle(session_, out_.messaging, out_.calls);
    match_messages(session_, members_with_selves(), out_);
    join_by_communicator();
    return std::move(out_);
  }

 private:
  using PayloadFields = std::span<const model::PayloadField>;

  [[nodiscard]] std::uint32_t rank_of(const CollectiveCall& call) const {
    return session_.processes[call.process].rank;
  }

  void add_range(std::uint32_t index, PayloadFields fields) {
    const model::Range& range = session_.ranges[index];
    if (!is_communication(session_, range) || range.thread >= session_.threads.size())
      return;
    const std::uint32_t process = session_.threads[range.thread].process;
    if (process >= session_.processes.size() || session_.processes[process].rank == kNone)
      return;
    const bool is_nccl = domain_of(session_, range) == "NCCL";
    const Fields payload = fields_of(session_, fields);
    if (payload.ranks > 0 && payload.communicator != 0)
      add_communicator(is_nccl, process, payload);
    CollectiveCall call;
    const bool is_call = name_call(session_.strings.view(range.name), call);
    if (!is_call)
      return;
    const bool is_wait = call.operation == Operation::kWait;
    const bool has_unknown_communicator = !is_nccl && payload.communicator == 0;
    if (has_unknown_communicator && !is_wait)
      return;
    call.start_ns = range.start_ns;
    call.end_ns = range.end_ns;
    call.range = index;
    call.process = process;
    call.communicator = out_.communicator(is_nccl, payload.communicator);
    call.name = range.name;
    call.bytes = call.operation == Operation::kBarrier ? 0 : payload.bytes;
    call.self = payload.self;
    set_ends(payload, call);
    if (!is_wait)
      requests_.begun(call, payload.request);
    else if (!requests_.completed(session_, fields, process))
      return;
    if (range.end_ns != kOpen) {
      out_.calls.push_back(call);
    } else if (!is_message(call.operation)) {
      call.end_ns = session_.end_ns;
      out_.standing.push_back(call);
    }
  }

  void add_communicator(bool is_nccl, std::uint32_t process, const Fields& payload) {
    const std::uint32_t communicator = out_.communicator(is_nccl, payload.communicator);
    out_.communicators[communicator].ranks = payload.ranks;
    if (payload.self >= 0)
      selves_[{communicator, process}] = payload.self;
  }

  /// Of a message from and to which rank it is.
  static void set_ends(const Fields& payload, CollectiveCall& call) {
    switch (call.operation) {
      case Operation::kExchange:
      case Operation::kExchangeLater:
        call.to = payload.peer;
        call.from = payload.source;
        break;
      case Operation::kSend:
      case Operation::kSendLater: call.to = payload.peer; break;
      default:
        if (is_message(call.operation))
          call.from = payload.peer;
    }
  }

  void separate_messages() {
    const auto is_collective = [](const CollectiveCall& call) {
      return !is_message(call.operation);
    };
    const auto messages =
        std::stable_partition(out_.calls.begin(), out_.calls.end(), is_collective);
    out_.messaging.assign(messages, out_.calls.end());
    out_.calls.erase(messages, out_.calls.end());
  }

  /// Fills in own ranks that another call of the process had.
  Members members_with_selves() {
    Members members;
    for (auto* calls : {&out_.calls, &out_.messaging}) {
      for (CollectiveCall& call : *calls) {
        members[call.communicator].insert(rank_of(call));
        const auto self = selves_.find({call.communicator, call.process});
        if (call.self < 0 && self != selves_.end())
          call.self = self->second;
      }
    }
    return members;
  }

  /// Sorts by communicator, rank and time; then the n-th calls of the ranks are one.
  void join_by_communicator() {
    for (const CollectiveCall& call : out_.calls)
      ++out_.made[call.communicator][rank_of(call)];
    const auto order = [&](const CollectiveCall& call) {
      const std::int64_t start_ns = session_.ranges[call.range].start_ns;
      return std::tuple(call.communicator, rank_of(call), start_ns, call.range);
    };
    std::ranges::sort(out_.calls, {}, order);
    for (std::size_t first = 0; first < out_.calls.size();) {
      std::vector<RankCalls> ranks;
      std::uint64_t fewest = UINT64_MAX, most = 0;
      const std::uint32_t communicator = out_.calls[first].communicator;
      while (first < out_.calls.size() && out_.calls[first].communicator == communicator) {
        const std::size_t last = end_of_rank(first);
        ranks.push_back({first, last});
        fewest = std::min<std::uint64_t>(fewest, last - first);
        most = std::max<std::uint64_t>(most, last - first);
        first = last;
      }
      if (ranks.size() > 1)
        join_calls(session_, ranks, 0, fewest, most, out_);
    }
  }

  /// Behind the last call of the same communicator and rank as `first`.
  [[nodiscard]] std::size_t end_of_rank(std::size_t first) const {
    const auto owner = [&](std::size_t call) {
      return std::pair(out_.calls[call].communicator, rank_of(out_.calls[call]));
    };
    std::size_t last = first;
    while (last < out_.calls.size() && owner(last) == owner(first))
      ++last;
    return last;
  }

  const Session& session_;
  CollectiveCalls out_;
  Requests requests_;
  /// Own ranks, by communicator and process.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> selves_;
};

}  // namespace

CollectiveCalls find_collectives(const Session& session) {
  return CallFinder(session).run();
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
    const CollectiveCall& first = found.calls[ranks.front().first + n];
    return std::ranges::all_of(ranks, [&](const RankCalls& calls) {
      const CollectiveCall& other = found.calls[calls.first + n];
      return other.operation == first.operation &&
             session.strings.view(other.name) == session.strings.view(first.name);
    });
  };
  std::size_t n = 0;
  for (; n < kept && same(n); ++n) {
    JoinedCall joined;
    for (const RankCalls& calls : ranks)
      joined.calls.push_back(static_cast<std::uint32_t>(calls.first + n));
    found.joined.push_back(std::move(joined));
  }
  std::uint64_t joined_of_rank = fewest;
  if (n != kept)
    joined_of_rank = std::min<std::uint64_t>(fewest, std::uint64_t{n} << shift);
  found.unjoined += most - joined_of_rank;
  return n;
}

}  // namespace rangescope::analyze
