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

/// Null where the run does not have them.
const std::vector<DigestFunction>* functions_of(const DigestRegion& run, FunctionScope scope) {
  if (scope == FunctionScope::kAll)
    return &run.functions;
  return run.own_functions ? &*run.own_functions : nullptr;
}

}  // namespace

double FunctionSide::self_ns(const std::string& label) const {
  const auto found = functions.find(label);
  return found == functions.end() ? 0 : found->second.self_ns;
}

FunctionSide put_together(const std::vector<const DigestRegion*>& runs, FunctionScope scope) {
  FunctionSide side;
  for (const DigestRegion* run : runs) {
    if (run == nullptr || run->cpu_interval_ns <= 0)
      continue;
    const auto wall = run->values.find("wall_ns.inclusive");
    if (wall == run->values.end() || run->occurrences <= 0)
      continue;
    const std::vector<DigestFunction>* functions = functions_of(*run, scope);
    if (functions == nullptr)
      return {};
    side.occurrences += static_cast<double>(run->occurrences);
    side.wall_ns += wall->second;
    side.interval_ns = std::max(side.interval_ns, run->cpu_interval_ns);
    side.all_listed = side.all_listed && functions->size() < model::kMostFunctions;
    for (const DigestFunction& function : *functions) {
      const std::string& path = function.python ? function.file : function.module;
      FunctionSide::Function& sum =
          side.functions[function_label(function.name, path, function.python)];
      sum.self_ns += function.self_ns;
      sum.python = function.python;
      if (scope == FunctionScope::kOwn)
        sum.place = {function.name, function.file, function.line};
    }
  }
  return side;
}

namespace {

bool can_be_tested(const std::string& name, const std::vector<FunctionSide>& sides) {
  return std::ranges::any_of(sides, [&](const FunctionSide& side) {
    return side.functions.contains(name) && side.self_ns(name) >= kFewestSamples * side.interval_ns;
  });
}

/// The error of a time that was sampled, of one occurrence.
double sampling_error(double self_ns, const FunctionSide& side) {
  return std::sqrt(std::max(self_ns, side.interval_ns) * side.interval_ns) / side.occurrences;
}

/// Rust's older symbols end in a hash of the build: "app::run::h0123456789abcdef".
std::string without_rust_hash(const std::string& name) {
  constexpr std::size_t kHash = 19;
  if (name.size() <= kHash)
    return name;
  const std::size_t hash = name.size() - kHash;
  const bool has_hash = name.compare(hash, 3, "::h") == 0 &&
                        name.find_first_not_of("0123456789abcdef", hash + 3) == std::string::npos;
  return has_hash ? name.substr(0, hash) : name;
}

}  // namespace

std::string function_label(const std::string& name, const std::string& path, bool python) {
  const std::string file(base::file_name(path));
  if (python)
    return name + " (" + file + ")";
  const bool is_of_program = file.find(".so") == std::string::npos;
  if (name.find("+0x") != std::string::npos) {
    // Another build of the program may have another file name.
    const bool has_file_name = is_of_program && name.starts_with(file);
    return has_file_name ? name.substr(file.size()) : name;
  }
  const bool is_no_symbol = name.starts_with('[') || name.starts_with('(');
  if (is_no_symbol || file.empty()) {
    const bool is_program = is_of_program && name == "[" + file + "]";
    return is_program ? "[program]" : name;
  }
  std::string label = without_rust_hash(name);
  if (!is_of_program)
    label += " [" + file + "]";
  return label;
}

model::Standing standing_of(const model::Change& change, double alpha) {
  const bool holds_none = change.low && change.high && *change.low <= 1 && *change.high >= 1;
  if (!change.p || *change.p > alpha || change.difference == 0 || holds_none)
    return model::Standing::kNoise;
  return change.difference > 0 ? model::Standing::kMore : model::Standing::kLess;
}

namespace {

/// Time of a function per instance, as samples estimate it.
struct SampledTime {
  double ns = 0, deviation_ns = 0;
};

/// `tests`: how many are made together.
model::Change sampled_change(const SampledTime& before,
                             const SampledTime& after,
                             std::ptrdiff_t tests) {
  model::Change change;
  change.difference = after.ns - before.ns;
  const double error_ns = std::hypot(before.deviation_ns, after.deviation_ns);
  const double p = std::erfc(std::abs(change.difference) / error_ns / std::sqrt(2.0));
  change.p = std::min(1.0, p * static_cast<double>(tests));
  if (before.ns > 0)
    change.ratio = after.ns / before.ns;
  if (before.ns > 0 && after.ns > 0) {
    const double spread =
        1.96 * std::hypot(before.deviation_ns / before.ns, after.deviation_ns / after.ns);
    change.low = *change.ratio * std::exp(-spread);
    change.high = *change.ratio * std::exp(spread);
    change.confidence = 0.95;
  }
  return change;
}

model::ComparedValue without_values(FunctionScope scope) {
  model::ComparedValue value;
  value.tag = "self_ns";
  value.title = "self";
  if (scope == FunctionScope::kOwn) {
    value.tag = "cpu_ns";
    value.title = "CPU";
  }
  value.unit = "ns";
  value.per_occurrence = true;
  return value;
}

}  // namespace

std::vector<ComparedFunction> compare_functions(const MatchedRegion& region,
                                                double alpha,
                                                FunctionScope scope) {
  std::vector<FunctionSide> sides;
  std::map<std::string, FunctionSide::Function> names;  ///< as the last side has them
  for (const auto& runs : region.of) {
    sides.push_back(put_together(runs, scope));
    if (!(sides.back().wall_ns > 0))
      return {};
    for (const auto& [name, function] : sides.back().functions)
      names[name] = function;
  }
  // Bonferroni over those that can be: a hundred functions of one sample each hide no change of a
  // large one.
  const auto is_tested = [&](const auto& name) { return can_be_tested(name.first, sides); };
  const std::ptrdiff_t tested =
      std::max<std::ptrdiff_t>(1, std::ranges::count_if(names, is_tested));
  std::vector<ComparedFunction> out;
  for (const auto& [name, function] : names) {
    const std::ptrdiff_t tests = can_be_tested(name, sides) ? tested : std::ssize(names);
    ComparedFunction compared;
    compared.name = name;
    compared.python = function.python;
    compared.place = function.place;
    compared.self = without_values(scope);
    std::vector<double> deviations;
    for (const FunctionSide& side : sides) {
      const double self_ns = side.self_ns(name);
      std::optional<double>& share = compared.share.emplace_back();
      std::optional<double>& value = compared.self.values.emplace_back();
      if (side.functions.contains(name) || side.all_listed) {
        share = self_ns / side.wall_ns;
        value = self_ns / side.occurrences;
      }
      deviations.push_back(sampling_error(self_ns, side));
    }
    for (std::size_t s = 1; s < sides.size(); ++s) {
      model::Change& change = compared.self.changes.emplace_back();
      if (!compared.self.values[0] || !compared.self.values[s]) {
        change.why = "not among the largest functions of both sides";
        continue;
      }
      const SampledTime before{*compared.self.values[0], deviations[0]};
      const SampledTime after{*compared.self.values[s], deviations[s]};
      change = sampled_change(before, after, tests);
      change.standing = standing_of(change, alpha);
    }
    out.push_back(std::move(compared));
  }
  sort_functions(out);
  if (out.size() > model::kMostFunctions)
    out.resize(model::kMostFunctions);
  return out;
}

void sort_functions(std::vector<ComparedFunction>& functions) {
  const auto weight = [](const ComparedFunction& function) {
    std::tuple<bool, double, double> largest{false, 0, 0};
    for (std::size_t s = 1; s < function.self.values.size(); ++s) {
      const model::Change& change = function.self.changes[s - 1];
      largest = std::max(largest,
                         {is_significant(change),
                          std::abs(change.difference),
                          function.self.values[s].value_or(0)});
    }
    return largest;
  };
  std::stable_sort(functions.begin(), functions.end(), [&](const auto& a, const auto& b) {
    return weight(a) > weight(b);
  });
}

}  // namespace rangescope::analyze
