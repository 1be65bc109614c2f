// Useful FLOPs: what the work of an occurrence needs, as given by the user. With the peaks of the
// device that gives the model FLOPs utilization (MFU), next to the FLOPs that counters measured.
//
//   decode=2.1e9                                         FLOP of each occurrence
//   step=6e9*payload                                     a formula over the occurrence's NVTX
//   payload step=6e9*payload.tokens                              over the number `tokens` of its
//   structured payload
//   decode=transformer(params=7e9,layers=32,hidden=4096,tokens=1,context=payload)
//   step=transformer(params=7e9,layers=32,hidden=4096,tokens=8*2048,context=1024,train=1)
//
// The transformer: FLOP = tokens * (2 * params + 4 * layers * hidden * context), three times that
// with train=1 (forward and backward). `params` are the parameters that a token meets (of a mixture
// of experts the active ones; without the embedding table), `hidden` is heads * head size,
// `context` the positions that a token attends to on average (half the prompt for a causal
// prefill). Source: A. Chowdhery et al., "PaLM", 2022, appendix B; norms and activations are left
// out.
//
// Work counts what an occurrence does in a unit of the user's: decode=1 token, step=8*payload image
// pairs. That gives rates and, where energy was sampled, joules a unit, as metrics of the region.
#pragma once

#include <string>
#include <vector>

#include "analyze/tree/regions.hpp"
#include "base/formula.hpp"
#include "base/result.hpp"
#include "model/selection.hpp"

namespace rangescope::analyze {

struct UsefulFlop {
  std::string written;                  ///< "decode=2.1e9"
  std::vector<model::RangeTerm> terms;  ///< regions that begin to match one of them
  base::Formula flop;                   ///< over `payload`
  std::string unit;                     ///< of work, singular: "token"; "" of FLOPs and bytes
  bool where_found = false;  ///< "?decode=...": nothing is said where it matches no region
};

/// How the source of a rate begins: it names what the user gave, not what a counter measured.
inline constexpr std::string_view kWorkSource = "--work ";
/// True where a metric of the region was measured or sampled.
[[nodiscard]] bool has_counters(const model::Region& region);

/// "model.layers.3.mlp (LlamaMLP)": a module inside of another one, no phase and no outermost
/// module.
[[nodiscard]] bool is_inner_module(const model::Region& region);

/// Is useful work over the GPU's busy time and not the wall time? What a module launches runs on
/// behind its last launch.
[[nodiscard]] bool gpu_time_counts(const model::Region& region);

/// kUsage with the part that is wrong and how to write it: no `=`, an expression or formula that
/// cannot be parsed, a name other than payload, an unknown argument of transformer().
[[nodiscard]] base::Result<std::vector<UsefulFlop>> parse_useful(
    const std::vector<std::string>& written);

/// Rules of work, "decode=1 token" and, with the unit token, "decode=8". Errors as above, and a
/// unit that is missing.
[[nodiscard]] base::Result<std::vector<UsefulFlop>> parse_work(
    const std::vector<std::string>& work, const std::vector<std::string>& tokens);

/// Sets what `into` points at, useful_flop or useful_bytes (mean over closed occurrences), of
/// Region::utilization and the wall time that goes with it, of a module the GPU's busy time. A
/// region whose occurrences lack the payload that the formula needs gets a note instead; a rule
/// that matches no region a note of the report. O(rules * (regions + their occurrences)).
void add_useful(const std::vector<UsefulFlop>& rules,
                std::optional<double> model::Utilization::*into,
                const Regions& regions,
                model::Report& report);

/// The same for rules of work. Gives the region "tokens/s", with the slowest and the fastest
/// occurrence as its bounds, and "J/token", with the interval of the region's sampled energy, and
/// names both as columns. After add_samples().
void add_given_work(const std::vector<UsefulFlop>& rules,
                    const Regions& regions,
                    model::Report& report);

}  // namespace rangescope::analyze
