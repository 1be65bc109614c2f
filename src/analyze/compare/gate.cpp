#include "analyze/compare/gate.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

using model::Change;
using model::GateVerdict;
using model::Standing;

std::string percent(double ratio) {
  const double change = (ratio - 1) * 100;
  return std::abs(change) < 0.05 ? "0.0 %" : fmt::format("{:+.1f} %", change);
}

/// Fewer runs a side have no 95 % interval (the smallest p of a permutation test of 4 against 4 is 1/70).
constexpr std::size_t kFewestRuns = 5;

/// Runs a side after which an interval as wide as [ratio, upper] would no longer hold the limit. Its width falls with
/// the square root of the number of runs.
std::size_t runs_to_decide(double ratio, double upper, double most, std::size_t runs) {
  constexpr double kMost = 1000;
  const double distance = std::max(std::abs(most - ratio), 0.001);
  const double factor = (upper - ratio) / distance;
  return static_cast<std::size_t>(std::clamp(std::ceil(static_cast<double>(runs) * factor * factor),
                                             static_cast<double>(std::max(kFewestRuns, runs + 1)), kMost));
}

/// Of counted values: any change is real, and what exceeds the limit fails.
model::GateCheck checked_exactly(const Change& change, double limit) {
  model::GateCheck check;
  const bool is_beyond = change.ratio ? *change.ratio >= 1 + limit : change.difference > 0;
  if (is_beyond && change.difference > 0) check.verdict = GateVerdict::kRegressed;
  check.text = change.difference > 0 ? "grew from 0" : "0.0 %";
  if (change.ratio) check.text = percent(*change.ratio);
  check.text += ", counted";
  return check;
}

model::GateCheck checked(const model::ComparedValue& value, bool by_runs, double limit, std::size_t runs) {
  model::GateCheck check;
  const Change& change = value.changes[0];
  if (change.is_exact) return checked_exactly(change, limit);
  if (change.standing == Standing::kUntested) {
    check.verdict = GateVerdict::kUndecided;
    check.text = change.why;
    if (by_runs || !change.ratio) return check;
    check.runs_to_decide = kFewestRuns;
    check.text = fmt::format("{} so far; {}; {} runs per side decide", percent(*change.ratio), change.why, kFewestRuns);
    return check;
  }
  const double most = 1 + limit;
  const std::string ratio = change.ratio ? percent(*change.ratio) : fmt::format("{:+g} from 0", change.difference);
  const std::string between = change.low
                                  ? fmt::format(", between {} and {} with {:.0f} % confidence", percent(*change.low),
                                                percent(*change.high), change.confidence * 100)
                                  : "";
  const double upper = std::max(change.high.value_or(0), change.ratio.value_or(0));
  if (change.standing == Standing::kMore) {
    const double reached = by_runs ? upper : change.ratio.value_or(0);
    if (!change.ratio || reached >= most) check.verdict = GateVerdict::kRegressed;
    check.text = fmt::format("{}{}, p {:.3g}", ratio, between, *change.p);
    return check;
  }
  check.text = ratio + between + "; not significant";
  if (upper < most) return check;
  check.hidden = true;
  check.verdict = GateVerdict::kUndecided;
  if (change.low.value_or(0) >= most) {  // alone it would be: the adjustment for all values takes more runs
    check.runs_to_decide = 2 * std::max(kFewestRuns, by_runs ? runs : 1);
    check.text += fmt::format(" among all values, though beyond the limit; about {} runs per side would decide",
                              *check.runs_to_decide);
    return check;
  }
  check.runs_to_decide = runs_to_decide(change.ratio.value_or(1), upper, most, by_runs ? runs : 1);
  check.text +=
      fmt::format(", which is too wide for the limit; about {} runs per side would decide", *check.runs_to_decide);
  return check;
}

}  // namespace

CompareOptions gate_comparison() {
  CompareOptions options;
  options.usual = {"wall_ns.min", "wall_ns.median", "gpu.busy_ns"};
  options.alpha = 0.025;
  options.tail = Tail::kMore;
  return options;
}

base::Result<model::Gate> gate(model::Comparison comparison, const GateOptions& options, bool regions_required) {
  // Where GPUs were used they are the machine; else its CPU is.
  const bool gpus = !comparison.sides[0].devices.empty() || !comparison.sides[1].devices.empty();
  for (const model::EnvironmentDifference& difference : comparison.environment) {
    const bool machine = difference.what == "GPU" || (!gpus && difference.what == "cpu");
    if (options.any_machine || !machine) continue;
    return base::fail(
        base::Code::kNotComparable,
        fmt::format("the baseline is from another machine: {} is '{}' there and '{}' here", difference.what,
                    base::printable(difference.values[0]), base::printable(difference.values[1])),
        comparison.sides[0].label, "Save a baseline on this machine, or compare anyway with --any-machine");
  }
  if (comparison.sides[1].failed > 0)
    return base::fail(base::Code::kNotComparable, "the program failed, so what it did cannot be judged",
                      comparison.sides[1].label, "Make it end with 0 first");
  for (const model::ComparedRegion& region : comparison.regions)
    for (const model::ComparedValue& value : region.values)
      if (value.tag.starts_with("metrics.") && value.tag.ends_with("/s"))
        return base::fail(base::Code::kUsage,
                          "more of '" + base::printable(value.tag.substr(8)) + "' is better, and a gate fails on more",
                          "--metric", "Gate on the time that it takes: --metric wall_ns.median");
  if (regions_required) {
    for (const model::ComparedRegion& region : comparison.missing) {
      if (region.occurrences[1]) continue;
      return base::fail(base::Code::kNotComparable,
                        "the run has no range '" + base::printable(model::path_text(region.domain, region.path)) +
                            "', which the baseline has",
                        comparison.sides[1].label,
                        "Join a renamed range with --rename OLD=NEW, or save a new baseline");
    }
  }
  model::Gate out;
  out.max_regression = options.max_regression;
  out.comparison = std::move(comparison);
  const bool by_runs = out.comparison.noise == "runs";
  bool decided = false;
  const std::size_t runs = std::min(out.comparison.sides[0].runs, out.comparison.sides[1].runs);
  for (std::size_t r = 0; r < out.comparison.regions.size(); ++r) {
    const model::ComparedRegion& region = out.comparison.regions[r];
    for (std::size_t v = 0; v < region.values.size(); ++v) {
      if (!model::is_compared(region, region.values[v])) continue;
      model::GateCheck check = checked(region.values[v], by_runs, options.max_regression, runs);
      check.region = r;
      check.value = v;
      if (check.verdict == GateVerdict::kRegressed) out.verdict = GateVerdict::kRegressed;
      if (check.hidden && out.verdict == GateVerdict::kPassed) out.verdict = GateVerdict::kUndecided;
      decided = decided || check.verdict != GateVerdict::kUndecided;
      out.checks.push_back(std::move(check));
    }
  }
  if (!decided) out.verdict = GateVerdict::kUndecided;
  // Regressed ones first, then what is open, most change first: both orders are those of the comparison.
  std::stable_sort(out.checks.begin(), out.checks.end(), [](const model::GateCheck& a, const model::GateCheck& b) {
    const auto rank = [](const model::GateCheck& check) {
      return check.verdict == GateVerdict::kRegressed ? 0 : check.hidden ? 1 : 2;
    };
    return rank(a) < rank(b);
  });
  return out;
}

bool enough_runs(std::span<const model::Digest> runs, double limit) {
  if (runs.size() < kFewestRuns) return false;
  constexpr double kShare = 0.01, kQuantile = 2.1;  // of the run; of t at 95 % and about 18 degrees of freedom
  const auto n = static_cast<double>(runs.size());
  for (const model::DigestRegion& region : runs.front().regions) {
    const auto wall = region.values.find("wall_ns.inclusive");
    if (wall == region.values.end() || wall->second < kShare * runs.front().run.duration_ns) continue;
    for (const std::string& tag : gate_comparison().usual) {
      double sum = 0, squares = 0, count = 0;
      for (const model::Digest& run : runs)
        for (const model::DigestRegion& one : run.regions) {
          const auto found = one.values.find(tag);
          if (one.path != region.path || one.domain != region.domain || one.kind != region.kind ||
              found == one.values.end() || found->second <= 0)
            continue;
          const double value = std::log(found->second);
          sum += value, squares += value * value, ++count;
        }
      if (count < n) continue;  // not in every run: nothing is tested
      const double deviation = std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
      if (kQuantile * deviation * std::sqrt(2 / n) > limit / 2) return false;
    }
  }
  return true;
}

}  // namespace rangescope::analyze
