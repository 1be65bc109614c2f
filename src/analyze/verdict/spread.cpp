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
  constexpr double kTogether = 0.1;  // of the time of the one that had it open for the least
  const double sum_ns = across.mean_ns * static_cast<double>(across.parts);
  return sum_ns - open_ns < kTogether * across.min_ns;
}

/// What the first occurrences took longer than the rest.
double warm_up_ns(const Case& known, std::size_t row) {
  const model::Region& region = known.region(row);
  if (!region.steady || region.steady->left_out <= 0 || nested(region))
    return 0;
  const double usual = region.steady->wall_ns.mean * static_cast<double>(region.steady->left_out);
  const double more = region.steady->left_out_ns - usual;
  return more >= kWarmUp * region.wall.inclusive_ns ? more / known.side_by_side(row) : 0;
}

}  // namespace

void find_warm_up(const Case& known, std::vector<model::Verdict>& out) {
  const auto saves = [&](std::size_t row) { return warm_up_ns(known, row); };
  for (const std::size_t row : known.worst(saves)) {
    const model::Region& region = known.region(row);
    const model::Steady& steady = *region.steady;
    if (!known.matters(saves(row)))
      continue;
    const std::string which = steady.left_out == 1
                                  ? fmt::format("the first of {} instances takes {}",
                                                base::format_count(region.occurrences),
                                                format_ns(steady.longest_ns))
                                  : fmt::format("the first {} of {} instances take up to {}",
                                                base::format_count(steady.left_out),
                                                base::format_count(region.occurrences),
                                                format_ns(steady.longest_ns));
    model::Verdict verdict =
        known.about("warm_up",
                    row,
                    fmt::format("warm-up is {} of its time: {}, the others {}",
                                share_text(steady.left_out_ns / region.wall.inclusive_ns),
                                which,
                                format_ns(steady.wall_ns.median)),
                    saves(row));
    verdict.evidence = {{"left_out", static_cast<double>(steady.left_out)},
                        {"occurrences", static_cast<double>(region.occurrences)},
                        {"longest_ns", steady.longest_ns},
                        {"wall_ns.median", steady.wall_ns.median},
                        {"wall_ns.p95", steady.wall_ns.p95},
                        {"share_of_region", steady.left_out_ns / region.wall.inclusive_ns}};
    known.show_page(verdict);
    out.push_back(std::move(verdict));
  }
}

void find_throttled(const Case& known, std::vector<model::Verdict>& out) {
  const auto share_of = [&](std::size_t row) {
    const auto* share = model::known_metric(known.region(row).metrics, "clock_limited");
    return share == nullptr ? 0.0 : share->value;
  };
  const auto held_ns = [&](std::size_t row) {
    const auto& gpu = known.region(row).gpu;
    const double share = share_of(row);
    return gpu && share >= kThrottled ? share * gpu->busy_ns / known.gpus_side_by_side(row) : 0.0;
  };
  for (const std::size_t row : known.worst(held_ns, 1)) {
    if (!known.matters(held_ns(row)))
      continue;
    const double share = share_of(row);
    std::string text = fmt::format(
        "clocks throttled during {} of its GPU work (power, heat or the board)", share_text(share));
    const auto* clock = model::known_metric(known.region(row).metrics, "sm_clock");
    if (clock != nullptr)
      text += fmt::format("; {:.0f} MHz on average", clock->value * 1e-6);
    model::Verdict verdict = known.about("clock_limited", row, std::move(text), std::nullopt);
    verdict.evidence = {{"metrics.clock_limited", share}};
    if (clock != nullptr)
      verdict.evidence["metrics.sm_clock"] = clock->value;
    verdict.next = "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER";
    out.push_back(std::move(verdict));
  }
}

void find_uneven(const Case& known, std::vector<model::Verdict>& out) {
  const auto above_median = [](const model::Steady& steady) {
    return steady.wall_total_ns - steady.wall_ns.median * static_cast<double>(steady.occurrences);
  };
  const auto saves = [&](std::size_t row) {
    const auto& steady = known.region(row).steady;
    if (known.region(row).domain == "python")
      return 0.0;  // one function does different work in each call
    if (has_different_work(known.region(row)))
      return 0.0;
    if (!steady || static_cast<double>(steady->occurrences) < kUnevenCount ||
        nested(known.region(row)))
      return 0.0;
    if (steady->wall_ns.median < kTooShortNs)
      return 0.0;  // that is the recording's own
    const bool wide = steady->wall_ns.p95 > kUnevenTimes * steady->wall_ns.median;
    const double more = above_median(*steady);
    return wide && more >= kUnevenShare * steady->wall_total_ns ? more / known.side_by_side(row)
                                                                : 0.0;
  };
  for (const std::size_t row : known.worst(saves, 1)) {
    if (!known.matters(saves(row)))
      continue;
    const model::Steady& steady = *known.region(row).steady;
    model::Verdict verdict =
        known.about("uneven_occurrences",
                    row,
                    fmt::format("jitter: median {}, p95 {}, max {} of {} instances{}",
                                format_ns(steady.wall_ns.median),
                                format_ns(steady.wall_ns.p95),
                                format_ns(steady.wall_ns.max),
                                base::format_count(steady.occurrences),
                                steady.left_out > 0 ? " in steady state" : ""),
                    saves(row));
    verdict.evidence = {{"wall_ns.median", steady.wall_ns.median},
                        {"wall_ns.p95", steady.wall_ns.p95},
                        {"wall_ns.max", steady.wall_ns.max},
                        {"occurrences", static_cast<double>(steady.occurrences)}};
    known.show_page(verdict);
    out.push_back(std::move(verdict));
  }
}

void find_imbalance(const Case& known, std::vector<model::Verdict>& out) {
  const bool straggler =
      std::any_of(out.begin(), out.end(), [](const auto& one) { return one.kind == "straggler"; });
  const auto saves = [&](std::size_t row) {
    const auto& across = known.region(row).across;
    if (across && !across->of_threads && straggler)
      return 0.0;  // reported already, with its cause
    if (!across || across->imbalance < kImbalance || has_different_work(known.region(row)))
      return 0.0;
    const double open_ns = known.region(row).wall.open_ns;
    if (run_one_after_the_other(*across, open_ns))
      return 0.0;
    // What the others do before or after the slowest does not wait for it.
    const double apart = std::max(0.0, open_ns - across->max_ns);
    return std::max(0.0, across->max_ns - across->mean_ns - apart);
  };
  for (const std::size_t row : known.worst(saves, 1)) {
    if (!known.matters(saves(row)))
      continue;
    const model::Across& across = *known.region(row).across;
    const model::Report& report = known.report();
    std::string slowest = fmt::format("thread {}", across.slowest);
    if (!across.of_threads && across.slowest < report.processes.size()) {
      const model::ReportProcess& process = report.processes[across.slowest];
      slowest = process.rank ? fmt::format("rank {}", *process.rank)
                             : fmt::format("process {}", process.pid);
    }
    model::Verdict verdict =
        known.about(across.of_threads ? "uneven_threads" : "uneven_processes",
                    row,
                    fmt::format("{} take from {} to {}: {} is {} above the mean",
                                base::counted(static_cast<std::uint64_t>(across.parts),
                                              across.of_threads ? "thread" : "process"),
                                format_ns(across.min_ns),
                                format_ns(across.max_ns),
                                slowest,
                                share_text(across.imbalance)),
                    saves(row));
    if (!across.of_threads)
      verdict.process = across.slowest;
    verdict.evidence = {{"parts", static_cast<double>(across.parts)},
                        {"min_ns", across.min_ns},
                        {"mean_ns", across.mean_ns},
                        {"max_ns", across.max_ns},
                        {"imbalance", across.imbalance}};
    verdict.next = known.show(across.of_threads ? "--per-thread --all" : "--all");
    out.push_back(std::move(verdict));
  }
}

}  // namespace rangescope::analyze
