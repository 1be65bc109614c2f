#include "analyze/ranks/rank_work.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include "analyze/ranks/collectives.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/groups.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr std::int64_t kFewestCalls = 3;  // of a kernel on a rank: one proves nothing
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
    if (odd_)
      above_ = *std::min_element(middle + 1, values.end());
  }
  [[nodiscard]] double median() const { return middle_; }  ///< of all, the larger one of two
  /// `value`: one of them. Of two the mean.
  [[nodiscard]] double without(double value) const {
    if (!odd_)
      return value < middle_ ? middle_ : below_;
    return ((value < middle_ ? middle_ : below_) + (value > middle_ ? middle_ : above_)) / 2;
  }

 private:
  bool odd_;
  double below_ = 0, middle_ = 0, above_ = 0;
};

/// Index in Report::ranks of each process, kNone for none.
std::vector<std::uint32_t> places_of(const Session& session, const model::Report& report) {
  std::map<std::uint32_t, std::uint32_t> place;
  for (std::uint32_t i = 0; i < report.ranks.size(); ++i)
    place[report.ranks[i].rank] = i;
  std::vector<std::uint32_t> out;
  for (const model::Process& process : session.processes)
    out.push_back(process.rank == kNone ? kNone : place[process.rank]);
  return out;
}

void add_tokens(const Session& session, model::Report& report) {
  const std::vector<std::uint32_t> rank_of = places_of(session, report);
  const auto has = [](const model::Region& region) {
    return region.utilization && region.utilization->useful_tokens;
  };
  for (const model::Region& region : report.regions) {
    if (!region.process || region.thread || *region.process >= rank_of.size() || !has(region))
      continue;
    bool counted = false;
    for (std::uint32_t at = region.parent; at != kNone && !counted; at = report.regions[at].parent)
      counted = has(report.regions[at]);
    if (counted)
      continue;
    if (const std::uint32_t rank = rank_of[*region.process]; rank != kNone)
      report.ranks[rank].work.tokens +=
          *region.utilization->useful_tokens * static_cast<double>(region.occurrences);
  }
}

}  // namespace

Works works_of(const Session& session,
               const model::Report& report,
               const std::function<std::uint32_t(std::string_view)>& number_of) {
  Works out;
  for (const model::Rank& rank : report.ranks)
    out.ranks.emplace_back().rank = rank.rank;
  const std::vector<std::uint32_t> rank_of = places_of(session, report);
  const auto rank_of_stream = [&](std::uint32_t stream) {
    const std::uint32_t process =
        stream < session.streams.size() ? session.streams[stream].process : kNone;
    return process < rank_of.size() ? rank_of[process] : kNone;
  };
  // Sessions that were joined hold equal names and shapes several times.
  const std::vector<char> nccl = nccl_kernels(session);
  using Size = decltype(WorkOfRank::Paced::size);
  std::map<Size, std::uint32_t> sizes;
  std::vector<std::map<Size, std::uint32_t>::const_iterator> size_of;
  std::vector<double> threads;
  for (const model::KernelShape& shape : session.kernel_shapes) {
    const Size size{shape.grid[0],
                    shape.grid[1],
                    shape.grid[2],
                    shape.block[0],
                    shape.block[1],
                    shape.block[2]};
    size_of.push_back(sizes.try_emplace(size, static_cast<std::uint32_t>(sizes.size())).first);
    double product = 1;
    for (const std::uint32_t n : size)
      product *= std::max(1u, n);
    threads.push_back(product);
  }
  std::vector<std::unordered_map<std::uint64_t, WorkOfRank::Paced>> sums(out.ranks.size());
  std::vector<std::pair<std::int64_t, std::int64_t>> spans(session.processes.size(),
                                                           {model::kOpen, 0});
  // Kernels share the GPU with those of NCCL, which take part of it while they wait: they say
  // nothing of its pace.
  std::vector<Stretches> shared(session.processes.size());
  for (const model::Kernel& kernel : session.kernels)
    if (rank_of_stream(kernel.stream) != kNone && kernel.name < nccl.size() &&
        nccl[kernel.name] != 0)
      shared[session.streams[kernel.stream].process].add(kernel.start_ns, kernel.end_ns);
  for (Stretches& each : shared)
    each.finish();
  for (const model::Kernel& kernel : session.kernels) {
    const std::uint32_t rank = rank_of_stream(kernel.stream);
    if (rank == kNone || kernel.name >= nccl.size())
      continue;
    auto& [first, last] = spans[session.streams[kernel.stream].process];
    first = std::min(first, kernel.start_ns);
    last = std::max(last, kernel.end_ns);
    if (nccl[kernel.name] != 0)
      continue;
    const std::int64_t ns = length_ns(kernel.start_ns, kernel.end_ns);
    WorkOfRank& work = out.ranks[rank];
    ++work.kernels;
    work.kernel_ns = plus(work.kernel_ns, ns);
    if (kernel.shape >= size_of.size())
      continue;
    work.kernel_threads += threads[kernel.shape];
    if (shared[session.streams[kernel.stream].process].within(kernel.start_ns, kernel.end_ns) > 0)
      continue;
    const std::uint32_t name = shown_name(session.kernel_names[kernel.name]);
    WorkOfRank::Paced& sum = sums[rank][std::uint64_t{name} << 32 | size_of[kernel.shape]->second];
    sum.size = size_of[kernel.shape]->first;
    ++sum.calls;
    sum.ns = plus(sum.ns, ns);
  }
  for (std::size_t rank = 0; rank < sums.size(); ++rank)
    for (auto& [same, sum] : sums[rank]) {
      if (sum.calls < kFewestCalls)
        continue;
      sum.name = number_of(session.strings.view(static_cast<model::StringId>(same >> 32)));
      out.ranks[rank].paced.push_back(sum);
    }
  for (const model::Copy& copy : session.copies)
    if (const std::uint32_t rank = rank_of_stream(copy.stream); rank != kNone)
      out.ranks[rank].copied_bytes =
          plus(out.ranks[rank].copied_bytes, static_cast<std::int64_t>(copy.bytes));

  std::set<std::pair<std::uint32_t, model::StringId>> uses;  // process, GPU
  for (std::uint32_t s = 0; s < session.streams.size(); ++s)
    if (rank_of_stream(s) != kNone && session.streams[s].device < session.devices.size())
      uses.emplace(session.streams[s].process, session.devices[session.streams[s].device].uuid);
  for (const auto& [process, uuid] : uses)
    out.ranks[rank_of[process]].gpus.push_back({process,
                                                number_of(session.strings.view(uuid)),
                                                spans[process].first,
                                                spans[process].second});
  for (const model::SampleStream& stream : session.samples) {
    const model::Device* device =
        stream.device < session.devices.size() ? &session.devices[stream.device] : nullptr;
    for (const model::SampledMetric& metric : stream.metrics) {
      if (metric.name != "sm_clock" && metric.name != "clock_limited")
        continue;
      SampledClock clock;
      clock.uuid = number_of(device != nullptr ? session.strings.view(device->uuid)
                                               : std::string_view(stream.uuid));
      if (device != nullptr)
        clock.process = device->process;
      clock.limited = metric.name == "clock_limited";
      for (std::size_t i = 0; i < metric.values.size() && i < stream.start_ns.size(); ++i) {
        const std::int64_t at = stream.start_ns[i] + stream.offset_ns,
                           until = stream.end_ns[i] + stream.offset_ns;
        if (!std::isnan(metric.values[i]))
          clock.samples.push_back({at, until, until - at, static_cast<double>(metric.values[i])});
      }
      if (!clock.samples.empty())
        out.clocks.push_back(std::move(clock));
    }
  }
  return out;
}

void judge_works(const std::vector<WorkOfRank>& ranks,
                 const std::vector<SampledClock>& clocks,
                 const std::function<std::string_view(std::uint32_t)>& text,
                 model::Report& report) {
  using Kernel = std::pair<std::uint32_t, decltype(WorkOfRank::Paced::size)>;
  std::map<Kernel, std::vector<std::pair<std::uint32_t, const WorkOfRank::Paced*>>> kernels;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const WorkOfRank& of = ranks[rank];
    model::RankWork& work = report.ranks[rank].work;
    work.known = true;
    work.kernels = of.kernels;
    work.kernel_ns = number(of.kernel_ns);
    work.kernel_threads = of.kernel_threads;
    work.copied_bytes = number(of.copied_bytes);
    std::set<std::string_view> cards;
    for (const WorkOfRank::Gpu& gpu : of.gpus)
      cards.insert(text(gpu.uuid));
    if (cards.size() == 1)
      report.ranks[rank].card = *cards.begin();
    for (const WorkOfRank::Paced& kernel : of.paced)
      if (kernel.ns != kUnknown)
        kernels[{kernel.name, kernel.size}].emplace_back(rank, &kernel);
  }
  std::vector<double> usual(ranks.size());
  for (const auto& [same, list] : kernels) {
    if (list.size() < 2 || list.size() * 2 <= ranks.size())
      continue;
    const auto mean = [](const WorkOfRank::Paced& of) {
      return static_cast<double>(of.ns) / static_cast<double>(of.calls);
    };
    std::vector<double> means;
    for (const auto& [rank, of] : list)
      means.push_back(mean(*of));
    const MediansOfOthers medians(std::move(means));
    for (const auto& [rank, of] : list) {
      usual[rank] += static_cast<double>(of->calls) * medians.without(mean(*of));
      report.ranks[rank].work.paced_kernel_ns += static_cast<double>(of->ns);
    }
  }
  for (std::size_t rank = 0; rank < usual.size(); ++rank) {
    model::RankWork& work = report.ranks[rank].work;
    if (usual[rank] > 0)
      work.kernel_pace = work.paced_kernel_ns / usual[rank];
    double sums[2] = {0, 0}, weights[2] = {0, 0};
    for (const SampledClock& clock : clocks) {
      for (const WorkOfRank::Gpu& gpu : ranks[rank].gpus) {
        if (gpu.uuid != clock.uuid ||
            (text(gpu.uuid).empty() && clock.process != kNone && clock.process != gpu.process))
          continue;
        for (const SampledClock::Reading& sample : clock.samples) {
          if (sample.end_ns <= gpu.first_ns || sample.start_ns >= gpu.last_ns ||
              sample.covered_ns == kUnknown)
            continue;
          const auto covered = static_cast<double>(sample.covered_ns);
          sums[clock.limited ? 1 : 0] += sample.value * covered;
          weights[clock.limited ? 1 : 0] += covered;
        }
      }
    }
    if (weights[0] > 0)
      work.sm_clock_hz = sums[0] / weights[0];
    if (weights[1] > 0)
      work.clock_limited = sums[1] / weights[1];
  }
}

void CpuPaces::add(const model::Region& region, const ByRank& times) {
  if (times.ranks.size() != here_.size() ||
      times.closed != times.ordinals.compared * here_.size() ||
      region.kind != model::RangeKind::kPushPop || is_communication(region.domain))
    return;
  std::vector<double> values;
  for (const OfRank& one : times.ranks) {
    if (one.paced_ns == kUnknown)
      return;
    values.push_back(std::max(0.0, number(one.paced_ns)));
  }
  const MediansOfOthers medians(values);
  whole_ += medians.median();
  std::vector<std::uint32_t> slower;
  const bool votes = medians.median() >=
                     kCountsAsRange * whole_;  // of what is known so far: the rest is seen later
  for (std::uint32_t rank = 0; rank < values.size(); ++rank) {
    const double others = medians.without(values[rank]);
    usual_[rank] += others;
    here_[rank] += values[rank];
    if (votes && values[rank] > kSlowerRange * others)
      slower.push_back(rank);
  }
  if (votes)
    voting_.push_back({medians.median(), std::move(slower)});
}

void CpuPaces::finish(model::Report& report) const {
  for (std::size_t rank = 0; rank < usual_.size(); ++rank) {
    report.ranks[rank].work.paced_cpu_ns = here_[rank];
    if (usual_[rank] > 0)
      report.ranks[rank].work.cpu_pace = here_[rank] / usual_[rank];
  }
  for (const auto& [median, slower] : voting_) {
    if (median < kCountsAsRange * whole_)
      continue;
    for (model::Rank& rank : report.ranks)
      ++rank.work.cpu_ranges;
    for (const std::uint32_t rank : slower)
      ++report.ranks[rank].work.slower_ranges;
  }
}

void hold_ranks_together(const Regions& regions, model::Report& report) {
  model::Strings texts;
  const Works works =
      works_of(regions.session, report, [&](std::string_view text) { return texts.intern(text); });
  judge_works(
      works.ranks, works.clocks, [&](std::uint32_t id) { return texts.view(id); }, report);
  const RankTimes times(regions);
  CpuPaces paces(report.ranks.size());
  for (std::uint32_t r = 0; r < regions.keys.size() && r < report.regions.size(); ++r) {
    if (!regions.keys[r].of_all())
      continue;
    const ByRank of = times.of(std::span(&r, 1));
    report.regions[r].ranks = over_ranks({&of}, report.ranks);
    paces.add(report.regions[r], of);
  }
  for (model::TableRow& row : report.rows) {
    if (!row.merged)
      continue;
    const ByRank of = times.of(row.members);
    row.merged->ranks = over_ranks({&of}, report.ranks);
  }
  paces.finish(report);
  add_tokens(regions.session, report);
}

}  // namespace rangescope::analyze
