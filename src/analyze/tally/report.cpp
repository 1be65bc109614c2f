#include "analyze/tally/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <type_traits>

#include "analyze/details.hpp"
#include "analyze/names/kernel_labels.hpp"
#include "analyze/ranks/collectives.hpp"
#include "analyze/ranks/rank_work.hpp"
#include "analyze/ranks/ranks.hpp"
#include "analyze/rows.hpp"
#include "analyze/statistics/spread.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::tally {
namespace {

using model::kNan;
using model::kNoSpread;

/// What of `region` has settled.
Distribution settled(const Region& region) {
  Distribution out = region.wall;
  out.moments.take(region.unsettled.moments);
  out.sketch.take(region.unsettled.sketch);
  out.moments.min = region.settled_min;
  out.moments.max = region.settled_max;
  return out;
}

/// What of several regions, or of one, has settled.
struct SettledSums {
  Distribution rest;
  std::int64_t warm_ups = 0, warm_up_ns = 0, longest_ns = 0, busy_ns = 0;

  void add(const Region& region) {
    const Distribution part = settled(region);
    if (part.moments.n > 0)
      rest.add(part);
    warm_ups = plus(warm_ups, region.warm_ups);
    warm_up_ns = plus(warm_up_ns, region.warm_up_ns);
    longest_ns = std::max(longest_ns, region.longest_ns);
    busy_ns = plus(busy_ns, region.settled_busy_ns);
  }
  [[nodiscard]] std::optional<model::Steady> steady(bool busy) const {
    const auto total = static_cast<double>(rest.moments.sum);
    auto out = steady_of(
        rest.moments.n, total, spread_of(rest), warm_ups, number(warm_up_ns), number(longest_ns));
    if (out && busy && busy_ns != kUnknown && total > 0)
      out->busy_share = number(busy_ns) / total;
    return out;
  }
};

class Reporter {
 public:
  Reporter(Digest digest, const analyze::Options& options, const analyze::Reference& reference)
      : digest_(in_order(std::move(digest))),
        options_(options),
        reference_(reference),
        report_(out_.report) {}

  Reported run() {
    machines();
    const auto same = [](const WorkOfRank& work, const model::Rank& rank) {
      return work.rank == rank.rank;
    };
    whole_ = std::equal(digest_.works.begin(),
                        digest_.works.end(),
                        report_.ranks.begin(),
                        report_.ranks.end(),
                        same);
    communication_ = add_collectives(digest_, whole_, out_);
    times();
    order();
    kernels();
    for (std::uint32_t r = 0; r < order_.size(); ++r)
      region(r);
    region_kernels();
    report_memory(digest_, region_of_, out_.session, report_);
    analyze::add_rows(nullptr, {}, report_);
    for (model::TableRow& row : report_.rows)
      if (row.merged)
        merged(row);
    work();
    losses();
    analyze::tell_kernels_apart(report_);
    analyze::judge_regions(reference_, options_.device, report_);
    notes();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const std::string& text(std::uint32_t name) const { return digest_.names[name]; }

  void machines() {
    model::Session& session = out_.session;
    session.end_ns =
        since(digest_.end_ns, digest_);  // times from the begin on: exact as floating-point numbers
    session.clock = {"UTC", 0, digest_.begin_ns, {}};
    if (digest_.utc)
      report_.run.start_unix_ns = digest_.begin_ns;
    report_.run.tool = digest_.tool;
    report_.run.sources = digest_.sources;
    for (const CountedProcess& counted : digest_.processes) {
      model::Process process = counted;
      for (const auto id : {&model::Process::name, &model::Process::host, &model::Process::run})
        process.*id = session.strings.intern(text(counted.*id));
      process.start_ns = since(counted.start_ns, digest_);
      process.end_ns = since(counted.end_ns, digest_);
      session.threads.push_back(
          {static_cast<std::uint32_t>(session.processes.size()), counted.pid, 0});
      session.processes.push_back(process);
    }
    std::map<std::string, std::set<std::uint32_t>> ranks_of_card;
    for (const model::Device& recorded : digest_.devices) {
      model::Device& device = session.devices.emplace_back(recorded);
      device.name = session.strings.intern(text(recorded.name));
      device.uuid = session.strings.intern(text(recorded.uuid));
      if (recorded.uuid == 0 || recorded.process == kNone)
        continue;
      std::set<std::uint32_t>& ranks = ranks_of_card[text(recorded.uuid)];
      ranks.insert(digest_.processes[recorded.process].rank);
      shared_ |= ranks.size() > 1;
    }
    analyze::list_machines(session, report_);
    std::map<std::uint32_t, std::uint32_t> of_rank;
    for (std::uint32_t p = 0; p < digest_.processes.size(); ++p) {
      const CountedProcess& counted = digest_.processes[p];
      report_.processes[p].ranges = static_cast<std::int64_t>(counted.ranges);
      report_.processes[p].kernels = static_cast<std::int64_t>(counted.kernels);
      const std::uint32_t rank = counted.rank;
      process_at_[static_cast<std::uint64_t>(rank) << 32 | of_rank[rank]++] = p;
    }
    analyze::list_ranks(session, report_);
  }

  /// By clocks that agree.
  void times() {
    const model::Session& session = out_.session;
    for (std::size_t p = 0; p < session.processes.size(); ++p) {
      report_.processes[p].start_ns =
          analyze::since_ns(session.begin_ns, session.processes[p].start_ns);
      report_.processes[p].end_ns =
          analyze::since_ns(session.begin_ns, session.processes[p].end_ns);
    }
    report_.run.duration_ns =
        static_cast<double>(analyze::length_ns(session.begin_ns, session.end_ns));
  }

  /// Regions as analyze::link_nodes() puts them, by the first start over all ranks.
  void order() {
    const auto& regions = digest_.regions;
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
      const Region& x = regions[a];
      const Region& y = regions[b];
      if (x.parent == kNone && x.domain != y.domain)
        return text(x.domain) < text(y.domain);
      if (x.parent == kNone && x.kind != y.kind)
        return x.kind == model::RangeKind::kPushPop;
      if (x.first_start_ns != y.first_start_ns)
        return x.first_start_ns < y.first_start_ns;
      return std::tie(text(x.name), text(x.domain), x.kind) <
             std::tie(text(y.name), text(y.domain), y.kind);
    };
    order_ = depth_first(regions, before);
    region_of_.resize(regions.size());
    for (std::uint32_t r = 0; r < order_.size(); ++r)
      region_of_[order_[r]] = r;
    report_.regions.resize(order_.size());
  }

  void region(std::uint32_t r) {
    const Region& tallied = digest_.regions[order_[r]];
    model::Region& region = report_.regions[r];
    region.id = r;
    if (tallied.parent != kNone) {
      region.parent = region_of_[tallied.parent];
      const model::Region& parent = report_.regions[region.parent];
      region.depth = parent.depth + 1;
      region.path = parent.path;
    }
    region.path.push_back(text(tallied.name));
    region.domain = text(tallied.domain);
    region.kind = tallied.kind;
    region.module = tallied.module;
    visit_numbers([&](auto field, auto, auto, auto report) {
      if constexpr (std::is_same_v<decltype(report), std::int64_t model::Region::*>)
        region.*report = tallied.*field;
      if constexpr (std::is_same_v<decltype(report), double model::WallTime::*>)
        region.wall.*report = number(tallied.*field);
    });
    region.wall.per_occurrence_ns = spread_of(tallied.wall);
    const double run_ns = report_.run.duration_ns;
    region.wall.share = run_ns > 0 ? region.wall.inclusive_ns / run_ns : 0;
    if (tallied.replayed > 0)
      region.notes.push_back(replay_note(tallied.replayed));
    std::optional<Gpu> none;  // opened only by ranks without GPU work
    if (!tallied.gpu && digest_.total)
      add_no_gpu(none, tallied);
    const std::optional<Gpu>& work = tallied.gpu ? tallied.gpu : none;
    SettledSums sums;
    sums.add(tallied);
    region.steady = sums.steady(work && !shared_ && work->times[2] != kUnknown);
    region.across = across_of(tallied.of_processes, tallied.of_threads);
    if (region.across && !region.across->of_threads) {
      const auto process = process_at_.find(tallied.of_processes.largest);
      region.across->slowest = process == process_at_.end() ? kNone : process->second;
    }
    region.ranks = over_ranks({&tallied}, report_.ranks);
    region.communication = communication({order_[r]});
    if (work)
      region.gpu = gpu(*work, true);
  }

  [[nodiscard]] std::optional<model::Communication> communication(
      const std::vector<std::uint32_t>& regions) const {
    analyze::CommunicationSum sum;
    for (const std::uint32_t region : regions)
      if (const auto of_region = communication_.find(region); of_region != communication_.end())
        sum.add(of_region->second);
    return sum.row();
  }

  [[nodiscard]] model::GpuWork gpu(const Gpu& from, bool occurrences) const {
    model::GpuWork out;
    for (std::size_t i = 0; i < kGpuCounts.size(); ++i)
      out.*kGpuCounts[i] = from.counts[i] == kUnknown ? -1 : from.counts[i];
    for (std::size_t i = 0; i < kGpuTimes.size(); ++i)
      out.*kGpuTimes[i] = number(from.times[i]);
    out.copy_busy_ns = kNan;  // digests have sums of copies only
    out.partial = from.partial;
    for (const Copies& copy : from.copies)
      out.copies_by_kind.push_back({copy.kind, copy.calls, number(copy.bytes), number(copy.ns)});
    if (from.latency.moments.n > 0)
      out.launch_latency_ns = spread_of(from.latency);
    if (occurrences) {
      out.kernel_ns_per_occurrence =
          std::isnan(out.kernel_ns) ? kNoSpread : spread_of(from.kernel());
      out.busy_ns_per_occurrence = std::isnan(out.busy_ns) ? kNoSpread : spread_of(from.busy());
    }
    if (!shared_)
      return out;
    // Ranks on one GPU: what it did for both at once would count twice.
    for (const auto field : {&model::GpuWork::busy_ns,
                             &model::GpuWork::exclusive_busy_ns,
                             &model::GpuWork::span_ns,
                             &model::GpuWork::idle_ns,
                             &model::GpuWork::overlap_ns})
      out.*field = kNan;
    out.busy_ns_per_occurrence = kNoSpread;
    return out;
  }

  void kernels() {
    double total = 0;
    for (const KernelTally& kernel : digest_.kernels)
      total += static_cast<double>(kernel.duration.moments.sum);
    for (const KernelTally& kernel : digest_.kernels) {
      model::KernelRow row = kernel_row(kernel, kernel.duration.moments, total);
      row.duration_ns = spread_of(kernel.duration);
      row.shapes = static_cast<std::int64_t>(kernel.shapes.size());
      const auto most_frequent =
          std::ranges::max_element(kernel.shapes, {}, &KernelTally::Shape::calls);
      if (most_frequent != kernel.shapes.end())
        row.shape = most_frequent->shape;
      report_.kernels.push_back(std::move(row));
    }
    std::ranges::sort(report_.kernels, &model::KernelRow::comes_before);
    if (digest_.unattributed) {
      report_.unattributed = gpu(*digest_.unattributed, false);
      std::map<std::uint32_t, Distribution> sums;
      for (const KernelSum& sum : digest_.unattributed->kernels)
        sums[sum.name] = sum.duration;
      list(sums, *report_.unattributed);
    }
    if (!digest_.total)
      return;
    report_.total = gpu(*digest_.total, false);
    report_.total->distinct_kernels = std::ssize(report_.kernels);
    const std::size_t listed = std::min(options_.top_kernels, report_.kernels.size());
    report_.total->top_kernels.assign(
        report_.kernels.begin(), report_.kernels.begin() + static_cast<std::ptrdiff_t>(listed));
  }

  [[nodiscard]] model::KernelRow kernel_row(const KernelTally& kernel,
                                            const Moments& sum,
                                            double total) const {
    model::KernelRow row;
    row.name = text(kernel.name);
    row.short_name = text(kernel.short_name);
    row.nccl = kernel.nccl;
    row.calls = static_cast<std::int64_t>(sum.n);
    row.total_ns = static_cast<double>(sum.sum);
    row.share = total > 0 ? row.total_ns / total : 0;
    return row;
  }

  void list(const std::map<std::uint32_t, Distribution>& sums, model::GpuWork& work) const {
    std::uint64_t calls = 0;
    for (const auto& [name, sum] : sums)
      calls += sum.moments.n;
    // A launch may be in several ranges of one tree (scope `process`): then sums of those below are
    // too large.
    const bool are_all_known =
        work.kernels >= 0 && calls == static_cast<std::uint64_t>(work.kernels);
    if (!are_all_known) {
      work.distinct_kernels = work.kernels == 0 ? 0 : -1;
      return;
    }
    for (const auto& [name, sum] : sums) {
      const KernelTally& kernel = digest_.kernels[name];
      model::KernelRow row = kernel_row(kernel, sum.moments, work.kernel_ns);
      row.duration_ns = spread_of(sum);
      row.shapes = kernel.shapes.size() == 1 ? 1 : -1;
      if (row.shapes == 1)
        row.shape = kernel.shapes.front().shape;
      work.top_kernels.push_back(std::move(row));
    }
    work.distinct_kernels = std::ssize(work.top_kernels);
    std::ranges::sort(work.top_kernels, &model::KernelRow::comes_before);
    if (work.top_kernels.size() > options_.top_kernels)
      work.top_kernels.resize(options_.top_kernels);
  }

  /// Kernels of each region: its own and those of the regions below it.
  void region_kernels() {
    std::vector<std::map<std::uint32_t, Distribution>> sums(order_.size());
    for (std::size_t r = order_.size(); r-- > 0;) {
      const Region& tallied = digest_.regions[order_[r]];
      if (tallied.gpu)
        for (const KernelSum& sum : tallied.gpu->kernels)
          sums[r][sum.name].add(sum.duration);
      model::Region& region = report_.regions[r];
      if (region.parent != kNone)
        for (const auto& [name, sum] : sums[r])
          sums[region.parent][name].add(sum);
      if (region.gpu) {
        list(sums[r], *region.gpu);
        // Latencies are those of kernels launched here; a region above has those of all below.
        latencies(r);
      }
      sums[r].clear();
    }
  }

  void latencies(std::size_t r) {
    if (latency_.empty())
      latency_.resize(order_.size());
    if (const auto& work = digest_.regions[order_[r]].gpu)
      latency_[r].add(work->latency);
    model::Region& region = report_.regions[r];
    if (latency_[r].moments.n > 0)
      region.gpu->launch_latency_ns = spread_of(latency_[r]);
    if (region.parent != kNone)
      latency_[region.parent].add(latency_[r]);
    latency_[r] = {};
  }

  void merged(model::TableRow& row) const {
    model::Region& region = *row.merged;
    Distribution wall;
    SettledSums sums;
    std::vector<std::uint32_t> members;
    std::vector<const ByRank*> by_rank;
    for (const std::uint32_t id : row.members) {
      const Region& member = digest_.regions[order_[id]];
      members.push_back(order_[id]);
      by_rank.push_back(&member);
      wall.add(member.wall);
      sums.add(member);
    }
    region.wall.per_occurrence_ns = spread_of(wall);
    region.steady = sums.steady(digest_.total && !shared_);
    region.ranks = over_ranks(by_rank, report_.ranks);
    region.communication = communication(members);
  }

  /// Of all ranks, or of none: without the work of one, the others cannot be compared with it.
  void work() {
    const std::size_t ranks = report_.ranks.size();
    if (!whole_ || ranks < 2)
      return;
    for (const WorkOfRank& work_of_rank : digest_.works)
      kernels_cut_ |= work_of_rank.not_kept > 0;
    const auto text_of = [&](std::uint32_t name) { return std::string_view(text(name)); };
    analyze::judge_works(digest_.works, digest_.clocks, text_of, report_);
    analyze::CpuPaces paces(ranks);
    for (std::uint32_t r = 0; r < order_.size(); ++r)
      paces.add(report_.regions[r], digest_.regions[order_[r]]);
    paces.finish(report_);
  }

  void losses() {
    struct Sum {
      std::uint64_t count = 0;
      std::string detail;
      std::set<std::uint32_t> ranks;
    };
    std::map<std::string, Sum> kinds;
    for (const RankLoss& loss : digest_.losses) {
      if (loss.kind.empty())
        report_.notes.push_back(fmt::format("rank {}: {}", loss.rank, loss.detail));
      if (loss.kind.empty())
        continue;
      Sum& sum = kinds[loss.kind];
      sum.count += loss.count;
      if (sum.ranks.empty())
        sum.detail = loss.detail;
      sum.ranks.insert(loss.rank);
    }
    for (auto& [kind, sum] : kinds) {
      if (sum.ranks.size() > 1)
        sum.detail = fmt::format("{} (in {}, of rank {}: {})",
                                 base::format_count(static_cast<std::int64_t>(sum.count)),
                                 base::counted(sum.ranks.size(), "rank"),
                                 *sum.ranks.begin(),
                                 sum.detail);
      report_.losses.push_back(model::Loss::read(kind, {}, sum.count, std::move(sum.detail)));
    }
    if (!digest_.utc)
      report_.losses.push_back({"clocks_not_aligned",
                                0,
                                "the UTC time of a rank's clock is unknown: durations can be "
                                "compared between ranks, timestamps cannot"});
  }

  void notes() {
    std::string missing = "timelines, single processes";
    if (!whole_)
      missing += ", messages, communication, work of ranks";
    if (digest_.sampled)
      missing += ", CPU samples";
    if (digest_.counted)
      missing += ", counters";
    std::string text = fmt::format(
        "from the digests of {}: medians and 95th percentiles are within {:.1f} %; {} need the "
        "captures (--captures, --rank N)",
        base::counted(report_.ranks.size(), "rank"),
        kRelativeError * 100,
        missing);
    report_.notes.push_back(std::move(text));
    if (kernels_cut_)
      report_.notes.push_back(
          fmt::format("slowdown of GPUs is judged by the {} longest kernels of a rank",
                      base::format_count(std::int64_t{kMostPaced})));
    if (shared_)
      report_.notes.emplace_back(
          "no GPU busy time: ranks share a GPU, whose time digests cannot join");
  }

  Digest digest_;
  const analyze::Options& options_;
  const analyze::Reference& reference_;
  Reported out_;
  model::Report& report_;
  bool shared_ = false;                                               ///< ranks on one GPU
  std::map<std::uint32_t, analyze::CommunicationSum> communication_;  ///< of the digest's regions
  bool whole_ = false;                                                ///< every rank has its work
  bool kernels_cut_ = false;
  std::vector<std::uint32_t> order_,
      region_of_;  ///< digest's region of each of the report's, and back
  std::map<std::uint64_t, std::uint32_t> process_at_;
  std::vector<Distribution> latency_;
};

}  // namespace

Reported report_of(Digest digest,
                   const analyze::Options& options,
                   const analyze::Reference& reference,
                   analyze::RunFacts facts) {
  Reported reported = Reporter(std::move(digest), options, reference).run();
  analyze::finish(std::move(facts), reported.report);
  return reported;
}

}  // namespace rangescope::analyze::tally
