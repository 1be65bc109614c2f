// What of a run is compared: the numbers of each region by tag, without the trace.
//
// A digest is made from a report (analyze/compare/digest.hpp), read from a report.json or from a
// baseline file (runs/baselines.hpp). It holds what the report says; comparison divides sums by
// occurrences itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/loss.hpp"
#include "model/range.hpp"
#include "model/report.hpp"

namespace rangescope::model {

/// A function of a region's threads on the CPU, by its own time: what samples say.
struct DigestFunction {
  std::string name, file, module;  ///< as CpuFunction's
  bool python = false;
  double self_ns = 0;
  std::uint32_t line = 0;  ///< of the program's own functions; 0: unknown
};

/// A function in call chains, as runs are compared: its line may move.
struct ChainFrame {
  std::string name;  ///< "forward (llama.py)", "memcpy [libc.so.6]", "(cut)"
  std::string file;  ///< path of its file
  auto operator<=>(const ChainFrame&) const = default;
};

/// CPU samples of one chain of a region, outside its children.
struct DigestChain {
  std::vector<std::uint32_t> frames;  ///< indexes into Digest::frames, the outermost first
  std::int64_t samples = 0;
};

/// Paths of the rows of the run, which are compared like ranges: the names in the table of regions.
inline constexpr std::string_view kWholeRun = "whole run", kOutsideRanges = "outside ranges";

struct DigestRegion {
  std::vector<std::string> path;
  std::string domain;
  RangeKind kind = RangeKind::kPushPop;
  std::int64_t occurrences = 0;
  std::map<std::string, double>
      values;  ///< by measure tag or metrics.<name>; what is absent in the report is absent
  double cpu_interval_ns = 0;             ///< of CPU samples; 0: not sampled
  std::vector<DigestFunction> functions;  ///< the largest kMostFunctions
  /// Functions of the program's own files, with the libraries that they call; absent where a report
  /// or baseline does not have them.
  std::optional<std::vector<DigestFunction>> own_functions;
  std::vector<DigestChain> chains;  ///< only where the run's captures were read
  std::vector<double> wall_ns,
      busy_ns;  ///< sampled occurrences in time order; busy is empty without GPU data
  bool is_whole_run = false, is_outside_ranges = false;  ///< rows of the run: add_run_rows()
};

/// Is it a range of the program, and not a row of the run? Of any type that has both flags.
[[nodiscard]] constexpr bool is_range(const auto& row) {
  return !row.is_whole_run && !row.is_outside_ranges;
}

struct DigestKernel {
  std::string name;  ///< demangled where known
  std::int64_t calls = 0;
  double total_ns = 0;
};

struct Digest {
  RunInfo run;
  std::vector<std::string>
      devices;  ///< "NVIDIA H100 80GB HBM3, 132 SMs", one for each GPU used, sorted
  std::vector<DigestRegion> regions;
  std::vector<DigestKernel> kernels;
  std::vector<ChainFrame> frames;
  std::vector<Loss> losses;
  std::vector<Verdict> verdict;  ///< as the report has it
  bool judged = false;           ///< `verdict` is known: older baselines keep none
  bool partial_gpu = false;      ///< GPU work was recorded for a part of the run only
};

/// What is known of the whole run, or of its time outside ranges.
struct RunNumbers {
  std::optional<double> wall_ns, busy_ns;
  std::optional<double> peak_memory_bytes;  ///< of the fullest GPU
  double cpu_interval_ns = 0;               ///< as in DigestRegion
  std::vector<DigestFunction> functions;
  std::optional<std::vector<DigestFunction>> own_functions;
};

/// Adds the rows "outside ranges" and "whole run", of one instance each. A row of which neither the
/// time nor the memory is known is not added, nor one whose name a range of the program has.
/// CPU samples outside ranges belong to the whole run where the program has no ranges.
void add_run_rows(RunNumbers whole_run, RunNumbers outside, Digest& digest);

/// What a person named on the command line: one run, or repeated runs of one program.
struct Side {
  std::string label;
  std::vector<Digest> runs;
};

}  // namespace rangescope::model
