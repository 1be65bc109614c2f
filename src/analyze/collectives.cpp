#include "analyze/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct KnownCall {
  std::string_view name;
  Operation operation;
};
// Point-to-point calls are no collectives. Those with sizes of their own for each rank have no bandwidth.
constexpr auto kCalls = std::to_array<KnownCall>({
    {"ncclAllReduce", Operation::kAllReduce},
    {"ncclReduceScatter", Operation::kReduceScatter},
    {"ncclAllGather", Operation::kAllGather},
    {"ncclBroadcast", Operation::kBroadcast},
    {"ncclBcast", Operation::kBroadcast},
    {"ncclReduce", Operation::kReduce},
    {"ncclAlltoAll", Operation::kAllToAll},
    {"ncclGather", Operation::kGather},
    {"ncclScatter", Operation::kScatter},
    {"MPI_Allreduce", Operation::kAllReduce},
    {"MPI_Reduce_scatter_block", Operation::kReduceScatter},
    {"MPI_Allgather", Operation::kAllGather},
    {"MPI_Bcast", Operation::kBroadcast},
    {"MPI_Reduce", Operation::kReduce},
    {"MPI_Alltoall", Operation::kAllToAll},
    {"MPI_Gather", Operation::kGather},
    {"MPI_Scatter", Operation::kScatter},
    {"MPI_Barrier", Operation::kBarrier},
    {"MPI_Allgatherv", Operation::kOther},
    {"MPI_Alltoallv", Operation::kOther},
    {"MPI_Gatherv", Operation::kOther},
    {"MPI_Scatterv", Operation::kOther},
    {"MPI_Reduce_scatter", Operation::kOther},
    {"MPI_Scan", Operation::kOther},
    {"MPI_Exscan", Operation::kOther},
});

const KnownCall* find_call(std::string_view name) {
  const auto found =
      std::find_if(kCalls.begin(), kCalls.end(), [&](const KnownCall& call) { return call.name == name; });
  return found == kCalls.end() ? nullptr : &*found;
}

std::string_view domain_of(const Session& session, const model::Range& range) {
  return range.domain < session.domains.size() ? session.strings.view(session.domains[range.domain].name)
                                               : std::string_view{};
}

/// The numbers of a call's payload that matter, by the names that NCCL and our MPI layer give them.
struct Fields {
  std::uint64_t communicator = 0;
  double bytes = kUnknown;
  std::uint32_t ranks = 0;
};
Fields fields_of(const Session& session, std::span<const model::PayloadField> fields) {
  Fields out;
  for (const model::PayloadField& field : fields) {
    const std::string_view name = session.strings.view(field.name);
    if (name == "NCCL communicator ID" || name == "MPI communicator ID") out.communicator = field.bits;
    if (name == "Message size [bytes]") out.bytes = static_cast<double>(field.bits);
    if (name == "No. of ranks") out.ranks = static_cast<std::uint32_t>(field.bits);
  }
  return out;
}

/// Gives calls of NCCL the time of their kernels: those that the same thread launched after them and before the next
/// call. A group (ncclGroupStart ... End) launches for several calls at once.
class CallKernels {
 public:
  CallKernels(const Session& session, std::vector<CollectiveCall>& calls) : session_(session), calls_(calls) {}

  void run() {
    struct Event {
      std::uint32_t thread;
      std::int64_t at_ns;
      std::uint32_t call, kernel;
    };
    std::vector<Event> events;
    for (std::uint32_t c = 0; c < calls_.size(); ++c) {
      const model::Range& range = session_.ranges[calls_[c].range];
      if (domain_of(session_, range) == "NCCL") events.push_back({range.thread, range.start_ns, c, kNone});
    }
    if (events.empty()) return;
    std::vector<char> nccl(session_.kernel_names.size());
    for (std::size_t k = 0; k < nccl.size(); ++k)
      nccl[k] = session_.strings.view(session_.kernel_names[k].short_name).starts_with("nccl");
    for (std::uint32_t k = 0; k < session_.kernels.size(); ++k) {
      const model::Kernel& kernel = session_.kernels[k];
      if (kernel.launch >= session_.launches.size() || kernel.name >= nccl.size() || nccl[kernel.name] == 0) continue;
      const model::Launch& launch = session_.launches[kernel.launch];
      events.push_back({launch.thread, launch.start_ns, kNone, k});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.thread, a.at_ns, a.call, a.kernel) < std::tie(b.thread, b.at_ns, b.call, b.kernel);
    });
    std::vector<std::uint32_t> waiting, kernels;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool other = i > 0 && events[i].thread != events[i - 1].thread;
      if (other || (events[i].call != kNone && !kernels.empty())) settle(waiting, kernels);
      if (other) waiting.clear();
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
        call.start_ns = session_.kernels[kernels[first]].start_ns;
        call.end_ns = session_.kernels[kernels[first]].end_ns;
        for (std::size_t k = first + 1; k < last; ++k) {
          call.start_ns = std::min(call.start_ns, session_.kernels[kernels[k]].start_ns);
          call.end_ns = std::max(call.end_ns, session_.kernels[kernels[k]].end_ns);
        }
      };
      if (kernels.size() == waiting.size()) {
        for (std::size_t i = 0; i < waiting.size(); ++i) take(calls_[waiting[i]], i, i + 1);
      } else {  // one kernel for several calls: they are one call of all their bytes
        CollectiveCall& whole = calls_[waiting.front()];
        take(whole, 0, kernels.size());
        for (std::size_t i = 1; i < waiting.size(); ++i) {
          CollectiveCall& part = calls_[waiting[i]];
          if (part.communicator != whole.communicator || part.operation != whole.operation) {
            whole.bytes = kUnknown;
          } else {
            whole.bytes += part.bytes;
          }
          part.range = kNone;
        }
      }
    }
    if (!kernels.empty()) waiting.clear();
    kernels.clear();
  }

  const Session& session_;
  std::vector<CollectiveCall>& calls_;
};

double length_of(const CollectiveCall& call) {
  return static_cast<double>(length_ns(call.start_ns, call.end_ns));
}

}  // namespace

bool is_communication(const Session& session, const model::Range& range) {
  const std::string_view domain = domain_of(session, range);
  return domain == "NCCL" || domain == "MPI";
}

bool bandwidth_of(Operation operation, double bytes, double ranks, double ns, Bandwidth& out) {
  if (!(bytes > 0) || ranks < 2 || !(ns > 0)) return false;
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
    case Operation::kBarrier:
    case Operation::kOther: return false;
  }
  out.algorithm = all / ns * 1e9;
  out.bus = out.algorithm * factor;
  return true;
}

Operation operation_of(std::string_view name) {
  const KnownCall* call = find_call(name);
  return call == nullptr ? Operation::kOther : call->operation;
}

CollectiveCalls find_collectives(const Session& session) {
  CollectiveCalls out;
  std::map<std::pair<bool, std::uint64_t>, std::uint32_t> known;
  const auto communicator = [&](bool nccl, std::uint64_t id) {
    const auto [at, added] = known.try_emplace({nccl, id}, static_cast<std::uint32_t>(out.communicators.size()));
    if (added) out.communicators.push_back({nccl, id, 0});
    return at->second;
  };
  std::size_t field = 0;
  const auto& fields = session.payload_fields;
  for (std::uint32_t r = 0; r < session.ranges.size(); ++r) {
    const std::size_t first = field;
    while (field < fields.size() && fields[field].range == r) ++field;
    const model::Range& range = session.ranges[r];
    if (!is_communication(session, range) || range.end_ns == kOpen || range.thread >= session.threads.size()) continue;
    const std::uint32_t process = session.threads[range.thread].process;
    if (process >= session.processes.size() || session.processes[process].rank == kNone) continue;
    const bool nccl = domain_of(session, range) == "NCCL";
    const Fields said = fields_of(session, std::span(fields).subspan(first, field - first));
    if (said.ranks > 0 && said.communicator != 0)
      out.communicators[communicator(nccl, said.communicator)].ranks = said.ranks;
    const KnownCall* call = find_call(session.strings.view(range.name));
    if (call == nullptr) continue;
    out.calls.push_back({range.start_ns, range.end_ns, r, process, communicator(nccl, said.communicator), range.name,
                         call->operation, said.bytes});
  }
  if (out.calls.empty()) return out;
  CallKernels(session, out.calls).run();

  // By communicator, rank and time; then the n-th beside the n-th.
  const auto rank_of = [&](const CollectiveCall& call) { return session.processes[call.process].rank; };
  std::sort(out.calls.begin(), out.calls.end(), [&](const CollectiveCall& a, const CollectiveCall& b) {
    return std::tuple(a.communicator, rank_of(a), session.ranges[a.range].start_ns, a.range) <
           std::tuple(b.communicator, rank_of(b), session.ranges[b.range].start_ns, b.range);
  });
  for (std::size_t i = 0; i < out.calls.size();) {
    struct Run {
      std::size_t first, last;
    };
    std::vector<Run> ranks;
    std::size_t end = i;
    while (end < out.calls.size() && out.calls[end].communicator == out.calls[i].communicator) {
      std::size_t last = end;
      while (last < out.calls.size() && out.calls[last].communicator == out.calls[i].communicator &&
             rank_of(out.calls[last]) == rank_of(out.calls[end]))
        ++last;
      ranks.push_back({end, last});
      end = last;
    }
    i = end;
    if (ranks.size() < 2) continue;
    std::size_t fewest = SIZE_MAX, most = 0;
    for (const Run& run : ranks) {
      fewest = std::min(fewest, run.last - run.first);
      most = std::max(most, run.last - run.first);
    }
    std::size_t n = 0;
    for (; n < fewest; ++n) {
      const CollectiveCall& one = out.calls[ranks.front().first + n];
      const bool same = std::all_of(ranks.begin(), ranks.end(), [&](const Run& run) {
        const CollectiveCall& other = out.calls[run.first + n];
        return other.operation == one.operation && session.strings.view(other.name) == session.strings.view(one.name);
      });
      if (!same) break;
      JoinedCall joined;
      for (const Run& run : ranks) joined.calls.push_back(static_cast<std::uint32_t>(run.first + n));
      out.joined.push_back(std::move(joined));
    }
    out.unjoined += most - n;
  }
  return out;
}

namespace {

class Around {
 public:
  Around(const Session& session, const Tree& tree) : session_(session), tree_(tree) {}

  [[nodiscard]] std::uint32_t node_of(const model::Range& call) const {
    if (call.thread + 1 >= tree_.thread_begin.size()) return kNone;
    std::size_t first = tree_.thread_begin[call.thread], last = tree_.thread_begin[call.thread + 1];
    const auto begins_after = [&](std::int64_t at, std::uint32_t range) {
      return range != kNone && at < session_.ranges[range].start_ns;
    };
    auto at = static_cast<std::size_t>(std::upper_bound(tree_.range_of.begin() + static_cast<std::ptrdiff_t>(first),
                                                        tree_.range_of.begin() + static_cast<std::ptrdiff_t>(last),
                                                        call.start_ns, begins_after) -
                                       tree_.range_of.begin());
    constexpr std::size_t kLooks = 64;  // a group of calls stands between the call and the program's range
    for (std::size_t looks = 0; at-- > first && looks < kLooks; ++looks) {
      const std::uint32_t range = tree_.range_of[at];
      if (range == kNone || is_communication(session_, session_.ranges[range])) continue;
      for (auto o = static_cast<std::uint32_t>(at); o != kNone; o = tree_.parent[o]) {
        const std::uint32_t around = tree_.range_of[o];
        if (around != kNone && session_.ranges[around].end_ns >= call.end_ns) return tree_.cells[tree_.cell[o]].node;
      }
      return kNone;
    }
    return kNone;
  }

 private:
  const Session& session_;
  const Tree& tree_;
};

}  // namespace

std::uint32_t node_around(const Session& session, const Tree& tree, const model::Range& call) {
  return Around(session, tree).node_of(call);
}

void add_collectives(const Session& session, const Tree& tree, const CollectiveCalls& found, model::Report& report) {
  if (found.unjoined > 0)
    report.losses.push_back({"collectives_unjoined", found.unjoined,
                             "collective calls of communicators whose ranks do not make the same calls in one order"});
  struct Sums {
    model::Collective row;
    std::map<std::uint32_t, model::CollectiveOfRank> ranks;
    Operation operation = Operation::kOther;
    std::uint32_t of_communicator = 0;
  };
  using Key = std::tuple<std::uint32_t, std::string_view, double, std::uint32_t>;
  std::map<Key, Sums> rows;
  const Around around(session, tree);
  for (const JoinedCall& joined : found.joined) {
    const CollectiveCall& one = found.calls[joined.calls.front()];
    const Communicator& communicator = found.communicators[one.communicator];
    double least = length_of(one), most = least, bytes = one.bytes;
    std::size_t last = 0;
    for (std::size_t i = 1; i < joined.calls.size(); ++i) {
      const CollectiveCall& call = found.calls[joined.calls[i]];
      const double length = length_of(call);
      if (length < least) least = length, last = i;
      most = std::max(most, length);
      if (call.bytes != bytes) bytes = std::max(bytes, call.bytes);  // a rank may send less in a gather
    }
    const std::string_view name = session.strings.view(one.name);
    const std::uint32_t node = around.node_of(session.ranges[one.range]);
    Sums& sums = rows[Key(one.communicator, name, std::isnan(bytes) ? -1 : bytes, node)];
    if (sums.row.calls == 0) {
      sums.row.library = communicator.nccl ? "NCCL" : "MPI";
      if (communicator.id != 0) sums.row.communicator = fmt::format("0x{:x}", communicator.id);
      sums.row.operation = std::string(name.substr(communicator.nccl ? 4 : 0));
      sums.row.bytes = bytes;
      sums.row.ranks = std::max<std::int64_t>(communicator.ranks, static_cast<std::int64_t>(joined.calls.size()));
      sums.operation = one.operation;
      if (node != kNone)
        for (const auto part : path_of(tree, session, node)) sums.row.path.emplace_back(part);
    }
    ++sums.row.calls;
    sums.row.transfer_ns += least;
    double waited = 0,
           next = most;  // the shortest but one: without the last rank the call would have begun so much earlier
    for (std::size_t i = 0; i < joined.calls.size(); ++i) {
      const CollectiveCall& call = found.calls[joined.calls[i]];
      const double length = length_of(call);
      model::CollectiveOfRank& rank = sums.ranks[session.processes[call.process].rank];
      rank.wait_ns += length - least;
      rank.late_ns += most - length;
      waited += length - least;
      if (i != last) next = std::min(next, length);
    }
    model::CollectiveOfRank& late = sums.ranks[session.processes[found.calls[joined.calls[last]].process].rank];
    ++late.last;
    const bool first =
        &joined == &found.joined.front() || found.calls[(&joined - 1)->calls.front()].communicator != one.communicator;
    if (!first) {  // the first call sets up connections: who comes last there holds nobody up in what follows
      late.holds_up_ns += next - least;
      late.costs_ns += waited;
    }
    sums.row.wait_ns += waited;
  }
  for (auto& [key, sums] : rows) {
    Bandwidth rate;
    if (bandwidth_of(sums.operation, sums.row.bytes, static_cast<double>(sums.row.ranks),
                     sums.row.transfer_ns / static_cast<double>(sums.row.calls), rate)) {
      sums.row.algorithm_bytes_per_s = rate.algorithm;
      sums.row.bus_bytes_per_s = rate.bus;
    }
    for (auto& [rank, of_rank] : sums.ranks) {
      of_rank.rank = rank;
      sums.row.by_rank.push_back(of_rank);
    }
    report.collectives.push_back(std::move(sums.row));
  }
  std::stable_sort(report.collectives.begin(), report.collectives.end(),
                   [](const auto& a, const auto& b) { return a.wait_ns > b.wait_ns; });
  if (report.collectives.size() > kMostCollectives) {
    report.notes.push_back(fmt::format("{} more kinds of collective calls, which waited less, are not listed",
                                       report.collectives.size() - kMostCollectives));
    report.collectives.resize(kMostCollectives);
  }
}

}  // namespace rangescope::analyze
