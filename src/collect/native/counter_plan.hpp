// The file that tells the injected library which counters to collect for which ranges (format:
// wire/counter_plan.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/selection.hpp"

namespace rangescope::collect::native {

struct CounterRequest {
  std::vector<std::string> metrics;  ///< CUPTI metrics, resolved for the chip
  std::vector<std::size_t> splits;   ///< indexes of metrics at which a further configuration begins
  std::map<std::string, std::string>
      wanted_by;     ///< metric: the groups that want it, "memory,quick"
  std::string chip;  ///< "" for that of this machine's first GPU
  model::RangeSelection ranges;
  model::KernelSelection
      kernels;  ///< per kernel: only these; the counters of a range hold all that ran in it
  std::string per = "range";  ///< range, kernel, both
  std::uint32_t rounds = 5;
  std::int32_t skip_first = -1;   ///< -1: until the duration has settled
  std::uint32_t every = 1;        ///< occurrences 1, 1 + every, 1 + 2 * every ... of each range
  std::uint32_t trace_first = 3;  ///< occurrences for the timeline before counters begin
  std::uint32_t arm_wait_ms =
      100;  ///< that a range which lacks its first round waits for the hardware at most
  std::string cache = "keep";  ///< keep, flush: caches are emptied before each measured occurrence
  std::string passes =
      "occurrence";  ///< occurrence, relaunch (the program again for ranges that lack passes), auto
  std::string pc = "off";  ///< on, auto: samples of the program counter, where there are no metrics
  bool skip_unknown = false;  ///< metrics that the chip lacks are left out instead of refused
  bool by_payload = false;    ///< ranges of one name with different payloads are different ranges
  std::string resume;  ///< relaunch: absolute path of the file that carries unfinished rounds from
                       ///< run to run
  bool is_relaunch = false;  ///< the second run of the program or a later one
};

/// A regular expression of RE2 as a POSIX extended one that finds the same names, in the C.UTF-8
/// locale. kUsage, with a hint, for what POSIX cannot say or says otherwise: (?...) but for (?:,
/// \\b, \\pL, \\Q, backslashes in brackets other than \\d \\w \\s.
[[nodiscard]] base::Result<std::string> posix_regex(const std::string& pattern);

/// The text of the plan. kUsage for an expression that cannot be carried over (see posix_regex),
/// for more than the library takes (wire/counter_plan.hpp), and without include expressions, except
/// for samples of the program counter: those are then of the outermost ranges of the default
/// domain.
[[nodiscard]] base::Result<std::string> counter_plan(const CounterRequest& request);

}  // namespace rangescope::collect::native
