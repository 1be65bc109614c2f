// Which modules of a model the time of a phase goes to, by the GPU work that they launched.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyze/counters/useful.hpp"
#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

/// "self_attn", of a module's path.
std::string_view own_name(const model::Region& region) {
  std::string_view name = region.path.back();
  name = name.substr(0, name.rfind(" ("));
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

}  // namespace

void find_modules(const Case& known, std::vector<model::Verdict>& out) {
  const auto& rows = known.report().rows;
  struct Found {
    std::size_t row, phase;
    double share;
  };
  std::vector<Found> found;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!is_inner_module(known.region(row)))
      continue;
    std::size_t phase = rows[row].parent;
    while (phase != model::kNone && is_inner_module(known.region(phase)))
      phase = rows[phase].parent;
    if (phase == model::kNone)
      continue;
    // What the outermost module is called in says more than its name.
    if (rows[phase].parent != model::kNone)
      phase = rows[phase].parent;
    const double whole = kernel_ns(known.region(phase)), own = kernel_ns(known.region(row));
    if (whole <= 0 || own < kHalfOfPhase * whole || !known.matters(own))
      continue;
    // Rows come depth first: one that follows in the same phase lies in the one before it.
    const bool deeper = !found.empty() && found.back().phase == phase;
    if (!deeper)
      found.push_back({});
    found.back() = {row, phase, own / whole};
  }
  std::ranges::stable_sort(found, [&](const Found& a, const Found& b) {
    return kernel_ns(known.region(a.phase)) > kernel_ns(known.region(b.phase));
  });
  if (found.size() > 2)
    found.resize(2);
  for (const auto& [row, phase, share] : found) {
    const model::Region& region = known.region(row);
    const double own = kernel_ns(region);
    model::Verdict verdict = known.about("modules", row, "", own);
    verdict.severity = model::Weight::kNote;
    verdict.evidence = {{"kernel_ns", own}, {"share_of_phase", share}};
    verdict.text = fmt::format("{} of the kernel time of {}",
                               share_text(share),
                               base::printable(known.region(phase).path.back()));
    const std::string limit = limit_text(region, verdict);
    verdict.text += limit;
    // No module in it has half: the largest of them.
    std::vector<std::size_t> inside;
    for (std::size_t child = row + 1; child < rows.size(); ++child)
      if (rows[child].parent == row && is_inner_module(known.region(child)) &&
          kernel_ns(known.region(child)) >= kHot * own)
        inside.push_back(child);
    std::ranges::stable_sort(
        inside, std::ranges::greater{}, [&](std::size_t c) { return kernel_ns(known.region(c)); });
    if (inside.size() > 3)
      inside.resize(3);
    for (const std::size_t child : inside)
      verdict.text += fmt::format("{}{} {}",
                                  child == inside.front() ? ": " : ", ",
                                  own_name(known.region(child)),
                                  share_text(kernel_ns(known.region(child)) / own));
    if (limit.empty())
      known.show_page(verdict);
    out.push_back(std::move(verdict));
  }
}

}  // namespace rangescope::analyze
