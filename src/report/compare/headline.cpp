// The first sentences of a comparison: what changed most.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/program.hpp"
#include "report/compare/document.hpp"

namespace rangescope::report {
namespace {

using model::Change;
using model::ComparedFunction;
using model::ComparedKernel;
using model::ComparedRegion;
using model::ComparedValue;
using model::Comparison;
using model::Standing;

/// A function of the program or of a Python file. "memcpy [libc.so.6]" is of a library, and
/// "+0x5dcc20" has no name: of a file without symbols, which an interpreter often is.
bool is_program_function(const ComparedFunction& function) {
  return !function.name.ends_with(']') && function.name.find("+0x") == std::string::npos;
}

/// The program's own function that changed most.
struct OwnFunctionChange {
  const ComparedRegion* region = nullptr;  ///< null without a significant change
  std::size_t side = 0;
  std::string text;  ///< without the region
};

/// In `preferred`, if one of its functions changed significantly; else in the first such region.
OwnFunctionChange own_function_change_in(const Comparison& comparison,
                                         const ComparedRegion* preferred) {
  OwnFunctionChange first;
  for (const ComparedRegion& region : comparison.regions) {
    if (region.own_functions.empty())
      continue;
    const ComparedFunction& function = region.own_functions.front();
    const auto change = std::ranges::find_if(function.self.changes, model::is_significant);
    if (change == function.self.changes.end())
      continue;
    if (first.region != nullptr && &region != preferred)
      continue;
    first.region = &region;
    first.side = static_cast<std::size_t>(change - function.self.changes.begin()) + 1;
    first.text = own_function_change(function, region, first.side);
  }
  return first;
}

/// "dedup (quad.py:2) takes 412.7 ms of CPU time instead of 10.19 ms (+3950 %) in decode."
std::string own_function_sentence(const Comparison& comparison, const OwnFunctionChange& own) {
  std::string text;
  if (comparison.sides.size() > 2)
    text = side_letter(own.side) + ": ";
  return text + own.text + " in " + region_label(*own.region) + ".";
}

/// "encode in step is slower: its own CPU time from 326.2 ms to 461.2 ms per instance (+41.4 %).",
/// the function of the program that changed most; "" without a significant change.
std::string function_sentence(const Comparison& comparison) {
  const ComparedRegion* region = functions_shown(comparison, "");
  if (region == nullptr)
    return {};
  for (const ComparedFunction& function : region->functions) {
    const ComparedValue& self = function.self;
    const auto change = std::ranges::find_if(self.changes, model::is_significant);
    if (change == self.changes.end() || !is_program_function(function))
      continue;
    const auto side = static_cast<std::size_t>(change - self.changes.begin()) + 1;
    std::string text;
    if (comparison.sides.size() > 2)
      text = side_letter(side) + ": ";
    text += base::printable(function.name) + " in " + region_label(*region);
    text += fmt::format(" is {}: its own CPU time from {} to {} per instance ({}).",
                        standing_text(self, side),
                        side_value(self, 0),
                        side_value(self, side),
                        change_text(self, side));
    return text;
  }
  return {};
}

/// "gemm is slower: from 10.1 us to 12.0 us per call (+19 %).", the kernel that changed most; ""
/// without a significant change.
std::string kernel_sentence(const Comparison& comparison) {
  for (const ComparedKernel& kernel : comparison.kernels) {
    const ComparedValue& per_call = kernel.per_call;
    const auto change = std::ranges::find_if(per_call.changes, model::is_significant);
    if (change == per_call.changes.end())
      continue;
    const auto side = static_cast<std::size_t>(change - per_call.changes.begin()) + 1;
    std::string text;
    if (comparison.sides.size() > 2)
      text = side_letter(side) + ": ";
    text += base::elide(base::printable(kernel.name), 100);
    text += " is " + standing_text(per_call, side) + ": from " + side_value(per_call, 0);
    text += " to " + side_value(per_call, side);
    text += " per call (" + change_text(per_call, side) + ").";
    return text;
  }
  return {};
}

/// " is 1.36 ± 0.04 times "
std::string factor_text(double factor, double low, double high) {
  return fmt::format(" is {:.2f} ± {:.2f} times ", factor, (high - low) / 2);
}

/// "B is 1.36 ± 0.04 times faster", by the time of the whole run; "" if that is not compared.
std::string run_speed_text(const Comparison& comparison, std::size_t side) {
  const auto run = std::ranges::find_if(comparison.regions, &ComparedRegion::is_whole_run);
  if (run == comparison.regions.end())
    return {};
  const auto wall = std::ranges::find(run->values, "wall_ns.median", &ComparedValue::tag);
  if (wall == run->values.end())
    return {};
  const Change& change = wall->changes[side - 1];
  const std::string letter = side_letter(side);
  if (!change.low || !change.high || *change.low <= 0)
    return {};
  if (!model::is_significant(change)) {
    const std::string runs = base::counted(comparison.sides[side].runs, "run");
    std::string text =
        fmt::format("A and {} take the same time, as far as {} show: ", letter, runs);
    text +=
        fmt::format("{} takes {:.2f} to {:.2f} times as long", letter, *change.low, *change.high);
    return text;
  }
  if (change.standing == Standing::kMore)
    return letter + factor_text(*change.ratio, *change.low, *change.high) + "slower";
  return letter + factor_text(1 / *change.ratio, 1 / *change.high, 1 / *change.low) + "faster";
}

/// "decode -26.0 %, load +3.1 %": the largest significant changes of innermost ranges.
std::string largest_changes_text(const Comparison& comparison, std::size_t side) {
  constexpr std::size_t kMaxNamed = 2;
  std::vector<std::string> texts;
  for (const ComparedRegion& region : comparison.regions) {
    if (texts.size() == kMaxNamed)
      break;
    if (region.values.empty() || !model::is_range(region))
      continue;
    const ComparedValue& value = region.values.front();
    if (!model::is_innermost(region, comparison))
      continue;
    if (!model::is_significant(value.changes[side - 1]))
      continue;
    texts.push_back(base::printable(region.path.back()) + " " + change_text(value, side));
  }
  return base::join(texts, ", ");
}

/// The sentence for runs that alternated between the sides; "" if the times of the runs are
/// unknown.
std::string turns_sentence(const Comparison& comparison) {
  std::vector<std::string> texts;
  for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
    const std::string speed = run_speed_text(comparison, side);
    if (!speed.empty())
      texts.push_back(speed);
    const std::string changes = largest_changes_text(comparison, side);
    if (!changes.empty())
      texts.push_back(changes);
  }
  if (texts.empty())
    return {};
  return base::join(texts, "; ") + ".";
}

/// The largest significant change, and how many values rose, fell and stayed.
struct ChangesOfRegions {
  const ComparedRegion* region = nullptr;  ///< of the largest change; null without one
  const ComparedValue* value = nullptr;
  std::size_t side = 0;
  std::map<Standing, std::size_t> counts;
  [[nodiscard]] std::size_t count(Standing standing) const {
    const auto found = counts.find(standing);
    if (found == counts.end())
      return 0;
    return found->second;
  }
};

ChangesOfRegions changes_of_regions(const Comparison& comparison) {
  ChangesOfRegions changes;
  double largest = -1;
  for (const ComparedRegion& region : comparison.regions) {
    for (const ComparedValue& value : region.values) {
      if (!model::is_known(value))
        continue;
      for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
        const Change& change = value.changes[side - 1];
        ++changes.counts[change.standing];
        // Units differ between values: ratios compare them. Of equal ratios of a region the first
        // counts, mostly that of its wall time.
        double size = 0;
        if (change.ratio)
          size = std::abs(std::log(std::max(*change.ratio, 1e-9)));
        if (!model::is_significant(change) || size <= largest)
          continue;
        largest = size;
        changes.region = &region;
        changes.value = &value;
        changes.side = side;
      }
    }
  }
  return changes;
}

/// "No statistically significant change of a range: 12 values in 4 regions."
std::string no_change_sentence(std::size_t regions, std::size_t noise, std::size_t untested) {
  const std::string scope = base::counted(regions, "region");
  if (noise == 0)
    return "Nothing could be tested in " + scope + ": too few runs or instances to estimate noise.";
  std::string text = "No statistically significant change of a range: ";
  text += base::counted(noise, "value") + " in " + scope + ".";
  if (untested > 0)
    text += fmt::format(" {} could not be tested.", untested);
  return text;
}

/// A program without ranges has one instance: its median is the wall time.
std::string value_name(const ComparedRegion& region, const ComparedValue& value) {
  const bool is_program = region.path == std::vector<std::string>{std::string(model::kProgram)};
  if (is_program && value.tag == "wall_ns.median")
    return "wall time";
  return base::printable(value.tag);
}

/// What changed in one or two sentences: the largest significant change of a region, with the
/// program's own function that changed in it, and the number of other changes, or that there is
/// none.
std::string regions_sentence(const Comparison& comparison,
                             const ChangesOfRegions& changes,
                             const OwnFunctionChange& own) {
  const std::size_t noise = changes.count(Standing::kNoise);
  const std::size_t rose = changes.count(Standing::kMore);
  const std::size_t fell = changes.count(Standing::kLess);
  if (changes.region == nullptr)
    return no_change_sentence(comparison.regions.size(), noise, changes.count(Standing::kUntested));
  const ComparedValue& value = *changes.value;
  const std::size_t side = changes.side;
  std::string text;
  if (comparison.sides.size() > 2)
    text = side_letter(side) + ": ";
  text += fmt::format("{} is {}: {} from {} to {} ({})",
                      region_label(*changes.region),
                      standing_text(value, side),
                      value_name(*changes.region, value),
                      side_value(value, 0),
                      side_value(value, side),
                      change_text(value, side));
  if (own.region == changes.region && own.side == side)
    text += "; " + own.text;
  text += ".";
  if (rose + fell == 1)
    return text + " No other change is statistically significant.";
  text +=
      fmt::format(" In all, {} rose and {} fell significantly; {} did not change significantly.",
                  base::counted(rose, "value"),
                  fell,
                  noise);
  return text;
}

}  // namespace

Standing headline_standing(const Comparison& comparison) {
  if (comparison.in_turns) {
    const auto run = std::ranges::find_if(comparison.regions, &ComparedRegion::is_whole_run);
    if (run != comparison.regions.end() && !run->values.empty())
      return run->values.front().changes.front().standing;
  }
  const ChangesOfRegions changes = changes_of_regions(comparison);
  if (changes.region == nullptr)
    return Standing::kNoise;
  return changes.value->changes[changes.side - 1].standing;
}

std::string comparison_headline(const Comparison& comparison) {
  const ChangesOfRegions changes = changes_of_regions(comparison);
  const OwnFunctionChange own = own_function_change_in(comparison, changes.region);
  std::vector<std::string> sentences;
  bool names_own_function = false;
  if (comparison.in_turns)
    sentences.push_back(turns_sentence(comparison));
  if (sentences.empty() || sentences.front().empty()) {
    sentences = {regions_sentence(comparison, changes, own)};
    names_own_function =
        own.region != nullptr && own.region == changes.region && own.side == changes.side;
  }
  if (own.region == nullptr)
    sentences.push_back(function_sentence(comparison));
  else if (!names_own_function)
    sentences.push_back(own_function_sentence(comparison, own));
  sentences.push_back(kernel_sentence(comparison));
  std::erase(sentences, "");
  return base::join(sentences, " ");
}

}  // namespace rangescope::report
