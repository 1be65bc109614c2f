#include "analyze/rank_work.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "analyze/collectives.hpp"
#include "analyze/stretches.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr std::int64_t kFewestCalls = 3;  // of a kernel on a rank: one says nothing
constexpr double kCountsAsRange = 0.02;   // of the compared time: shorter ranges have no vote
constexpr double kSlowerRange = 1.05;

struct OfRank {
  std::uint32_t rank = 0;  ///< index in Report::ranks
  double value = 0;
};

/// The median of all values but the i-th of them; `sorted` by value. Of two the other one.
double median_of_others(const std::vector<OfRank>& sorted, std::size_t i) {
  const std::size_t n = sorted.size() - 1;
  const auto at = [&](std::size_t k) { return sorted[k < i ? k : k + 1].value; };
  return n % 2 == 1 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) / 2;
}

class Works {
 public:
  Works(const Session& session, model::Report& report) : session_(session), report_(report) {
    std::map<std::uint32_t, std::uint32_t> place;
    for (std::uint32_t i = 0; i < report.ranks.size(); ++i) place[report.ranks[i].rank] = i;
    for (const model::Process& process : session.processes)
      rank_of_.push_back(process.rank == kNone ? kNone : place[process.rank]);
  }

  void kernels() {
    // Sessions that were joined hold equal names and shapes several times.
    std::vector<char> nccl;
    for (const model::KernelName& name : session_.kernel_names)
      nccl.push_back(session_.strings.view(name.short_name).starts_with("nccl") ? 1 : 0);
    using Content = std::array<std::uint32_t, 6>;
    std::map<Content, std::uint32_t> shapes;
    std::vector<std::uint32_t> shape_of;
    std::vector<double> threads;
    for (const model::KernelShape& shape : session_.kernel_shapes) {
      const Content content{shape.grid[0],  shape.grid[1],  shape.grid[2],
                            shape.block[0], shape.block[1], shape.block[2]};
      shape_of.push_back(shapes.try_emplace(content, static_cast<std::uint32_t>(shapes.size())).first->second);
      double product = 1;
      for (const std::uint32_t n : content) product *= std::max(1u, n);
      threads.push_back(product);
    }
    struct Sum {
      std::int64_t calls = 0;
      double ns = 0;
    };
    std::vector<std::unordered_map<std::uint64_t, Sum>> sums(report_.ranks.size());
    spans_.assign(session_.processes.size(), {model::kOpen, 0});
    // Kernels share the GPU with those of NCCL, which take part of it while they wait: they say nothing of its pace.
    std::vector<Stretches> shared(session_.processes.size());
    for (const model::Kernel& kernel : session_.kernels)
      if (rank_of_stream(kernel.stream) != kNone && kernel.name < nccl.size() && nccl[kernel.name] != 0)
        shared[session_.streams[kernel.stream].process].add(kernel.start_ns, kernel.end_ns);
    for (Stretches& each : shared) each.finish();
    for (const model::Kernel& kernel : session_.kernels) {
      const std::uint32_t rank = rank_of_stream(kernel.stream);
      if (rank == kNone || kernel.name >= nccl.size()) continue;
      auto& [first, last] = spans_[session_.streams[kernel.stream].process];
      first = std::min(first, kernel.start_ns);
      last = std::max(last, kernel.end_ns);
      if (nccl[kernel.name] != 0) continue;
      const auto ns = static_cast<double>(length_ns(kernel.start_ns, kernel.end_ns));
      model::RankWork& work = report_.ranks[rank].work;
      ++work.kernels;
      work.kernel_ns += ns;
      if (kernel.shape >= shape_of.size()) continue;
      work.kernel_threads += threads[kernel.shape];
      if (shared[session_.streams[kernel.stream].process].within(kernel.start_ns, kernel.end_ns) > 0) continue;
      const model::KernelName& name = session_.kernel_names[kernel.name];
      Sum& sum = sums[rank][std::uint64_t{name.demangled != 0 ? name.demangled : name.short_name} << 32 |
                            shape_of[kernel.shape]];
      ++sum.calls;
      sum.ns += ns;
    }
    for (const model::Copy& copy : session_.copies)
      if (const std::uint32_t rank = rank_of_stream(copy.stream); rank != kNone)
        report_.ranks[rank].work.copied_bytes += static_cast<double>(copy.bytes);

    std::map<std::uint64_t, std::vector<OfRank>> means;
    for (std::uint32_t rank = 0; rank < sums.size(); ++rank)
      for (const auto& [key, sum] : sums[rank])
        if (sum.calls >= kFewestCalls) means[key].push_back({rank, sum.ns / static_cast<double>(sum.calls)});
    std::vector<double> usual(report_.ranks.size());
    for (auto& [key, list] : means) {
      if (list.size() < 2 || list.size() * 2 <= report_.ranks.size()) continue;
      sort(list);
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Sum& sum = sums[list[i].rank][key];
        usual[list[i].rank] += static_cast<double>(sum.calls) * median_of_others(list, i);
        report_.ranks[list[i].rank].work.paced_kernel_ns += sum.ns;
      }
    }
    for (std::size_t rank = 0; rank < usual.size(); ++rank)
      if (usual[rank] > 0)
        report_.ranks[rank].work.kernel_pace = report_.ranks[rank].work.paced_kernel_ns / usual[rank];
  }

  void ranges(const Tree& tree, const std::vector<RegionKey>& keys, const Buckets& by_cell) {
    std::vector<Stretches> waits(session_.threads.size());
    for (const model::Range& range : session_.ranges)
      if (range.end_ns != kOpen && range.thread < waits.size() && is_communication(session_, range))
        waits[range.thread].add(range.start_ns, range.end_ns);
    for (const model::Launch& call : session_.launches)
      if (call.kind == model::LaunchKind::kSynchronize && call.thread < waits.size() && call.end_ns != kOpen)
        waits[call.thread].add(call.start_ns, call.end_ns);
    for (Stretches& each : waits) each.finish();
    std::vector<double> own(tree.range_of.size());
    for (std::uint32_t o = 0; o < tree.range_of.size(); ++o) {
      const std::uint32_t at = tree.range_of[o];
      if (at == kNone || session_.ranges[at].end_ns == kOpen) continue;
      const model::Range& range = session_.ranges[at];
      const auto ns = static_cast<double>(length_ns(range.start_ns, range.end_ns) -
                                          waits[range.thread].within(range.start_ns, range.end_ns));
      own[o] += ns;
      if (tree.parent[o] != kNone) own[tree.parent[o]] -= ns;
    }
    std::vector<std::vector<OfRank>> compared;
    for (const RegionKey& key : keys) {
      if (key.process != kNone || key.thread != kNone) continue;
      if (const Node& node = tree.nodes[key.node]; node.kind != model::RangeKind::kPushPop) continue;
      std::map<std::uint32_t, std::pair<std::size_t, double>> of;
      bool library = false;
      for (std::size_t i = key.first; i < key.last; ++i) {
        const std::uint32_t cell = tree.node_cells[i];
        const std::uint32_t rank = rank_of_[tree.cells[cell].process];
        if (rank == kNone) continue;
        for (const std::uint32_t o : by_cell.of(cell)) {
          if (tree.range_of[o] == kNone) continue;
          library |= is_communication(session_, session_.ranges[tree.range_of[o]]);
          auto& [count, ns] = of[rank];
          ++count;
          ns += own[o];
        }
      }
      if (library || of.size() != report_.ranks.size()) continue;
      std::vector<OfRank> list;
      for (const auto& [rank, sum] : of)
        if (sum.first == of.begin()->second.first) list.push_back({rank, std::max(0.0, sum.second)});
      if (list.size() == of.size()) compared.push_back(std::move(list));
    }
    double whole = 0;
    std::vector<double> usual(report_.ranks.size());
    for (auto& list : compared) {
      sort(list);
      whole += list[list.size() / 2].value;
    }
    for (const auto& list : compared) {
      const bool votes = list[list.size() / 2].value >= kCountsAsRange * whole;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const double others = median_of_others(list, i);
        model::RankWork& work = report_.ranks[list[i].rank].work;
        usual[list[i].rank] += others;
        work.paced_cpu_ns += list[i].value;
        work.cpu_ranges += votes ? 1 : 0;
        work.slower_ranges += votes && list[i].value > kSlowerRange * others ? 1 : 0;
      }
    }
    for (std::size_t rank = 0; rank < usual.size(); ++rank)
      if (usual[rank] > 0) report_.ranks[rank].work.cpu_pace = report_.ranks[rank].work.paced_cpu_ns / usual[rank];
  }

  /// Clocks of the GPU while kernels of the rank's process ran, as far as they were sampled, by whichever rank.
  void clocks() {
    struct Mean {
      double sum = 0, weight = 0;
    };
    std::vector<std::array<Mean, 2>> means(report_.ranks.size());
    std::set<std::pair<std::uint32_t, std::string_view>> uses;  // process, GPU
    for (const model::Stream& stream : session_.streams)
      if (stream.process < rank_of_.size() && rank_of_[stream.process] != kNone && stream.process < spans_.size() &&
          stream.device < session_.devices.size())
        uses.emplace(stream.process, session_.strings.view(session_.devices[stream.device].uuid));
    for (const model::SampleStream& stream : session_.samples) {
      const model::Device* device =
          stream.device < session_.devices.size() ? &session_.devices[stream.device] : nullptr;
      const std::string_view sampled = device != nullptr ? session_.strings.view(device->uuid) : stream.uuid;
      for (const auto& [process, uuid] : uses) {
        if (uuid != sampled || (uuid.empty() && device != nullptr && device->process != process)) continue;
        const auto [first, last] = spans_[process];
        for (const model::SampledMetric& metric : stream.metrics) {
          const bool clock = metric.name == "sm_clock";
          if (!clock && metric.name != "clock_limited") continue;
          Mean& mean = means[rank_of_[process]][clock ? 0 : 1];
          for (std::size_t i = 0; i < metric.values.size() && i < stream.start_ns.size(); ++i) {
            const std::int64_t at = stream.start_ns[i] + stream.offset_ns, until = stream.end_ns[i] + stream.offset_ns;
            if (std::isnan(metric.values[i]) || until <= first || at >= last) continue;
            mean.sum += static_cast<double>(metric.values[i]) * static_cast<double>(until - at);
            mean.weight += static_cast<double>(until - at);
          }
        }
      }
    }
    for (std::size_t rank = 0; rank < means.size(); ++rank) {
      if (means[rank][0].weight > 0) report_.ranks[rank].work.sm_clock_hz = means[rank][0].sum / means[rank][0].weight;
      if (means[rank][1].weight > 0)
        report_.ranks[rank].work.clock_limited = means[rank][1].sum / means[rank][1].weight;
    }
  }

  void tokens() {
    const auto has = [](const model::Region& region) {
      return region.utilization && region.utilization->useful_tokens;
    };
    for (const model::Region& region : report_.regions) {
      if (!region.process || region.thread || *region.process >= rank_of_.size() || !has(region)) continue;
      bool counted = false;
      for (std::uint32_t at = region.parent; at != kNone && !counted; at = report_.regions[at].parent)
        counted = has(report_.regions[at]);
      if (counted) continue;
      if (const std::uint32_t rank = rank_of_[*region.process]; rank != kNone)
        report_.ranks[rank].work.tokens += *region.utilization->useful_tokens * static_cast<double>(region.occurrences);
    }
  }

  void cards() {
    std::vector<std::set<model::StringId>> uuids(report_.ranks.size());
    for (const model::Stream& stream : session_.streams)
      if (const std::uint32_t rank = stream.process < rank_of_.size() ? rank_of_[stream.process] : kNone;
          rank != kNone && stream.device < session_.devices.size())
        uuids[rank].insert(session_.devices[stream.device].uuid);
    for (std::size_t rank = 0; rank < uuids.size(); ++rank)
      if (uuids[rank].size() == 1) report_.ranks[rank].card = std::string(session_.strings.view(*uuids[rank].begin()));
  }

 private:
  [[nodiscard]] std::uint32_t rank_of_stream(std::uint32_t stream) const {
    if (stream >= session_.streams.size() || session_.streams[stream].process >= rank_of_.size()) return kNone;
    return rank_of_[session_.streams[stream].process];
  }
  static void sort(std::vector<OfRank>& list) {
    std::sort(list.begin(), list.end(), [](const OfRank& a, const OfRank& b) {
      return a.value != b.value ? a.value < b.value : a.rank < b.rank;
    });
  }

  const Session& session_;
  model::Report& report_;
  std::vector<std::uint32_t> rank_of_;                        ///< index in Report::ranks, by process
  std::vector<std::pair<std::int64_t, std::int64_t>> spans_;  ///< of a process's kernels
};

}  // namespace

void add_rank_work(const Session& session, const Tree& tree, const std::vector<RegionKey>& keys, const Buckets& by_cell,
                   model::Report& report) {
  for (model::Rank& rank : report.ranks) rank.work.known = true;
  Works works(session, report);
  works.kernels();
  works.ranges(tree, keys, by_cell);
  works.clocks();
  works.tokens();
  works.cards();
}

}  // namespace rangescope::analyze
