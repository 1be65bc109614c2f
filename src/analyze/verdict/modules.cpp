// Which modules of a model the time of a phase goes to, by the GPU work that they launched.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyze/counters/useful.hpp"
#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/module_name.hpp"

namespace rangescope::analyze {
namespace {

/// "self_attn", of a module's path.
std::string_view own_name(const model::Region& region) {
  const std::string_view name = model::without_class(region.path.back());
  return name.substr(name.rfind('.') + 1);
}

/// ", memory-bound (memory 71 %, compute 9.0 % of peak)", or what is known of useful work: ", MFU 4
/// %, MBU 63 %".
std::string limit_text(const model::Region& region, model::Verdict& verdict) {
  if (region.bound && region.bound->memory && region.bound->compute) {
    verdict.evidence["memory_share"] = *region.bound->memory;
    verdict.evidence["compute_share"] = *region.bound->compute;
    return ", " + bound_text(*region.bound);
  }
  std::string text;
  if (!region.utilization)
    return text;
  if (const auto& share = region.utilization->useful) {
    text += ", MFU " + share_text(*share);
    verdict.evidence["useful_flop_share"] = *share;
  }
  if (const auto& share = region.utilization->bandwidth) {
    text += ", MBU " + share_text(*share);
    verdict.evidence["useful_bytes_share"] = *share;
  }
  return text;
}

/// A module that takes most of the GPU time of a phase, such as "decode step".
struct LargeModule {
  std::size_t row = 0, phase = 0;
  double share = 0;  ///< of the phase's kernel time
};

/// The row that the outermost module around `row` is called in, else that module; kNone of a module
/// that is in no other one.
std::size_t phase_of(const Case& facts, std::size_t row) {
  const auto& rows = facts.report().rows;
  std::size_t outermost = rows[row].parent;
  while (outermost != model::kNone && is_inner_module(facts.region(outermost)))
    outermost = rows[outermost].parent;
  if (outermost == model::kNone)
    return model::kNone;
  // What the outermost module is called in says more than its name.
  const std::size_t caller = rows[outermost].parent;
  return caller == model::kNone ? outermost : caller;
}

/// Of each phase the deepest module with half of its time.
std::vector<LargeModule> large_modules(const Case& facts) {
  std::vector<LargeModule> modules;
  for (std::size_t row = 0; row < facts.rows(); ++row) {
    if (!is_inner_module(facts.region(row)))
      continue;
    const std::size_t phase = phase_of(facts, row);
    if (phase == model::kNone)
      continue;
    const double phase_ns = kernel_ns(facts.region(phase));
    const double module_ns = kernel_ns(facts.region(row));
    const bool is_large = phase_ns > 0 && module_ns >= kHalfOfPhase * phase_ns;
    if (!is_large || !facts.matters(module_ns))
      continue;
    // Rows come depth first: one that follows in the same phase lies in the one before it.
    const bool is_deeper = !modules.empty() && modules.back().phase == phase;
    if (!is_deeper)
      modules.emplace_back();
    modules.back() = {row, phase, module_ns / phase_ns};
  }
  return modules;
}

/// ": self_attn 40 %, mlp 31 %": the largest modules in one of which none has half.
std::string inner_modules_text(const Case& facts, std::size_t row) {
  constexpr std::size_t kMostInnerModules = 3;
  const auto& rows = facts.report().rows;
  const double module_ns = kernel_ns(facts.region(row));
  const auto child_ns = [&](std::size_t child) { return kernel_ns(facts.region(child)); };
  std::vector<std::size_t> children;
  for (std::size_t child = row + 1; child < rows.size(); ++child) {
    const bool is_module_in_it = rows[child].parent == row && is_inner_module(facts.region(child));
    if (is_module_in_it && child_ns(child) >= kHot * module_ns)
      children.push_back(child);
  }
  std::ranges::stable_sort(children, std::ranges::greater{}, child_ns);
  if (children.size() > kMostInnerModules)
    children.resize(kMostInnerModules);
  if (children.empty())
    return {};
  std::vector<std::string> texts;
  for (const std::size_t child : children) {
    const std::string name(own_name(facts.region(child)));
    texts.push_back(name + " " + share_text(child_ns(child) / module_ns));
  }
  return ": " + base::join(texts, ", ");
}

model::Verdict large_module_verdict(const Case& facts, const LargeModule& module) {
  const model::Region& region = facts.region(module.row);
  const double module_ns = kernel_ns(region);
  model::Verdict verdict = facts.about("modules", module.row, "", module_ns);
  verdict.severity = model::Weight::kNote;
  verdict.evidence = {{"kernel_ns", module_ns}, {"share_of_phase", module.share}};
  const std::string phase_name = base::printable(facts.region(module.phase).path.back());
  const std::string limit = limit_text(region, verdict);
  verdict.text = share_text(module.share) + " of the kernel time of " + phase_name + limit;
  verdict.text += inner_modules_text(facts, module.row);
  if (limit.empty())
    facts.show_page(verdict);
  return verdict;
}

}  // namespace

void find_modules(const Case& facts, std::vector<model::Verdict>& out) {
  constexpr std::size_t kMostModules = 2;
  std::vector<LargeModule> modules = large_modules(facts);
  const auto phase_ns = [&](const LargeModule& module) {
    return kernel_ns(facts.region(module.phase));
  };
  std::ranges::stable_sort(modules, std::ranges::greater{}, phase_ns);
  if (modules.size() > kMostModules)
    modules.resize(kMostModules);
  for (const LargeModule& module : modules)
    out.push_back(large_module_verdict(facts, module));
}

}  // namespace rangescope::analyze
