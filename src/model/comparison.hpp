// The answer to "what changed": two or more sides, each one run or several, region by region and
// value by value.
//
// Sides are compared with the first one. Values that add up over occurrences are per occurrence, so
// that a run with more steps compares. How noise is measured and what "stands out" means:
// docs/manual/compare.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/code_place.hpp"
#include "model/digest.hpp"
#include "model/range.hpp"
#include "model/report.hpp"

namespace rangescope::model {

enum class Standing : std::uint8_t {
  kUntested,  ///< no test was possible; Change::why says it
  kNoise,     ///< does not stand out of the noise
  kMore,      ///< stands out: larger than in the first side
  kLess,      ///< stands out: smaller than in the first side
};

/// One value of one side against the first side.
struct Change {
  double difference = 0;        ///< in the value's unit
  std::optional<double> ratio;  ///< value / value of the first side; absent where that is 0
  std::optional<double> low,
      high;  ///< confidence interval of the ratio; absent where none can be given
  double confidence =
      0;  ///< of the interval, 0..1: 0.95, less where there are too few runs for that
  std::optional<double>
      p;  ///< probability of such a change by chance, over all regions tested together
  Standing standing = Standing::kUntested;
  std::string why;        ///< of kUntested
  bool is_exact = false;  ///< both values were counted: compared as they are, without a test
};

[[nodiscard]] inline bool is_significant(const Change& change) {
  return change.standing == Standing::kMore || change.standing == Standing::kLess;
}

struct ComparedValue {
  std::string tag, title, unit;
  bool per_occurrence = false;                ///< a sum, divided by the number of occurrences
  std::vector<std::optional<double>> values;  ///< of each side: the median over its runs
  std::vector<Change> changes;                ///< of each side but the first
};

/// Does some side have it?
[[nodiscard]] inline bool is_known(const ComparedValue& value) {
  const auto has_number = [](const std::optional<double>& number) { return number.has_value(); };
  return std::ranges::any_of(value.values, has_number);
}

/// A function of a region's threads, by its time on the CPU. Only what sampling makes uncertain is
/// tested.
struct ComparedFunction {
  std::string name;  ///< "forward (llama.py)", "memcpy [libc.so.6]"
  bool python = false;
  CodePlace place;  ///< of the program's own functions, in the last side that has it
  std::vector<std::optional<double>> share;  ///< of the region's wall time, of each side
  ComparedValue self;                        ///< ns an occurrence
};

/// CPU samples of one chain of a region, outside its children, summed over the runs of each side.
struct ComparedChain {
  std::vector<std::uint32_t> frames;  ///< indexes into Comparison::frames, the outermost first
  std::vector<std::int64_t> samples;  ///< of each side
};

struct ComparedRegion {
  std::vector<std::string>
      path;  ///< as in the sides after the first, where --rename joined two names
  std::string domain;
  RangeKind kind = RangeKind::kPushPop;
  std::vector<std::optional<double>>
      occurrences;  ///< of each side, median over runs; absent where it has no such path
  std::vector<ComparedValue> values;
  std::vector<ComparedFunction>
      functions;  ///< what changed most first; empty unless all sides sampled the CPU
  /// Functions of the program's own files, with the libraries that they call.
  std::vector<ComparedFunction> own_functions;
  std::vector<ComparedChain>
      chains;  ///< by their frames; sides of which only a report is there have none
  std::vector<double> sample_ns;  ///< CPU time per occurrence that one sample of each side
                                  ///< represents; 0: none were taken
  std::string renamed_from;  ///< its path in the first side, where --rename joined two; else ""
  bool is_whole_run = false, is_outside_ranges = false;  ///< as in DigestRegion
};

/// Kernels of one folded name over the whole run.
struct ComparedKernel {
  std::string name;
  bool folded = false;  ///< several names, or different ones in the sides, stand behind it
  std::vector<std::optional<double>> calls;  ///< of each side, median over runs
  ComparedValue total;                       ///< ns over the whole run
  ComparedValue per_call;                    ///< ns
};

/// Something of the surroundings that is not the same on all sides.
struct EnvironmentDifference {
  std::string what;                 ///< "GPU", "arguments", "driver", "env.CUDA_VISIBLE_DEVICES"
  std::vector<std::string> values;  ///< of each side; "": unknown, "(none)": known to be empty
  bool heavy = false;  ///< times are expected to differ because of it: another GPU, driver, CPU
};

struct RenameOffer {
  std::size_t side = 1;  ///< the side that has `to`
  std::string from, to;  ///< paths as text
  std::string reason;    ///< "same parent, same count, 3 of 3 children"
};

struct ComparedSide {
  std::string label;
  std::size_t runs = 1;
  std::vector<std::string> command;
  std::vector<std::string> devices;
  double duration_ns = 0;  ///< median over runs
  std::size_t failed =
      0;  ///< runs whose program ended by a signal or with another exit code than 0
};

/// What the verdict of the first side predicted of a cure, and what came in another side, per
/// instance of the range.
struct ComparedPrediction {
  std::size_t side = 1;
  std::string cure;  ///< its id
  std::string path;  ///< of the range that was predicted, in the first side
  std::string text;  ///< the line of the verdict
  double before_ns = 0;
  double predicted_ns = 0, low_ns = 0, high_ns = 0;
  bool is_bound = false;              ///< the recording did not replay: at most that was saved
  std::optional<double> realised_ns;  ///< absent where the side does not have the range
};

struct Comparison {
  std::vector<ComparedSide> sides;
  std::string noise;      ///< "runs" or "occurrences": what the spread was taken from
  std::string method;     ///< the test, in one sentence
  double alpha = 0.05;    ///< chance of one or more false alarms over all values of one side
  std::size_t tests = 0;  ///< values tested together, of one side
  std::vector<EnvironmentDifference> environment;
  std::vector<ComparedRegion> regions;  ///< on all sides; what changed most first
  bool in_turns = false;                ///< the runs of the sides were made in turns
  std::string largest_gone;             ///< the first side's largest range, if the last lacks it
  std::vector<ComparedRegion> missing;  ///< not on all sides
  std::vector<RenameOffer> renames;     ///< offered, not applied
  std::vector<ComparedKernel> kernels;  ///< what changed most first
  std::vector<ChainFrame> frames;
  std::vector<ComparedPrediction> predictions;  ///< side by side, in the order of the verdict
  std::vector<std::string> notes;               ///< what a reader of the numbers should know
};

/// Rows of the run lack values that ranges have: those that no side has are left out.
[[nodiscard]] inline bool is_compared(const ComparedRegion& region, const ComparedValue& value) {
  return is_range(region) || is_known(value);
}

/// Is it the region, or below it?
[[nodiscard]] inline bool is_within(const ComparedRegion& region, const ComparedRegion& outer) {
  if (region.domain != outer.domain || region.kind != outer.kind)
    return false;
  return std::ranges::mismatch(outer.path, region.path).in1 == outer.path.end();
}

/// Is no region of the comparison inside of it?
[[nodiscard]] inline bool is_innermost(const ComparedRegion& region, const Comparison& comparison) {
  return std::ranges::none_of(comparison.regions, [&](const ComparedRegion& inner) {
    return inner.path.size() > region.path.size() && is_within(inner, region);
  });
}

/// "untested", "noise", "more", "less"
[[nodiscard]] constexpr std::string_view standing_name(Standing standing) {
  constexpr std::string_view kNames[] = {"untested", "noise", "more", "less"};
  return kNames[static_cast<std::size_t>(standing)];
}

}  // namespace rangescope::model
