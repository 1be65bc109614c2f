#include "analyze/what_if/rule.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using Target = WhatIfRule::Target;
using Action = WhatIfRule::Action;

constexpr const char* kForms =
    "Write 'kernel:softmax*=0.5', 'region:attention=0', 'copies=overlapped' or 'launches=graph'.";
/// A supposition beyond this is a typing error.
constexpr double kLargestFactor = 1e6;

/// A text in its three parts: TARGET[:NAME]=CHANGE.
struct Parts {
  std::string_view target, name, change;
  bool has_name = false;
};

tl::unexpected<base::Error> refuse_rule(std::string_view written,
                                        std::string what,
                                        std::string hint) {
  return base::fail(base::Code::kUsage,
                    std::move(what),
                    "--what-if '" + base::printable(written) + "'",
                    std::move(hint));
}

base::Result<Parts> split(std::string_view written) {
  const std::size_t equals = written.rfind('=');
  if (equals == std::string_view::npos)
    return refuse_rule(written, "nothing is changed", kForms);
  Parts parts;
  parts.change = base::trim(written.substr(equals + 1));
  const std::string_view subject = written.substr(0, equals);
  const std::size_t colon = subject.find(':');
  parts.target = base::trim(subject.substr(0, colon));
  parts.has_name = colon != std::string_view::npos;
  if (parts.has_name)
    parts.name = base::trim(subject.substr(colon + 1));
  return parts;
}

struct NamedTarget {
  std::string_view name;
  Target target;
  bool takes_name, needs_name;
};
constexpr NamedTarget kTargets[] = {{"kernel", Target::kKernels, true, true},
                                    {"region", Target::kRegion, true, true},
                                    {"copies", Target::kCopies, false, false},
                                    {"launches", Target::kLaunches, true, false},
                                    {"rank", Target::kRank, true, true}};

base::Result<Target> target_of(const Parts& parts, std::string_view written) {
  std::vector<std::string> names;
  for (const NamedTarget& named : kTargets) {
    names.emplace_back(named.name);
    if (named.name != parts.target)
      continue;
    const std::string target(named.name);
    if (named.needs_name && parts.name.empty())
      return refuse_rule(written, target + ": which one is not said", kForms);
    if (!named.takes_name && parts.has_name)
      return refuse_rule(written,
                         target + " has no name: all of them change",
                         "Write '" + target + "=" + std::string(parts.change) + "'.");
    if (parts.has_name && parts.name.empty())
      return refuse_rule(written, target + ": the name is empty", kForms);
    return named.target;
  }
  std::string hint = base::did_you_mean(parts.target, names);
  if (hint.empty())
    hint = kForms;
  return refuse_rule(
      written, "'" + base::printable(parts.target) + "' cannot be changed", std::move(hint));
}

/// "graph" of launches, "overlapped" of copies, "mean" of a rank; else a factor.
base::Result<Action> action_of(const Parts& parts, Target target, std::string_view written) {
  if (parts.change == "graph" && target == Target::kLaunches)
    return Action::kGraph;
  if (parts.change == "overlapped" && target == Target::kCopies)
    return Action::kOverlap;
  if (parts.change == "mean" && target == Target::kRank)
    return Action::kMean;
  if (target == Target::kLaunches)
    return refuse_rule(written,
                       "launches cannot be '" + base::printable(parts.change) + "'",
                       "Write 'launches=graph' or, of the instances of a range, "
                       "'launches:step=graph'.");
  return Action::kScale;
}

base::Result<double> factor_of(const Parts& parts, Target target, std::string_view written) {
  const auto factor = base::to_double(parts.change);
  const bool is_factor = factor && std::isfinite(*factor) && *factor >= 0;
  if (is_factor && *factor <= kLargestFactor)
    return *factor;
  std::string hint = "Write a factor: 0.5 halves the time, 0 removes the work, 2 doubles it";
  if (target == Target::kCopies)
    hint += "; or 'copies=overlapped'";
  if (target == Target::kRank)
    hint += "; or 'rank:" + std::string(parts.name) + "=mean'";
  return refuse_rule(written, "'" + base::printable(parts.change) + "' is no factor", hint + ".");
}

base::Result<std::uint32_t> rank_of(const Parts& parts, std::string_view written) {
  constexpr std::int64_t kMostRanks = 1'000'000;
  const auto rank = base::to_int(parts.name);
  const bool is_rank = rank && *rank >= 0 && *rank < kMostRanks;
  if (is_rank)
    return static_cast<std::uint32_t>(*rank);
  return refuse_rule(written,
                     "'" + base::printable(parts.name) + "' is no rank",
                     "Write its number: 'rank:3=mean'.");
}

/// The exact name, or a regular expression that is found in it.
base::Result<std::vector<model::KernelPattern>> kernel_patterns(std::string_view name,
                                                                std::string_view written) {
  const std::string text(name);
  const bool is_regex = text.starts_with(model::kRegexPrefix);
  std::vector<model::KernelPattern> patterns;
  if (!is_regex) {
    auto exact = TRY(model::KernelPattern::parse(text));
    patterns.push_back(std::move(exact));
  }
  const std::string prefix = is_regex ? std::string() : std::string(model::kRegexPrefix);
  auto regex = model::KernelPattern::parse(prefix + text);
  if (regex) {
    patterns.push_back(std::move(*regex));
    return patterns;
  }
  return refuse_rule(written,
                     regex.error().what,
                     "Write .* for any text, and escape brackets of template names with a "
                     "backslash.");
}

base::Result<WhatIfRule> parse_rule(const std::string& written) {
  const auto parts = TRY(split(written));
  WhatIfRule rule;
  rule.written = written;
  rule.target = TRY(target_of(parts, written));
  rule.action = TRY(action_of(parts, rule.target, written));
  if (rule.action == Action::kScale)
    rule.factor = TRY(factor_of(parts, rule.target, written));
  if (rule.target == Target::kKernels)
    rule.kernels = TRY(kernel_patterns(parts.name, written));
  if (rule.target == Target::kRank)
    rule.rank = TRY(rank_of(parts, written));
  const bool names_ranges = rule.target == Target::kRegion || rule.target == Target::kLaunches;
  if (!names_ranges || parts.name.empty())
    return rule;
  auto ranges = model::parse_terms(parts.name);
  if (!ranges)
    return refuse_rule(written, ranges.error().what, ranges.error().hint);
  rule.ranges = std::move(*ranges);
  return rule;
}

}  // namespace

base::Result<std::vector<WhatIfRule>> parse_what_if(const std::vector<std::string>& written) {
  std::vector<WhatIfRule> rules;
  for (const std::string& text : written) {
    auto rule = TRY(parse_rule(text));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace rangescope::analyze
