// What an analysis is asked for, and what it needs to know in addition to its session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/metric_group.hpp"
#include "model/name_regex.hpp"
#include "model/peaks.hpp"
#include "model/replay_costs.hpp"
#include "model/selection.hpp"

namespace rangescope::analyze {

/// Which ranges a kernel belongs to when the launching thread has none of its own open.
enum class PushPopScope : std::uint8_t {
  kThread,   ///< none: only the launching thread's own stack counts
  kProcess,  ///< every push/pop range open in the process, as ncu's --nvtx-push-pop-scope process
  kAuto,     ///< the process's open range, when exactly one other thread has one
};

/// How push/pop ranges of different domains nest (docs/design/region-tree.md).
enum class Domains : std::uint8_t {
  kSeparate,  ///< each domain has its own stack and tree, as in Nsight Compute's NVTX state
  kNested,    ///< one stack a thread over all domains
};

/// Which names of ranges are one name (analyze/names/fold.hpp).
enum class FoldNames : std::uint8_t {
  kAuto,     ///< what PyTorch's emit_nvtx writes behind a name is cut off
  kNumbers,  ///< and a number of its own is `#`
  kOff,      ///< as they were recorded
};

struct Options {
  bool aggregate = true;    ///< regions over all processes
  bool per_process = true;  ///< and of each process, when there is more than one
  bool per_thread = false;
  model::RangeSelection ranges;    ///< regions of these ranges, and of what is below them
  model::KernelSelection kernels;  ///< only these count
  std::vector<std::string> flops;  ///< useful FLOPs by range (analyze/counters/useful.hpp)
  std::vector<std::string> bytes;  ///< bytes that it must read or write, likewise, for MBU
  std::vector<std::string>
      work;  ///< "decode=1 token": units of work of an occurrence, for rates and J a unit
  std::vector<std::string> tokens;   ///< the same, of tokens: "decode=8"
  std::vector<std::string> what_if;  ///< changes to predict (analyze/what_if/rule.hpp)
  /// Occurrences of one range with different NVTX payloads are different regions.
  bool by_payload = false;
  /// For NameFolder, before sessions are joined; absent: as in the options of the run.
  std::optional<FoldNames> fold_names;
  std::string device;  ///< id of the peaks; auto: by the GPU's name; "": as in the run's options
  std::string nest;    ///< what separates levels within a range's name ("::"); "": nothing does
  PushPopScope push_pop_scope = PushPopScope::kAuto;
  Domains domains = Domains::kSeparate;
  bool backward_with_forward =
      false;  ///< GPU work of PyTorch's backward functions also counts for their forward operator
  int threads = 0;               ///< workers, 0: one a core; results do not depend on it
  std::size_t top_kernels = 20;  ///< per region
  std::size_t samples = 400;     ///< occurrences kept per region for plots
  bool histograms = false;       ///< of the lengths of each region's occurrences

  bool operator==(const Options&) const = default;
};

/// A kind of kernels, by expressions for their demangled names.
struct KernelKind {
  std::string name;
  std::vector<model::NameRegex> match;
};

/// What a report rests on in addition to its session.
struct Reference {
  std::vector<model::MetricGroup>
      groups;  ///< by which metrics are derived, as far as their counters were measured
  std::vector<std::string> metrics;         ///< asked for by name, in addition to the groups'
  bool metrics_asked = false;               ///< for the run: a table shows the most telling ones
  std::vector<model::MetricGroup> sampled;  ///< by which metrics of samples are derived
  std::vector<model::MetricGroup> cpu;      ///< by which metrics of the CPU's events are derived
  std::vector<model::Peaks>
      peaks;                      ///< of every GPU that is known; among equals the first one counts
  std::vector<KernelKind> kinds;  ///< of kernels; the first that fits counts
  model::ReplayCosts replay_costs;  ///< what predictions need besides
};

}  // namespace rangescope::analyze
