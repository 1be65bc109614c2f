// Occurrences, processes and threads that are unlike each other.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/units.hpp"
#include "model/backward.hpp"

namespace rangescope::analyze {
namespace {

using base::format_ns;

/// Whether occurrences lie in one another, as below kDeepest ranges: their times say nothing side
/// by side.
bool nested(const model::Region& region) {
  return region.steady->left_out_ns + region.steady->wall_total_ns > 1.5 * region.wall.inclusive_ns;
}

/// A module's ranges in several threads are its forward pass in one and parts of its backward pass
/// in another; those of the backward pass are of some of its functions each.
bool has_different_work(const model::Region& region) {
  const bool is_of_threads = region.across && region.across->of_threads;
  return region.module && (is_of_threads || region.path.front() == model::kBackward);
}

/// Processes, or threads, that hardly ever had the range open at once: none waited for another.
bool run_one_after_the_other(const model::Across& across, double open_ns) {
  constexpr double kTogether = 0.1;  // of the shortest open time among them
  const double sum_ns = across.mean_ns * static_cast<double>(across.parts);
  return sum_ns - open_ns < kTogether * across.min_ns;
}

/// What the first occurrences took longer than the rest.
double warm_up_ns(const Case& facts, std::size_t row) {
  const model::Region& region = facts.region(row);
  if (!region.steady || region.steady->left_out <= 0 || nested(region))
    return 0;
  const double usual_ns =
      region.steady->wall_ns.mean * static_cast<double>(region.steady->left_out);
  const double excess_ns = region.steady->left_out_ns - usual_ns;
  const bool is_large = excess_ns >= kWarmUp * region.wall.inclusive_ns;
  return is_large ? excess_ns / facts.side_by_side(row) : 0;
}

/// "the first 3 of 100 instances take up to 12.0 ms"
std::string first_instances_text(const model::Region& region) {
  const model::Steady& steady = *region.steady;
  const std::string instances = base::format_count(region.occurrences);
  const std::string longest = format_ns(steady.longest_ns);
  if (steady.left_out == 1)
    return fmt::format("the first of {} instances takes {}", instances, longest);
  const std::string first = base::format_count(steady.left_out);
  return fmt::format("the first {} of {} instances take up to {}", first, instances, longest);
}

/// What instances above the median took in addition to it.
double above_median_ns(const model::Steady& steady) {
  return steady.wall_total_ns - steady.wall_ns.median * static_cast<double>(steady.occurrences);
}

/// What an uneven region would save if no instance took longer than the median; else 0.
double jitter_ns(const Case& facts, std::size_t row) {
  const model::Region& region = facts.region(row);
  const auto& steady = region.steady;
  if (region.domain == "python")
    return 0;  // one function does different work in each call
  if (has_different_work(region) || !steady)
    return 0;
  const bool has_enough = !(static_cast<double>(steady->occurrences) < kUnevenCount);
  if (!has_enough || nested(region))
    return 0;
  if (steady->wall_ns.median < kTooShortNs)
    return 0;  // that is the recording's own
  const bool is_wide = steady->wall_ns.p95 > kUnevenTimes * steady->wall_ns.median;
  const double excess_ns = above_median_ns(*steady);
  if (!is_wide || !(excess_ns >= kUnevenShare * steady->wall_total_ns))
    return 0;
  return excess_ns / facts.side_by_side(row);
}

/// "thread 2", "rank 3", "process 4711"
std::string slowest_text(const model::Report& report, const model::Across& across) {
  if (across.of_threads || across.slowest >= report.processes.size())
    return fmt::format("thread {}", across.slowest);
  const model::ReportProcess& process = report.processes[across.slowest];
  if (process.rank)
    return fmt::format("rank {}", *process.rank);
  return fmt::format("process {}", process.pid);
}

}  // namespace

void find_warm_up(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) { return warm_up_ns(facts, row); };
  for (const std::size_t row : facts.worst(saves)) {
    const model::Region& region = facts.region(row);
    const model::Steady& steady = *region.steady;
    if (!facts.matters(saves(row)))
      continue;
    const double share = steady.left_out_ns / region.wall.inclusive_ns;
    std::string text = fmt::format("warm-up is {} of its time: {}, the others {}",
                                   share_text(share),
                                   first_instances_text(region),
                                   format_ns(steady.wall_ns.median));
    model::Verdict verdict = facts.about("warm_up", row, std::move(text), saves(row));
    verdict.evidence = {{"left_out", static_cast<double>(steady.left_out)},
                        {"occurrences", static_cast<double>(region.occurrences)},
                        {"longest_ns", steady.longest_ns},
                        {"wall_ns.median", steady.wall_ns.median},
                        {"wall_ns.p95", steady.wall_ns.p95},
                        {"share_of_region", share}};
    facts.show_page(verdict);
    out.push_back(std::move(verdict));
  }
}

void find_throttled(const Case& facts, std::vector<model::Verdict>& out) {
  const auto share_of = [&](std::size_t row) {
    const auto* share = model::known_metric(facts.region(row).metrics, "clock_limited");
    return share == nullptr ? 0.0 : share->value;
  };
  const auto throttled_ns = [&](std::size_t row) {
    const auto& gpu = facts.region(row).gpu;
    const double share = share_of(row);
    if (!gpu || !(share >= kThrottled))
      return 0.0;
    return share * gpu->busy_ns / facts.gpus_side_by_side(row);
  };
  for (const std::size_t row : facts.worst(throttled_ns, 1)) {
    if (!facts.matters(throttled_ns(row)))
      continue;
    const double share = share_of(row);
    std::string text = fmt::format(
        "clocks throttled during {} of its GPU work (power, heat or the board)", share_text(share));
    const auto* clock = model::known_metric(facts.region(row).metrics, "sm_clock");
    if (clock != nullptr)
      text += fmt::format("; {:.0f} MHz on average", clock->value * 1e-6);
    model::Verdict verdict = facts.about("clock_limited", row, std::move(text), std::nullopt);
    verdict.evidence = {{"metrics.clock_limited", share}};
    if (clock != nullptr)
      verdict.evidence["metrics.sm_clock"] = clock->value;
    verdict.next = "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER";
    out.push_back(std::move(verdict));
  }
}

void find_uneven(const Case& facts, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) { return jitter_ns(facts, row); };
  for (const std::size_t row : facts.worst(saves, 1)) {
    if (!facts.matters(saves(row)))
      continue;
    const model::Steady& steady = *facts.region(row).steady;
    std::string text = fmt::format("jitter: median {}, p95 {}, max {} of {} instances",
                                   format_ns(steady.wall_ns.median),
                                   format_ns(steady.wall_ns.p95),
                                   format_ns(steady.wall_ns.max),
                                   base::format_count(steady.occurrences));
    if (steady.left_out > 0)
      text += " in steady state";
    model::Verdict verdict = facts.about("uneven_occurrences", row, std::move(text), saves(row));
    verdict.evidence = {{"wall_ns.median", steady.wall_ns.median},
                        {"wall_ns.p95", steady.wall_ns.p95},
                        {"wall_ns.max", steady.wall_ns.max},
                        {"occurrences", static_cast<double>(steady.occurrences)}};
    facts.show_page(verdict);
    out.push_back(std::move(verdict));
  }
}

void find_imbalance(const Case& facts, std::vector<model::Verdict>& out) {
  const bool has_straggler =
      std::ranges::find(out, "straggler", &model::Verdict::kind) != out.end();
  const auto saves = [&](std::size_t row) {
    const auto& across = facts.region(row).across;
    if (across && !across->of_threads && has_straggler)
      return 0.0;  // reported already, with its cause
    if (!across || across->imbalance < kImbalance || has_different_work(facts.region(row)))
      return 0.0;
    const double open_ns = facts.region(row).wall.open_ns;
    if (run_one_after_the_other(*across, open_ns))
      return 0.0;
    // What the others do before or after the slowest does not wait for it.
    const double apart = std::max(0.0, open_ns - across->max_ns);
    return std::max(0.0, across->max_ns - across->mean_ns - apart);
  };
  for (const std::size_t row : facts.worst(saves, 1)) {
    if (!facts.matters(saves(row)))
      continue;
    const model::Across& across = *facts.region(row).across;
    const std::string_view noun = across.of_threads ? "thread" : "process";
    const std::string_view kind = across.of_threads ? "uneven_threads" : "uneven_processes";
    std::string text = fmt::format("{} take from {} to {}: {} is {} above the mean",
                                   base::counted(static_cast<std::uint64_t>(across.parts), noun),
                                   format_ns(across.min_ns),
                                   format_ns(across.max_ns),
                                   slowest_text(facts.report(), across),
                                   share_text(across.imbalance));
    model::Verdict verdict = facts.about(kind, row, std::move(text), saves(row));
    if (!across.of_threads)
      verdict.process = across.slowest;
    verdict.evidence = {{"parts", static_cast<double>(across.parts)},
                        {"min_ns", across.min_ns},
                        {"mean_ns", across.mean_ns},
                        {"max_ns", across.max_ns},
                        {"imbalance", across.imbalance}};
    verdict.next = facts.show(across.of_threads ? "--per-thread --all" : "--all");
    out.push_back(std::move(verdict));
  }
}

}  // namespace rangescope::analyze
