// From a rule of `--what-if` (rule.hpp) to a change of the dependence graph.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "analyze/options.hpp"
#include "analyze/replay/predict.hpp"
#include "analyze/tree/regions.hpp"
#include "analyze/what_if/rule.hpp"
#include "base/result.hpp"

namespace rangescope::analyze {

/// Of what is known only as an interval: which value a change takes.
enum class End : std::uint8_t { kExpected, kLow, kHigh };

struct SupposedEffect {
  std::function<replay::Graph(const replay::Graph& graph, End end)> apply;
  std::string subject;  ///< what it changes: "480 kernel executions, 12 ms"
};

/// What the recording does not say.
struct ChangeCosts {
  model::ReplayCosts replay;
  double host_link_bytes_per_s = 0;  ///< 0: unknown
};

/// `graph`: of the session. kNothingCaptured where it has nothing that the rule names.
[[nodiscard]] base::Result<SupposedEffect> effect_of(const WhatIfRule& rule,
                                                     const Regions& regions,
                                                     const replay::Graph& graph,
                                                     const ChangeCosts& costs);

/// The spans of all ended instances of a region; none of those that no thread of the program
/// opened.
[[nodiscard]] std::vector<replay::Span> spans_of(const Regions& regions,
                                                 std::span<const std::uint32_t> cells);

}  // namespace rangescope::analyze
