#include "analyze/ranks/activity.hpp"

#include <algorithm>
#include <map>

#include "analyze/statistics/stretches.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

/// Fills Report::activity: what ranks did in each of kActivityBins parts of the run.
class Activity {
 public:
  Activity(const Session& session,
           const Tree& tree,
           const Surroundings& surroundings,
           model::Report& report)
      : session_(session),
        tree_(tree),
        surroundings_(surroundings),
        report_(report),
        begin_ns_(session.begin_ns),
        end_ns_(session.end_ns),
        bin_ns_(static_cast<double>(length_ns(begin_ns_, end_ns_)) / kActivityBins),
        ranks_(report.ranks.size()) {
    for (std::size_t place = 0; place < report.ranks.size(); ++place)
      place_of_rank_[report.ranks[place].rank] = place;
    report.activity.resize(report.ranks.size());
    for (model::RankActivity& activity : report.activity)
      for (auto* bins : {&activity.compute, &activity.transfer, &activity.wait})
        bins->assign(kActivityBins, 0);
  }

  void fill(const std::vector<Timed>& timed, int threads) {
    add_calls(timed);
    add_ranges();
    add_kernels();
    base::parallel_for(ranks_.size(), threads, [&](std::size_t rank) { finish(rank); });
  }

 private:
  struct OfRank {
    Stretches ranges, calls;
    std::vector<const Stretches*> kernels;
  };

  std::size_t place_of_process(std::uint32_t process) {
    return place_of_rank_[session_.processes[process].rank];
  }

  [[nodiscard]] std::int64_t edge_ns(std::size_t bin) const {
    if (bin == kActivityBins)
      return end_ns_;
    return begin_ns_ + static_cast<std::int64_t>(bin_ns_ * static_cast<double>(bin));
  }

  /// Adds a stretch of time to the bins, as a share of each, but for what lies in `without`, which
  /// may be null.
  void spread(std::int64_t from_ns,
              std::int64_t to_ns,
              const Stretches* without,
              std::vector<float>& bins) const {
    from_ns = std::max(from_ns, begin_ns_);
    to_ns = std::min(to_ns, end_ns_);
    if (to_ns <= from_ns)
      return;
    const auto first = static_cast<std::size_t>(static_cast<double>(from_ns - begin_ns_) / bin_ns_);
    for (std::size_t bin = std::min(first, kActivityBins - 1);
         bin < kActivityBins && edge_ns(bin) < to_ns;
         ++bin) {
      const std::int64_t part_begin_ns = std::max(from_ns, edge_ns(bin));
      const std::int64_t part_end_ns = std::min(to_ns, edge_ns(bin + 1));
      if (part_end_ns <= part_begin_ns)
        continue;
      std::int64_t covered_ns = part_end_ns - part_begin_ns;
      if (without != nullptr)
        covered_ns -= without->within(part_begin_ns, part_end_ns);
      bins[bin] += static_cast<float>(static_cast<double>(covered_ns) / bin_ns_);
    }
  }

  void add_calls(const std::vector<Timed>& timed) {
    for (const Timed& call_times : timed) {
      const CollectiveCall& call = *call_times.call;
      const std::size_t rank = place_of_process(call.process);
      const std::int64_t transfer_ns =
          call.start_ns + static_cast<std::int64_t>(call_times.wait_ns);
      const Stretches* kernels = surroundings_.other_kernels(call.process, call.stream);
      model::RankActivity& activity = report_.activity[rank];
      spread(call.start_ns, transfer_ns, kernels, activity.wait);
      spread(transfer_ns, call.end_ns, kernels, activity.transfer);
      ranks_[rank].calls.add(call.start_ns, call.end_ns);
    }
  }

  void add_ranges() {
    for (std::uint32_t occurrence = 0; occurrence < tree_.range_of.size(); ++occurrence) {
      if (tree_.range_of[occurrence] == kNone || tree_.parent[occurrence] != kNone)
        continue;
      const model::Range& range = session_.ranges[tree_.range_of[occurrence]];
      const std::uint32_t process = session_.threads[range.thread].process;
      const bool is_work =
          range.kind == model::RangeKind::kPushPop && !is_communication(session_, range);
      if (is_work && session_.processes[process].rank != kNone)
        ranks_[place_of_process(process)].ranges.add(range.start_ns,
                                                     std::min(range.end_ns, end_ns_));
    }
  }

  void add_kernels() {
    for (std::uint32_t process = 0; process < session_.processes.size(); ++process) {
      const Stretches* kernels = surroundings_.other_kernels(process, kNone);
      if (kernels == nullptr || kernels->empty())
        continue;
      if (session_.processes[process].rank != kNone)
        ranks_[place_of_process(process)].kernels.push_back(kernels);
    }
  }

  /// Without a GPU a rank computes in ranges, but for calls of communication.
  void finish(std::size_t rank) {
    OfRank& of_rank = ranks_[rank];
    of_rank.ranges.finish();
    of_rank.calls.finish();
    model::RankActivity& activity = report_.activity[rank];
    for (std::size_t bin = 0; bin < kActivityBins; ++bin) {
      std::int64_t busy_ns = 0;
      for (const Stretches* kernels : of_rank.kernels)
        busy_ns += kernels->within(edge_ns(bin), edge_ns(bin + 1));
      if (of_rank.kernels.empty()) {
        const std::int64_t in_ranges_ns = of_rank.ranges.within(edge_ns(bin), edge_ns(bin + 1));
        const std::int64_t in_calls_ns = of_rank.calls.within(edge_ns(bin), edge_ns(bin + 1));
        busy_ns = std::max<std::int64_t>(0, in_ranges_ns - in_calls_ns);
      }
      activity.compute[bin] = static_cast<float>(static_cast<double>(busy_ns) / bin_ns_);
      for (auto* bins : {&activity.compute, &activity.transfer, &activity.wait})
        (*bins)[bin] = std::min((*bins)[bin], 1.0F);
    }
  }

  const Session& session_;
  const Tree& tree_;
  const Surroundings& surroundings_;
  model::Report& report_;
  std::int64_t begin_ns_, end_ns_;
  double bin_ns_;
  std::map<std::uint32_t, std::size_t> place_of_rank_;  ///< index in Report::ranks
  std::vector<OfRank> ranks_;
};

}  // namespace

void add_activity(const Regions& regions,
                  const Surroundings& surroundings,
                  const std::vector<Timed>& timed,
                  model::Report& report) {
  const Session& session = regions.session;
  const bool is_long_enough =
      length_ns(session.begin_ns, session.end_ns) >= static_cast<std::int64_t>(kActivityBins);
  if (is_long_enough)
    Activity(session, regions.tree, surroundings, report).fill(timed, regions.options.threads);
}

}  // namespace rangescope::analyze
