#include "analyze/gate.hpp"

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

model::GateCheck judge(const model::ComparedValue& value, bool by_runs, double limit) {
  model::GateCheck check;
  const Change& change = value.changes[0];
  if (change.standing == Standing::kUntested) {
    check.verdict = GateVerdict::kUndecided;
    check.text = change.why;
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
  check.hidden = upper >= most;
  check.text =
      ratio + between + (check.hidden ? ": in the noise, which is too wide to see the limit" : ": in the noise");
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
    return base::fail(base::Code::kNotComparable,
                      fmt::format("the baseline is of another machine: {} is '{}' there and '{}' here", difference.what,
                                  base::printable(difference.values[0]), base::printable(difference.values[1])),
                      comparison.sides[0].label,
                      "Save a baseline on this machine, or judge all the same with --any-machine");
  }
  if (comparison.sides[1].failed > 0)
    return base::fail(base::Code::kNotComparable, "the program failed, so what it did cannot be judged",
                      comparison.sides[1].label, "Make it end with 0 first");
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
  for (std::size_t r = 0; r < out.comparison.regions.size(); ++r) {
    const model::ComparedRegion& region = out.comparison.regions[r];
    for (std::size_t v = 0; v < region.values.size(); ++v) {
      model::GateCheck check = judge(region.values[v], by_runs, options.max_regression);
      check.region = r;
      check.value = v;
      decided = decided || check.verdict != GateVerdict::kUndecided;
      if (check.verdict == GateVerdict::kRegressed) out.verdict = GateVerdict::kRegressed;
      out.checks.push_back(std::move(check));
    }
  }
  if (!decided) out.verdict = GateVerdict::kUndecided;
  std::stable_partition(out.checks.begin(), out.checks.end(),
                        [](const model::GateCheck& check) { return check.verdict == GateVerdict::kRegressed; });
  return out;
}

}  // namespace rangescope::analyze
