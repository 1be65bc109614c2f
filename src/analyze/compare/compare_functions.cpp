#include "analyze/compare/compare_functions.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::ComparedFunction;
using model::DigestFunction;
using model::DigestRegion;
using model::is_significant;

}  // namespace

FunctionSide put_together(const std::vector<const DigestRegion*>& runs) {
  FunctionSide side;
  for (const DigestRegion* run : runs) {
    if (run == nullptr || run->cpu_interval_ns <= 0) continue;
    const auto wall = run->values.find("wall_ns.inclusive");
    if (wall == run->values.end() || run->occurrences <= 0) continue;
    side.occurrences += static_cast<double>(run->occurrences);
    side.wall_ns += wall->second;
    side.interval_ns = std::max(side.interval_ns, run->cpu_interval_ns);
    side.all_listed = side.all_listed && run->functions.size() < model::kMostFunctions;
    for (const DigestFunction& function : run->functions) {
      auto& into = side.self_ns[function_label(
          function.name, function.python ? function.file : function.module, function.python)];
      into.first += function.self_ns;
      into.second = function.python;
    }
  }
  return side;
}

namespace {

bool can_be_tested(const std::string& name, const std::vector<FunctionSide>& sides) {
  return std::ranges::any_of(sides, [&](const FunctionSide& side) {
    const auto found = side.self_ns.find(name);
    return found != side.self_ns.end() && found->second.first >= kFewestSamples * side.interval_ns;
  });
}

/// What so many nanoseconds of samples are known to, an occurrence.
double sampling_error(double self_ns, const FunctionSide& side) {
  return std::sqrt(std::max(self_ns, side.interval_ns) * side.interval_ns) / side.occurrences;
}

}  // namespace

std::string function_label(const std::string& name, const std::string& path, bool python) {
  const std::string file(base::file_name(path));
  if (python) return name + " (" + file + ")";
  const bool own = name.starts_with('[') || name.starts_with('(');
  const bool program =
      file.find(".so") == std::string::npos;  // another build of it may have another name
  if (name.find("+0x") != std::string::npos)
    return program && name.starts_with(file) ? name.substr(file.size()) : name;
  if (own || file.empty()) return program && name == "[" + file + "]" ? "[program]" : name;
  // Rust's older symbols end in a hash of the build: "app::run::h0123456789abcdef".
  constexpr std::size_t kHash = 19;
  const std::size_t hash = name.size() > kHash ? name.size() - kHash : 0;
  const bool rust = hash > 0 && name.compare(hash, 3, "::h") == 0 &&
                    name.find_first_not_of("0123456789abcdef", hash + 3) == std::string::npos;
  return name.substr(0, rust ? hash : name.size()) + (program ? "" : " [" + file + "]");
}

model::Standing standing_of(const model::Change& change, double alpha) {
  const bool holds_none = change.low && change.high && *change.low <= 1 && *change.high >= 1;
  if (!change.p || *change.p > alpha || change.difference == 0 || holds_none)
    return model::Standing::kNoise;
  return change.difference > 0 ? model::Standing::kMore : model::Standing::kLess;
}

std::vector<ComparedFunction> compare_functions(const MatchedRegion& region, double alpha) {
  std::vector<FunctionSide> sides;
  std::map<std::string, bool> names;
  for (const auto& runs : region.of) {
    sides.push_back(put_together(runs));
    if (!(sides.back().wall_ns > 0)) return {};
    for (const auto& [name, self] : sides.back().self_ns) names.emplace(name, self.second);
  }
  // Bonferroni over those that can be: a hundred functions of one sample each hide no change of a
  // large one.
  const auto is_tested = [&](const auto& name) { return can_be_tested(name.first, sides); };
  const std::ptrdiff_t tested =
      std::max<std::ptrdiff_t>(1, std::ranges::count_if(names, is_tested));
  std::vector<ComparedFunction> out;
  for (const auto& [name, python] : names) {
    const std::ptrdiff_t tests = can_be_tested(name, sides) ? tested : std::ssize(names);
    ComparedFunction one;
    one.name = name;
    one.python = python;
    one.self.tag = "self_ns";
    one.self.title = "self";
    one.self.unit = "ns";
    one.self.per_occurrence = true;
    std::vector<double> deviations;
    for (const FunctionSide& side : sides) {
      const auto found = side.self_ns.find(name);
      const bool known = found != side.self_ns.end() || side.all_listed;
      const double self = found == side.self_ns.end() ? 0 : found->second.first;
      one.share.push_back(known ? std::optional(self / side.wall_ns) : std::nullopt);
      one.self.values.push_back(known ? std::optional(self / side.occurrences) : std::nullopt);
      deviations.push_back(sampling_error(self, side));
    }
    for (std::size_t s = 1; s < sides.size(); ++s) {
      model::Change& change = one.self.changes.emplace_back();
      if (!one.self.values[0] || !one.self.values[s]) {
        change.why = "not among the largest functions of both sides";
        continue;
      }
      const double before = *one.self.values[0], after = *one.self.values[s];
      const double error = std::hypot(deviations[0], deviations[s]);
      change.difference = after - before;
      const double p = std::erfc(std::abs(change.difference) / error / std::sqrt(2.0));
      change.p = std::min(1.0, p * static_cast<double>(tests));
      if (before > 0) change.ratio = after / before;
      if (before > 0 && after > 0) {
        const double spread = 1.96 * std::hypot(deviations[0] / before, deviations[s] / after);
        change.low = *change.ratio * std::exp(-spread);
        change.high = *change.ratio * std::exp(spread);
        change.confidence = 0.95;
      }
      change.standing = standing_of(change, alpha);
    }
    out.push_back(std::move(one));
  }
  sort_functions(out);
  if (out.size() > model::kMostFunctions) out.resize(model::kMostFunctions);
  return out;
}

void sort_functions(std::vector<ComparedFunction>& functions) {
  const auto weight = [](const ComparedFunction& function) {
    std::tuple<bool, double, double> largest{false, 0, 0};
    for (std::size_t s = 1; s < function.self.values.size(); ++s) {
      const model::Change& change = function.self.changes[s - 1];
      largest = std::max(largest, {is_significant(change), std::abs(change.difference),
                                   function.self.values[s].value_or(0)});
    }
    return largest;
  };
  std::stable_sort(functions.begin(), functions.end(),
                   [&](const auto& a, const auto& b) { return weight(a) > weight(b); });
}

}  // namespace rangescope::analyze
