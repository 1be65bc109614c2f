// The answer of the gate: for each region and value, did it get worse by more than is allowed?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/comparison.hpp"

namespace rangescope::model {

enum class GateVerdict : std::uint8_t { kPassed, kRegressed, kUndecided };

struct GateCheck {
  std::size_t region = 0, value = 0;    ///< index in Gate::comparison.regions, and in its values
  std::optional<std::size_t> function;  ///< in the region's functions: judged instead of `value`
  bool is_own_function = false;         ///< `function` is in the region's own functions
  GateVerdict verdict = GateVerdict::kPassed;
  bool hidden =
      false;  ///< undecided because a regression as large as the limit could hide in the noise
  std::optional<std::size_t>
      runs_to_decide;  ///< of a hidden one: about so many runs a side would show the limit
  std::string text;    ///< one sentence with the numbers
};

struct Gate {
  Comparison comparison;                       ///< two sides: the baseline and what is judged
  double max_regression = 0;                   ///< 0.05 for 5 %
  GateVerdict verdict = GateVerdict::kPassed;  ///< kRegressed when a check is; kUndecided when
                                               ///< noise hides one, or none was judged
  std::vector<GateCheck> checks;               ///< regressed ones first, then as the regions stand
};

[[nodiscard]] inline const ComparedRegion& region_of(const Gate& gate, const GateCheck& check) {
  return gate.comparison.regions[check.region];
}

/// The function of a check that judges one; null of others.
[[nodiscard]] inline const ComparedFunction* function_of(const Gate& gate, const GateCheck& check) {
  if (!check.function)
    return nullptr;
  const ComparedRegion& region = region_of(gate, check);
  const auto& functions = check.is_own_function ? region.own_functions : region.functions;
  return &functions[*check.function];
}

[[nodiscard]] inline const ComparedValue& value_of(const Gate& gate, const GateCheck& check) {
  const ComparedFunction* function = function_of(gate, check);
  return function != nullptr ? function->self : region_of(gate, check).values[check.value];
}

[[nodiscard]] constexpr std::string_view gate_verdict_name(GateVerdict verdict) {
  constexpr std::string_view kNames[] = {"passed", "regressed", "undecided"};
  return kNames[static_cast<std::size_t>(verdict)];
}

}  // namespace rangescope::model
