// The replay ladder: which way of measuring is tried first, which next, and why.
//
//   native     rangescope's own collector counts: pass k in instance k, without any replay
//   range      ncu replays each instance of the range; takes seconds, but refuses many CUDA calls
//   app-range  ncu runs the whole program again for every pass; any call may occur inside, if the
//              program does the same every time
//   kernel     ncu replays each kernel inside the range; always works, measures kernels, not ranges
//
// Pure: decides by the request, the tool's abilities and the probe run. `range` is first tried on
// one instance, so that a refusal costs seconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/nsight/abilities.hpp"
#include "collect/nsight/outcome.hpp"

namespace rangescope::collect {

enum class Step : std::uint8_t { kNative, kRange, kAppRange, kApplication, kKernel };
/// "native", "range", "app-range", "application", "kernel": also ncu's names of the modes.
[[nodiscard]] std::string_view step_name(Step step);
[[nodiscard]] std::optional<Step> find_step(std::string_view name);

/// What a look at the program said of the ranges that are to be measured; unknown where it was not
/// looked at.
struct Evidence {
  std::optional<std::uint64_t> occurrences;  ///< of all chosen ranges together
  std::optional<std::uint64_t> kernels;      ///< launched inside them
  std::map<std::string, std::uint64_t>
      calls;  ///< API calls seen inside, by name, with their counts
  std::uint64_t graph_launches = 0;
  std::uint64_t other_thread_kernels =
      0;                       ///< launched by threads that have none of the ranges open
  std::optional<bool> alike;   ///< do occurrences launch the same kernels each time?
  std::uint64_t contexts = 0;  ///< CUDA contexts used inside
};

/// What is to be measured.
struct Wish {
  std::string mode =
      "auto";  ///< or where to begin: see is_ladder(); or a step's name: then only that one
  bool ranges = false;             ///< range expressions were given
  std::uint32_t every = 1;         ///< as collect::Request has it
  bool kernel_filter = false;      ///< kernel_name or kernel_id by the user
  bool sections = false;           ///< sections, a set, or nothing said (ncu's default set)
  bool metrics = false;            ///< metrics by name
  bool native_counters = false;    ///< the native stage collects them as counters
  std::string no_native_counters;  ///< why it does not, where that is known
};

/// One rung: taken or refused, with the reason.
struct Rung {
  Step step = Step::kKernel;
  bool take = false;
  std::string reason;
};

/// May this replay mode be left for another? "auto" begins with native counters, "range-or-kernel"
/// with range replay, "app-range-or-kernel" with app-range replay.
[[nodiscard]] bool is_ladder(std::string_view mode);

/// Every rung in order. At least one is taken unless a single mode was asked for that the tool
/// lacks.
[[nodiscard]] std::vector<Rung> ladder(const Wish& wish,
                                       const Evidence& evidence,
                                       const Abilities& ncu);

/// CUDA calls that range replay cannot replay: the name's reason, or "" when it can (Nsight
/// Compute's Kernel Profiling Guide, "Supported APIs").
[[nodiscard]] std::string range_replay_refuses(std::string_view api);
/// Driver functions that a probe run should note in addition to launches, copies and waits:
/// prefixes of their names, separated by commas. All that range replay refuses, and those that make
/// contexts and memory.
[[nodiscard]] std::string calls_to_note();

/// Whether a stage should be tried once more: transient, and attempts left. Attempts count from 1.
[[nodiscard]] bool try_again(const Outcome& outcome, int attempt, int retries);

}  // namespace rangescope::collect
