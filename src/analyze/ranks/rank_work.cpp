#include "analyze/ranks/rank_work.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "analyze/ranks/collectives.hpp"
#include "analyze/ranks/ranks.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/groups.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr std::int64_t kFewestCalls = 3;  // of a kernel on a rank: one says nothing
constexpr double kCountsAsRange = 0.02;   // of the compared time: shorter ranges have no vote
constexpr double kSlowerRange = 1.05;

/// The median of all values but one of them, in O(1): it lies in the middle of all.
class MediansOfOthers {
 public:
  explicit MediansOfOthers(std::vector<double> values) : odd_(values.size() % 2 == 1) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    middle_ = *middle;
    below_ = *std::max_element(values.begin(), middle);
    if (odd_) above_ = *std::min_element(middle + 1, values.end());
  }
  [[nodiscard]] double median() const { return middle_; }  ///< of all, the larger one of two
  /// `value`: one of them. Of two the mean.
  [[nodiscard]] double without(double value) const {
    if (!odd_) return value < middle_ ? middle_ : below_;
    return ((value < middle_ ? middle_ : below_) + (value > middle_ ? middle_ : above_)) / 2;
  }

 private:
  bool odd_;
  double below_ = 0, middle_ = 0, above_ = 0;
};

/// Index in Report::ranks of each process, kNone for none.
std::vector<std::uint32_t> places_of(const Session& session, const model::Report& report) {
  std::map<std::uint32_t, std::uint32_t> place;
  for (std::uint32_t i = 0; i < report.ranks.size(); ++i) place[report.ranks[i].rank] = i;
  std::vector<std::uint32_t> out;
  for (const model::Process& process : session.processes)
    out.push_back(process.rank == kNone ? kNone : place[process.rank]);
  return out;
}

void add_ranges(const Session& session, const Tree& tree, const std::vector<RegionKey>& keys, const Buckets& by_cell,
                model::Report& report) {
  const std::vector<std::uint32_t> rank_of = places_of(session, report);
  const std::vector<double> own = own_times(session, tree, OwnTime::kWithoutGpuWaits);
  CpuPaces paces(report.ranks.size());
  for (const RegionKey& key : keys) {
    if (key.process != kNone || key.thread != kNone) continue;
    const Node& node = tree.nodes[key.node];
    if (node.kind != model::RangeKind::kPushPop ||
        is_communication(session.strings.view(session.domains[node.domain].name)))
      continue;
    std::vector<std::size_t> count(report.ranks.size());
    std::vector<double> of_rank(report.ranks.size());
    for (std::size_t i = key.first; i < key.last; ++i) {
      const std::uint32_t cell = tree.node_cells[i];
      const std::uint32_t rank = rank_of[tree.cells[cell].process];
      if (rank == kNone) continue;
      for (const std::uint32_t o : by_cell.of(cell)) {
        if (tree.range_of[o] == kNone || session.ranges[tree.range_of[o]].end_ns == kOpen) continue;
        ++count[rank];
        of_rank[rank] += own[o];
      }
    }
    if (count[0] > 0 && std::all_of(count.begin(), count.end(), [&](std::size_t n) { return n == count[0]; }))
      paces.add(of_rank);
  }
  paces.finish(report);
}

void add_tokens(const Session& session, model::Report& report) {
  const std::vector<std::uint32_t> rank_of = places_of(session, report);
  const auto has = [](const model::Region& region) { return region.utilization && region.utilization->useful_tokens; };
  for (const model::Region& region : report.regions) {
    if (!region.process || region.thread || *region.process >= rank_of.size() || !has(region)) continue;
    bool counted = false;
    for (std::uint32_t at = region.parent; at != kNone && !counted; at = report.regions[at].parent)
      counted = has(report.regions[at]);
    if (counted) continue;
    if (const std::uint32_t rank = rank_of[*region.process]; rank != kNone)
      report.ranks[rank].work.tokens += *region.utilization->useful_tokens * static_cast<double>(region.occurrences);
  }
}

}  // namespace

Works works_of(const Session& session, const model::Report& report) {
  Works out;
  out.ranks.resize(report.ranks.size());
  const std::vector<std::uint32_t> rank_of = places_of(session, report);
  const auto rank_of_stream = [&](std::uint32_t stream) {
    const std::uint32_t process = stream < session.streams.size() ? session.streams[stream].process : kNone;
    return process < rank_of.size() ? rank_of[process] : kNone;
  };
  // Sessions that were joined hold equal names and shapes several times.
  std::vector<char> nccl;
  for (const model::KernelName& name : session.kernel_names)
    nccl.push_back(session.strings.view(name.short_name).starts_with("nccl") ? 1 : 0);
  std::map<KernelSize, std::uint32_t> sizes;
  std::vector<std::uint32_t> size_of;
  std::vector<double> threads;
  for (const model::KernelShape& shape : session.kernel_shapes) {
    const KernelSize size{shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1], shape.block[2]};
    const auto [at, added] = sizes.try_emplace(size, static_cast<std::uint32_t>(sizes.size()));
    if (added) out.sizes.push_back(size);
    size_of.push_back(at->second);
    double product = 1;
    for (const std::uint32_t n : size) product *= std::max(1u, n);
    threads.push_back(product);
  }
  struct Sum {
    std::int64_t calls = 0;
    double ns = 0;
  };
  std::vector<std::unordered_map<std::uint64_t, Sum>> sums(out.ranks.size());
  std::vector<std::pair<std::int64_t, std::int64_t>> spans(session.processes.size(), {model::kOpen, 0});
  // Kernels share the GPU with those of NCCL, which take part of it while they wait: they say nothing of its pace.
  std::vector<Stretches> shared(session.processes.size());
  for (const model::Kernel& kernel : session.kernels)
    if (rank_of_stream(kernel.stream) != kNone && kernel.name < nccl.size() && nccl[kernel.name] != 0)
      shared[session.streams[kernel.stream].process].add(kernel.start_ns, kernel.end_ns);
  for (Stretches& each : shared) each.finish();
  for (const model::Kernel& kernel : session.kernels) {
    const std::uint32_t rank = rank_of_stream(kernel.stream);
    if (rank == kNone || kernel.name >= nccl.size()) continue;
    auto& [first, last] = spans[session.streams[kernel.stream].process];
    first = std::min(first, kernel.start_ns);
    last = std::max(last, kernel.end_ns);
    if (nccl[kernel.name] != 0) continue;
    const auto ns = static_cast<double>(length_ns(kernel.start_ns, kernel.end_ns));
    model::RankWork& work = out.ranks[rank].work;
    ++work.kernels;
    work.kernel_ns += ns;
    if (kernel.shape >= size_of.size()) continue;
    work.kernel_threads += threads[kernel.shape];
    if (shared[session.streams[kernel.stream].process].within(kernel.start_ns, kernel.end_ns) > 0) continue;
    Sum& sum = sums[rank][std::uint64_t{shown_name(session.kernel_names[kernel.name])} << 32 | size_of[kernel.shape]];
    ++sum.calls;
    sum.ns += ns;
  }
  for (std::size_t rank = 0; rank < sums.size(); ++rank)
    for (const auto& [same, sum] : sums[rank])
      if (sum.calls >= kFewestCalls) out.ranks[rank].kernels.push_back({same, sum.calls, sum.ns});
  for (const model::Copy& copy : session.copies)
    if (const std::uint32_t rank = rank_of_stream(copy.stream); rank != kNone)
      out.ranks[rank].work.copied_bytes += static_cast<double>(copy.bytes);

  std::set<std::pair<std::uint32_t, std::string_view>> uses;  // process, GPU
  for (std::uint32_t s = 0; s < session.streams.size(); ++s)
    if (rank_of_stream(s) != kNone && session.streams[s].device < session.devices.size())
      uses.emplace(session.streams[s].process, session.strings.view(session.devices[session.streams[s].device].uuid));
  for (const auto& [process, uuid] : uses)
    out.ranks[rank_of[process]].gpus.push_back(
        {process, std::string(uuid), spans[process].first, spans[process].second});
  for (const model::SampleStream& stream : session.samples) {
    const model::Device* device = stream.device < session.devices.size() ? &session.devices[stream.device] : nullptr;
    for (const model::SampledMetric& metric : stream.metrics) {
      if (metric.name != "sm_clock" && metric.name != "clock_limited") continue;
      SampledClock clock;
      clock.uuid = device != nullptr ? session.strings.view(device->uuid) : stream.uuid;
      if (device != nullptr) clock.process = device->process;
      clock.limited = metric.name == "clock_limited";
      for (std::size_t i = 0; i < metric.values.size() && i < stream.start_ns.size(); ++i) {
        const std::int64_t at = stream.start_ns[i] + stream.offset_ns, until = stream.end_ns[i] + stream.offset_ns;
        if (!std::isnan(metric.values[i]))
          clock.samples.push_back({at, until, static_cast<double>(until - at), static_cast<double>(metric.values[i])});
      }
      if (!clock.samples.empty()) out.clocks.push_back(std::move(clock));
    }
  }
  return out;
}

void judge_works(const Works& works, model::Report& report) {
  std::map<std::uint64_t, std::vector<std::pair<std::uint32_t, const WorkOfRank::OfKernel*>>> kernels;
  for (std::uint32_t rank = 0; rank < works.ranks.size(); ++rank) {
    const WorkOfRank& of = works.ranks[rank];
    report.ranks[rank].work = of.work;
    report.ranks[rank].work.known = true;
    std::set<std::string_view> cards;
    for (const WorkOfRank::Gpu& gpu : of.gpus) cards.insert(gpu.uuid);
    if (cards.size() == 1) report.ranks[rank].card = *cards.begin();
    for (const WorkOfRank::OfKernel& kernel : of.kernels) kernels[kernel.same].emplace_back(rank, &kernel);
  }
  std::vector<double> usual(report.ranks.size());
  for (const auto& [same, list] : kernels) {
    if (list.size() < 2 || list.size() * 2 <= report.ranks.size()) continue;
    const auto mean = [](const WorkOfRank::OfKernel& of) { return of.ns / static_cast<double>(of.calls); };
    std::vector<double> means;
    for (const auto& [rank, of] : list) means.push_back(mean(*of));
    const MediansOfOthers medians(std::move(means));
    for (const auto& [rank, of] : list) {
      usual[rank] += static_cast<double>(of->calls) * medians.without(mean(*of));
      report.ranks[rank].work.paced_kernel_ns += of->ns;
    }
  }
  for (std::size_t rank = 0; rank < usual.size(); ++rank) {
    model::RankWork& work = report.ranks[rank].work;
    if (usual[rank] > 0) work.kernel_pace = work.paced_kernel_ns / usual[rank];
    double sums[2] = {0, 0}, weights[2] = {0, 0};
    for (const SampledClock& clock : works.clocks) {
      for (const WorkOfRank::Gpu& gpu : works.ranks[rank].gpus) {
        if (gpu.uuid != clock.uuid || (gpu.uuid.empty() && clock.process != kNone && clock.process != gpu.process))
          continue;
        for (const SampledClock::Sample& sample : clock.samples) {
          if (sample.end_ns <= gpu.first_ns || sample.start_ns >= gpu.last_ns) continue;
          sums[clock.limited ? 1 : 0] += sample.value * sample.covered_ns;
          weights[clock.limited ? 1 : 0] += sample.covered_ns;
        }
      }
    }
    if (weights[0] > 0) work.sm_clock_hz = sums[0] / weights[0];
    if (weights[1] > 0) work.clock_limited = sums[1] / weights[1];
  }
}

void CpuPaces::add(const std::vector<double>& own) {
  std::vector<double> values;
  for (const double ns : own) values.push_back(std::max(0.0, ns));
  const MediansOfOthers medians(values);
  whole_ += medians.median();
  std::vector<std::uint32_t> slower;
  const bool votes = medians.median() >= kCountsAsRange * whole_;  // of what is known so far: the rest is seen later
  for (std::uint32_t rank = 0; rank < values.size(); ++rank) {
    const double others = medians.without(values[rank]);
    usual_[rank] += others;
    here_[rank] += values[rank];
    if (votes && values[rank] > kSlowerRange * others) slower.push_back(rank);
  }
  if (votes) voting_.push_back({medians.median(), std::move(slower)});
}

void CpuPaces::finish(model::Report& report) const {
  for (std::size_t rank = 0; rank < usual_.size(); ++rank) {
    report.ranks[rank].work.paced_cpu_ns = here_[rank];
    if (usual_[rank] > 0) report.ranks[rank].work.cpu_pace = here_[rank] / usual_[rank];
  }
  for (const auto& [median, slower] : voting_) {
    if (median < kCountsAsRange * whole_) continue;
    for (model::Rank& rank : report.ranks) ++rank.work.cpu_ranges;
    for (const std::uint32_t rank : slower) ++report.ranks[rank].work.slower_ranges;
  }
}

void add_rank_work(const Session& session, const Tree& tree, const std::vector<RegionKey>& keys, const Buckets& by_cell,
                   model::Report& report) {
  judge_works(works_of(session, report), report);
  add_ranges(session, tree, keys, by_cell, report);
  add_tokens(session, report);
}

}  // namespace rangescope::analyze
