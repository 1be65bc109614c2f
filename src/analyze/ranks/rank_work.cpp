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
    const double lower_middle = value < middle_ ? middle_ : below_;
    if (!odd_)
      return lower_middle;
    const double upper_middle = value > middle_ ? middle_ : above_;
    return (lower_middle + upper_middle) / 2;
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
    const bool is_of_process = region.process && !region.thread;
    if (!is_of_process || *region.process >= rank_of.size() || !has(region))
      continue;
    std::uint32_t outer = region.parent;
    while (outer != kNone && !has(report.regions[outer]))
      outer = report.regions[outer].parent;
    const std::uint32_t rank = rank_of[*region.process];
    if (outer == kNone && rank != kNone)
      report.ranks[rank].work.tokens +=
          *region.utilization->useful_tokens * static_cast<double>(region.occurrences);
  }
}

}  // namespace

namespace {

using Size = decltype(WorkOfRank::Paced::size);

/// Numbers the shapes of kernels: sessions that were joined hold equal ones several times.
class ShapeSizes {
 public:
  explicit ShapeSizes(const Session& session) {
    for (const model::KernelShape& shape : session.kernel_shapes) {
      const Size size{shape.grid[0],
                      shape.grid[1],
                      shape.grid[2],
                      shape.block[0],
                      shape.block[1],
                      shape.block[2]};
      const auto next = static_cast<std::uint32_t>(number_of_.size());
      entries_.push_back(number_of_.try_emplace(size, next).first);
      double threads = 1;
      for (const std::uint32_t dimension : size)
        threads *= std::max(1u, dimension);
      threads_.push_back(threads);
    }
  }

  [[nodiscard]] bool has(std::uint32_t shape) const { return shape < entries_.size(); }
  [[nodiscard]] const Size& size(std::uint32_t shape) const { return entries_[shape]->first; }
  [[nodiscard]] std::uint32_t number(std::uint32_t shape) const { return entries_[shape]->second; }
  [[nodiscard]] double threads(std::uint32_t shape) const { return threads_[shape]; }

 private:
  std::map<Size, std::uint32_t> number_of_;
  std::vector<std::map<Size, std::uint32_t>::const_iterator> entries_;  ///< by shape
  std::vector<double> threads_;
};

/// Sums up what the ranks of a session did.
class WorkSums {
 public:
  WorkSums(const Session& session,
           const model::Report& report,
           const std::function<std::uint32_t(std::string_view)>& number_of)
      : session_(session),
        number_of_(number_of),
        rank_of_process_(places_of(session, report)),
        is_nccl_(nccl_kernels(session)),
        sizes_(session),
        sums_(report.ranks.size()),
        spans_(session.processes.size(), {model::kOpen, 0}),
        nccl_times_(session.processes.size()) {
    for (const model::Rank& rank : report.ranks)
      out_.ranks.emplace_back().rank = rank.rank;
  }

  Works run() {
    find_nccl_times();
    for (const model::Kernel& kernel : session_.kernels)
      add_kernel(kernel);
    keep_frequent_kernels();
    for (const model::Copy& copy : session_.copies)
      add_copy(copy);
    add_gpus();
    for (const model::SampleStream& stream : session_.samples)
      for (const model::SampledMetric& metric : stream.metrics)
        if (metric.name == "sm_clock" || metric.name == "clock_limited")
          add_clock(stream, metric);
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::uint32_t rank_of_stream(std::uint32_t stream) const {
    if (stream >= session_.streams.size())
      return kNone;
    const std::uint32_t process = session_.streams[stream].process;
    return process < rank_of_process_.size() ? rank_of_process_[process] : kNone;
  }

  [[nodiscard]] bool is_nccl(const model::Kernel& kernel) const {
    return is_nccl_[kernel.name] != 0;
  }

  /// Kernels share the GPU with those of NCCL, which take part of it while they wait: the times of
  /// such kernels do not show how fast the GPU is.
  void find_nccl_times() {
    for (const model::Kernel& kernel : session_.kernels) {
      if (rank_of_stream(kernel.stream) == kNone || kernel.name >= is_nccl_.size())
        continue;
      if (is_nccl(kernel))
        nccl_times_[session_.streams[kernel.stream].process].add(kernel.start_ns, kernel.end_ns);
    }
    for (Stretches& times : nccl_times_)
      times.finish();
  }

  void add_kernel(const model::Kernel& kernel) {
    const std::uint32_t rank = rank_of_stream(kernel.stream);
    if (rank == kNone || kernel.name >= is_nccl_.size())
      return;
    const std::uint32_t process = session_.streams[kernel.stream].process;
    auto& [first_ns, last_ns] = spans_[process];
    first_ns = std::min(first_ns, kernel.start_ns);
    last_ns = std::max(last_ns, kernel.end_ns);
    if (is_nccl(kernel))
      return;
    const std::int64_t ns = length_ns(kernel.start_ns, kernel.end_ns);
    WorkOfRank& work = out_.ranks[rank];
    ++work.kernels;
    work.kernel_ns = plus(work.kernel_ns, ns);
    if (!sizes_.has(kernel.shape))
      return;
    work.kernel_threads += sizes_.threads(kernel.shape);
    if (nccl_times_[process].within(kernel.start_ns, kernel.end_ns) > 0)
      return;
    const std::uint32_t name = shown_name(session_.kernel_names[kernel.name]);
    WorkOfRank::Paced& sum = sums_[rank][std::uint64_t{name} << 32 | sizes_.number(kernel.shape)];
    sum.size = sizes_.size(kernel.shape);
    ++sum.calls;
    sum.ns = plus(sum.ns, ns);
  }

  void keep_frequent_kernels() {
    for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
      for (auto& [key, sum] : sums_[rank]) {
        if (sum.calls < kFewestCalls)
          continue;
        const auto name = static_cast<model::StringId>(key >> 32);
        sum.name = number_of_(session_.strings.view(name));
        out_.ranks[rank].paced.push_back(sum);
      }
    }
  }

  void add_copy(const model::Copy& copy) {
    const std::uint32_t rank = rank_of_stream(copy.stream);
    if (rank == kNone)
      return;
    std::int64_t& bytes = out_.ranks[rank].copied_bytes;
    bytes = plus(bytes, static_cast<std::int64_t>(copy.bytes));
  }

  void add_gpus() {
    std::set<std::pair<std::uint32_t, model::StringId>> gpus;  // process, UUID
    for (std::uint32_t index = 0; index < session_.streams.size(); ++index) {
      const model::Stream& stream = session_.streams[index];
      if (rank_of_stream(index) != kNone && stream.device < session_.devices.size())
        gpus.emplace(stream.process, session_.devices[stream.device].uuid);
    }
    for (const auto& [process, uuid] : gpus) {
      const auto& [first_ns, last_ns] = spans_[process];
      out_.ranks[rank_of_process_[process]].gpus.push_back(
          {process, number_of_(session_.strings.view(uuid)), first_ns, last_ns});
    }
  }

  void add_clock(const model::SampleStream& stream, const model::SampledMetric& metric) {
    SampledClock clock;
    if (stream.device < session_.devices.size()) {
      const model::Device& device = session_.devices[stream.device];
      clock.uuid = number_of_(session_.strings.view(device.uuid));
      clock.process = device.process;
    } else {
      clock.uuid = number_of_(stream.uuid);
    }
    clock.limited = metric.name == "clock_limited";
    for (std::size_t i = 0; i < metric.values.size() && i < stream.start_ns.size(); ++i) {
      const std::int64_t start_ns = stream.start_ns[i] + stream.offset_ns;
      const std::int64_t end_ns = stream.end_ns[i] + stream.offset_ns;
      const auto value = static_cast<double>(metric.values[i]);
      if (!std::isnan(metric.values[i]))
        clock.samples.push_back({start_ns, end_ns, end_ns - start_ns, value});
    }
    if (!clock.samples.empty())
      out_.clocks.push_back(std::move(clock));
  }

  const Session& session_;
  const std::function<std::uint32_t(std::string_view)>& number_of_;
  Works out_;
  std::vector<std::uint32_t> rank_of_process_;
  std::vector<char> is_nccl_;  ///< by kernel name
  ShapeSizes sizes_;
  /// Of each rank, by name and number of the size.
  std::vector<std::unordered_map<std::uint64_t, WorkOfRank::Paced>> sums_;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans_;  ///< of kernels, by process
  std::vector<Stretches> nccl_times_;                         ///< by process
};

}  // namespace

Works works_of(const Session& session,
               const model::Report& report,
               const std::function<std::uint32_t(std::string_view)>& number_of) {
  return WorkSums(session, report, number_of).run();
}

namespace {

using Text = std::function<std::string_view(std::uint32_t)>;
/// A kernel by name and size: what each of some ranks had of it.
using RanksOfKernel = std::vector<std::pair<std::uint32_t, const WorkOfRank::Paced*>>;
using KernelKey = std::pair<std::uint32_t, Size>;

void fill_sums(const WorkOfRank& sums, const Text& text, model::Rank& rank) {
  model::RankWork& work = rank.work;
  work.is_known = true;
  work.kernels = sums.kernels;
  work.kernel_ns = number(sums.kernel_ns);
  work.kernel_threads = sums.kernel_threads;
  work.copied_bytes = number(sums.copied_bytes);
  std::set<std::string_view> cards;
  for (const WorkOfRank::Gpu& gpu : sums.gpus)
    cards.insert(text(gpu.uuid));
  if (cards.size() == 1)
    rank.card = *cards.begin();
}

double mean_ns(const WorkOfRank::Paced& kernel) {
  return static_cast<double>(kernel.ns) / static_cast<double>(kernel.calls);
}

/// By kernels that more than half of the ranks ran: what a rank took over what the others would
/// have.
void judge_kernel_pace(const std::map<KernelKey, RanksOfKernel>& kernels,
                       std::size_t ranks,
                       model::Report& report) {
  std::vector<double> usual_ns(ranks);
  for (const auto& [key, of_ranks] : kernels) {
    if (of_ranks.size() < 2 || of_ranks.size() * 2 <= ranks)
      continue;
    std::vector<double> means_ns;
    for (const auto& [rank, kernel] : of_ranks)
      means_ns.push_back(mean_ns(*kernel));
    const MediansOfOthers medians(std::move(means_ns));
    for (const auto& [rank, kernel] : of_ranks) {
      const double others_ns = medians.without(mean_ns(*kernel));
      usual_ns[rank] += static_cast<double>(kernel->calls) * others_ns;
      report.ranks[rank].work.paced_kernel_ns += static_cast<double>(kernel->ns);
    }
  }
  for (std::size_t rank = 0; rank < usual_ns.size(); ++rank) {
    model::RankWork& work = report.ranks[rank].work;
    if (usual_ns[rank] > 0)
      work.kernel_pace = work.paced_kernel_ns / usual_ns[rank];
  }
}

/// The mean of samples, by the time that each covers.
struct WeightedMean {
  double sum = 0, weight = 0;
  void add(const SampledClock::Reading& sample) {
    const auto covered_ns = static_cast<double>(sample.covered_ns);
    sum += sample.value * covered_ns;
    weight += covered_ns;
  }
};

bool is_clock_of(const WorkOfRank::Gpu& gpu, const SampledClock& clock, const Text& text) {
  if (gpu.uuid != clock.uuid)
    return false;
  const bool has_uuid = !text(gpu.uuid).empty();
  return has_uuid || clock.process == kNone || clock.process == gpu.process;
}

/// While the GPUs of the rank worked.
void judge_clocks(const WorkOfRank& sums,
                  const std::vector<SampledClock>& clocks,
                  const Text& text,
                  model::RankWork& work) {
  WeightedMean clock_hz, limited_share;
  for (const SampledClock& clock : clocks) {
    WeightedMean& mean = clock.limited ? limited_share : clock_hz;
    for (const WorkOfRank::Gpu& gpu : sums.gpus) {
      if (!is_clock_of(gpu, clock, text))
        continue;
      for (const SampledClock::Reading& sample : clock.samples) {
        const bool is_during_work = sample.end_ns > gpu.first_ns && sample.start_ns < gpu.last_ns;
        if (is_during_work && sample.covered_ns != kUnknown)
          mean.add(sample);
      }
    }
  }
  if (clock_hz.weight > 0)
    work.sm_clock_hz = clock_hz.sum / clock_hz.weight;
  if (limited_share.weight > 0)
    work.clock_limited = limited_share.sum / limited_share.weight;
}

}  // namespace

void judge_works(const std::vector<WorkOfRank>& ranks,
                 const std::vector<SampledClock>& clocks,
                 const Text& text,
                 model::Report& report) {
  std::map<KernelKey, RanksOfKernel> kernels;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    fill_sums(ranks[rank], text, report.ranks[rank]);
    for (const WorkOfRank::Paced& kernel : ranks[rank].paced)
      if (kernel.ns != kUnknown)
        kernels[{kernel.name, kernel.size}].emplace_back(rank, &kernel);
  }
  judge_kernel_pace(kernels, ranks.size(), report);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    judge_clocks(ranks[rank], clocks, text, report.ranks[rank].work);
}

void CpuPaces::add(const model::Region& region, const ByRank& times) {
  const bool is_work =
      region.kind == model::RangeKind::kPushPop && !is_communication(region.domain);
  if (!is_work || times.ranks.size() != times_ns_.size())
    return;
  const bool is_equally_often = times.closed == times.ordinals.compared * times_ns_.size();
  if (!is_equally_often)
    return;
  std::vector<double> ranks_ns;
  for (const OfRank& of_rank : times.ranks) {
    if (of_rank.paced_ns == kUnknown)
      return;
    ranks_ns.push_back(std::max(0.0, number(of_rank.paced_ns)));
  }
  const MediansOfOthers medians(ranks_ns);
  compared_ns_ += medians.median();
  std::vector<std::uint32_t> slower;
  // Of what was added so far: finish() leaves out what is short in the end.
  const bool has_vote = medians.median() >= kCountsAsRange * compared_ns_;
  for (std::uint32_t rank = 0; rank < ranks_ns.size(); ++rank) {
    const double others_ns = medians.without(ranks_ns[rank]);
    usual_ns_[rank] += others_ns;
    times_ns_[rank] += ranks_ns[rank];
    if (has_vote && ranks_ns[rank] > kSlowerRange * others_ns)
      slower.push_back(rank);
  }
  if (has_vote)
    voting_.push_back({medians.median(), std::move(slower)});
}

void CpuPaces::finish(model::Report& report) const {
  for (std::size_t rank = 0; rank < usual_ns_.size(); ++rank) {
    report.ranks[rank].work.paced_cpu_ns = times_ns_[rank];
    if (usual_ns_[rank] > 0)
      report.ranks[rank].work.cpu_pace = times_ns_[rank] / usual_ns_[rank];
  }
  for (const auto& [median_ns, slower] : voting_) {
    if (median_ns < kCountsAsRange * compared_ns_)
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
    const ByRank by_rank = times.of(std::span(&r, 1));
    report.regions[r].ranks = over_ranks({&by_rank}, report.ranks);
    paces.add(report.regions[r], by_rank);
  }
  for (model::TableRow& row : report.rows) {
    if (!row.merged)
      continue;
    const ByRank by_rank = times.of(row.members);
    row.merged->ranks = over_ranks({&by_rank}, report.ranks);
  }
  paces.finish(report);
  add_tokens(regions.session, report);
}

}  // namespace rangescope::analyze
