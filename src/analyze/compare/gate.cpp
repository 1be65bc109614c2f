#include "analyze/compare/gate.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "analyze/compare/compare_functions.hpp"
#include "base/text.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

using model::Change;
using model::GateVerdict;
using model::Standing;

std::string percent(double ratio) {
  const double change = (ratio - 1) * 100;
  if (std::abs(change) < 0.05)
    return "0.0 %";
  return fmt::format("{:+.1f} %", change);
}

/// Fewer runs a side have no 95 % interval (the smallest p of a permutation test of 4 against 4 is
/// 1/70).
constexpr std::size_t kFewestRuns = 5;

/// Runs a side after which an interval as wide as [ratio, upper] would no longer hold the limit.
/// Its width falls with the square root of the number of runs.
std::size_t runs_to_decide(double ratio, double upper, double max_ratio, std::size_t runs) {
  constexpr double kMost = 1000;
  const double distance = std::max(std::abs(max_ratio - ratio), 0.001);
  const double factor = (upper - ratio) / distance;
  return static_cast<std::size_t>(std::clamp(std::ceil(static_cast<double>(runs) * factor * factor),
                                             static_cast<double>(std::max(kFewestRuns, runs + 1)),
                                             kMost));
}

/// Of counted values: any change is real, and what exceeds the limit fails.
model::GateCheck checked_exactly(const Change& change, double limit) {
  model::GateCheck check;
  const bool is_beyond = change.ratio ? *change.ratio >= 1 + limit : change.difference > 0;
  if (is_beyond && change.difference > 0)
    check.verdict = GateVerdict::kRegressed;
  check.text = change.difference > 0 ? "grew from 0" : "0.0 %";
  if (change.ratio)
    check.text = percent(*change.ratio);
  check.text += ", counted";
  return check;
}

/// "+3.1 %", "+12 from 0"
std::string ratio_text(const Change& change) {
  if (change.ratio)
    return percent(*change.ratio);
  return fmt::format("{:+g} from 0", change.difference);
}

/// ", between +1.0 % and +5.2 % with 95 % confidence"; "" where there is no interval.
std::string interval_text(const Change& change) {
  if (!change.low)
    return {};
  return fmt::format(", between {} and {} with {:.0f} % confidence",
                     percent(*change.low),
                     percent(*change.high),
                     change.confidence * 100);
}

model::GateCheck checked(const model::ComparedValue& value,
                         bool by_runs,
                         double limit,
                         std::size_t runs) {
  model::GateCheck check;
  const Change& change = value.changes[0];
  if (change.is_exact)
    return checked_exactly(change, limit);
  if (change.standing == Standing::kUntested) {
    check.verdict = GateVerdict::kUndecided;
    check.text = change.why;
    if (by_runs || !change.ratio)
      return check;
    check.runs_to_decide = kFewestRuns;
    check.text = fmt::format(
        "{} so far; {}; {} runs per side decide", percent(*change.ratio), change.why, kFewestRuns);
    return check;
  }
  const double max_ratio = 1 + limit;
  const double upper = std::max(change.high.value_or(0), change.ratio.value_or(0));
  if (change.standing == Standing::kMore) {
    const double reached = by_runs ? upper : change.ratio.value_or(0);
    if (!change.ratio || reached >= max_ratio)
      check.verdict = GateVerdict::kRegressed;
    check.text =
        fmt::format("{}{}, p {:.3g}", ratio_text(change), interval_text(change), *change.p);
    const bool failed = check.verdict == GateVerdict::kRegressed;
    if (failed && change.ratio && *change.ratio < max_ratio)
      check.text +=
          fmt::format("; below the limit of {:g} %, but its interval reaches it", limit * 100);
    return check;
  }
  check.text = ratio_text(change) + interval_text(change) + "; not significant";
  if (upper < max_ratio)
    return check;
  check.hidden = true;
  check.verdict = GateVerdict::kUndecided;
  const std::size_t tested_runs = by_runs ? runs : 1;
  // Alone it would be significant: the adjustment for all values takes more runs.
  const bool is_beyond_limit = change.low.value_or(0) >= max_ratio;
  if (is_beyond_limit) {
    check.runs_to_decide = 2 * std::max(kFewestRuns, tested_runs);
    check.text += fmt::format(
        " among all values, though beyond the limit; about {} runs per side would decide",
        *check.runs_to_decide);
    return check;
  }
  check.runs_to_decide = runs_to_decide(change.ratio.value_or(1), upper, max_ratio, tested_runs);
  check.text +=
      fmt::format(", which is too wide for the limit; about {} runs per side would decide",
                  *check.runs_to_decide);
  return check;
}

bool is_small_function(const model::ComparedFunction& function) {
  const auto is_small_share = [](const std::optional<double>& share) {
    return share.value_or(0) < kLeastFunctionShare;
  };
  return std::ranges::all_of(function.share, is_small_share);
}

bool grew(const model::ComparedFunction& function) {
  return function.self.changes[0].standing == Standing::kMore && !is_small_function(function);
}

/// Where GPUs were used they are the machine; else its CPU is.
base::Result<void> check_machine(const model::Comparison& comparison) {
  const bool has_gpus =
      !comparison.sides[0].devices.empty() || !comparison.sides[1].devices.empty();
  for (const model::EnvironmentDifference& difference : comparison.environment) {
    const bool is_machine = difference.what == "GPU" || (!has_gpus && difference.what == "cpu");
    if (!is_machine)
      continue;
    return base::fail(
        base::Code::kNotComparable,
        fmt::format("the baseline is from another machine: {} is '{}' there and '{}' here",
                    difference.what,
                    base::printable(difference.values[0]),
                    base::printable(difference.values[1])),
        comparison.sides[0].label,
        "Save a baseline on this machine, or compare anyway with --any-machine");
  }
  return {};
}

base::Result<void> check_values(const model::Comparison& comparison) {
  for (const model::ComparedRegion& region : comparison.regions) {
    for (const model::ComparedValue& value : region.values) {
      const bool is_rate = value.tag.starts_with("metrics.") && value.tag.ends_with("/s");
      if (!is_rate)
        continue;
      const std::string name = base::printable(value.tag.substr(8));
      return base::fail(base::Code::kUsage,
                        "more of '" + name + "' is better, and a gate fails on more",
                        "--metric",
                        "Gate on the time that it takes: --metric wall_ns.median");
    }
  }
  return {};
}

/// Are the regions there that must be: those that were named, and with `strict` the largest?
base::Result<void> check_regions(const model::Comparison& comparison,
                                 bool strict,
                                 bool regions_required) {
  const std::string hint = "Join a renamed range with --rename OLD=NEW, or save a new baseline";
  if (strict && !comparison.largest_gone.empty()) {
    const std::string name = base::printable(comparison.largest_gone);
    return base::fail(base::Code::kNotComparable,
                      "the largest range of the baseline is gone: " + name,
                      comparison.sides[1].label,
                      hint);
  }
  if (!regions_required)
    return {};
  for (const model::ComparedRegion& region : comparison.missing) {
    if (region.occurrences[1])
      continue;
    const std::string name = base::printable(model::path_text(region.domain, region.path));
    return base::fail(base::Code::kNotComparable,
                      "the run has no range '" + name + "', which the baseline has",
                      comparison.sides[1].label,
                      hint);
  }
  return {};
}

/// A check per known value, and per function that grew significantly, in the order of the
/// comparison.
std::vector<model::GateCheck> checks_of(const model::Comparison& comparison, double limit) {
  const bool by_runs = comparison.noise == "runs";
  const std::size_t runs = std::min(comparison.sides[0].runs, comparison.sides[1].runs);
  std::vector<model::GateCheck> checks;
  for (std::size_t r = 0; r < comparison.regions.size(); ++r) {
    const model::ComparedRegion& region = comparison.regions[r];
    for (std::size_t v = 0; v < region.values.size(); ++v) {
      if (!model::is_known(region.values[v]))
        continue;
      model::GateCheck& check =
          checks.emplace_back(checked(region.values[v], by_runs, limit, runs));
      check.region = r;
      check.value = v;
    }
    // The program's own functions include the time of the libraries that they call.
    const bool is_own = std::ranges::any_of(region.own_functions, grew);
    const auto& functions = is_own ? region.own_functions : region.functions;
    for (std::size_t f = 0; f < functions.size(); ++f) {
      if (!grew(functions[f]))
        continue;
      model::GateCheck& check =
          checks.emplace_back(checked(functions[f].self, by_runs, limit, runs));
      check.region = r;
      check.function = f;
      check.is_own_function = is_own;
    }
  }
  return checks;
}

GateVerdict verdict_of(const std::vector<model::GateCheck>& checks) {
  const auto has_regressed = [](const model::GateCheck& check) {
    return check.verdict == GateVerdict::kRegressed;
  };
  const auto decides = [](const model::GateCheck& check) {
    return !check.function && check.verdict != GateVerdict::kUndecided;
  };
  if (std::ranges::any_of(checks, has_regressed))
    return GateVerdict::kRegressed;
  if (std::ranges::none_of(checks, decides))
    return GateVerdict::kUndecided;
  if (std::ranges::any_of(checks, &model::GateCheck::hidden))
    return GateVerdict::kUndecided;
  return GateVerdict::kPassed;
}

/// Regressed ones first, then those whose noise hides the limit.
int listing_order(const model::GateCheck& check) {
  if (check.verdict == GateVerdict::kRegressed)
    return 0;
  return check.hidden ? 1 : 2;
}

}  // namespace

base::Result<model::Gate> gate(model::Comparison comparison,
                               const GateOptions& options,
                               bool regions_required) {
  if (!options.any_machine)
    TRY(check_machine(comparison));
  if (comparison.sides[1].failed > 0)
    return base::fail(base::Code::kNotComparable,
                      "the program failed, so what it did cannot be judged",
                      comparison.sides[1].label,
                      "Make it end with 0 first");
  TRY(check_values(comparison));
  TRY(check_regions(comparison, options.strict, regions_required));
  model::Gate out;
  out.max_regression = options.max_regression;
  out.checks = checks_of(comparison, options.max_regression);
  out.verdict = verdict_of(out.checks);
  std::ranges::stable_sort(out.checks, {}, listing_order);
  out.comparison = std::move(comparison);
  return out;
}

bool enough_runs(std::span<const model::Digest> runs, double limit) {
  if (runs.size() < kFewestRuns)
    return false;
  constexpr double kShare = 0.01,
                   kQuantile = 2.1;  // of the run; of t at 95 % and about 18 degrees of freedom
  const auto n = static_cast<double>(runs.size());
  for (const model::DigestRegion& region : runs.front().regions) {
    const auto wall = region.values.find("wall_ns.inclusive");
    if (wall == region.values.end() || wall->second < kShare * runs.front().run.duration_ns)
      continue;
    for (const std::string& tag : CompareOptions().usual) {
      double sum = 0, squares = 0, count = 0;
      for (const model::Digest& run : runs) {
        for (const model::DigestRegion& other : run.regions) {
          const bool is_same = other.path == region.path && other.domain == region.domain &&
                               other.kind == region.kind;
          const auto found = other.values.find(tag);
          if (!is_same || found == other.values.end() || found->second <= 0)
            continue;
          const double value = std::log(found->second);
          sum += value;
          squares += value * value;
          ++count;
        }
      }
      if (count < n)
        continue;  // not in every run: nothing is tested
      const double deviation = std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
      if (kQuantile * deviation * std::sqrt(2 / n) > limit / 2)
        return false;
    }
  }
  return true;
}

}  // namespace rangescope::analyze
