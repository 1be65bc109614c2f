// The functions of one region on all sides: which of them take more of the CPU than they did?
//
// A function is the same where its name, language and the name of its file agree, of the program
// itself its name; its line may move. Its own time, as samples estimate it, is compared per
// occurrence, summed over a side's runs. Samples are counted as they come, so n of them are known
// to about sqrt(n): the interval and the test (normal, Bonferroni over the region's functions with
// ten samples or more) hold that alone, and not what differs from run to run. Repeated runs:
// analyze/compare/series/function_by_runs.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyze/names/matching.hpp"
#include "model/code_place.hpp"
#include "model/comparison.hpp"

namespace rangescope::analyze {

/// "forward (llama.py)", "memcpy [libc.so.6]", "main": a function as it is compared. That of a
/// program has no file: two builds may have two names. Hashes of a build are cut.
[[nodiscard]] std::string function_label(const std::string& name,
                                         const std::string& path,
                                         bool python);

/// Which functions are compared: all by their own time, or those of the program's own files, with
/// the libraries that they call.
enum class FunctionScope : std::uint8_t { kAll, kOwn };

/// A region's functions in all runs of one side put together.
struct FunctionSide {
  struct Function {
    double self_ns = 0;
    bool python = false;
    model::CodePlace place;  ///< of kOwn
  };
  double occurrences = 0, wall_ns = 0, interval_ns = 0;  ///< 0 where the functions are unknown
  bool all_listed = true;
  std::map<std::string, Function> functions;  ///< by label
  /// 0 where it is not listed.
  [[nodiscard]] double self_ns(const std::string& label) const;
};
[[nodiscard]] FunctionSide put_together(const std::vector<const model::DigestRegion*>& runs,
                                        FunctionScope scope);

/// Samples of a function on some side without which a change of it could not be significant.
inline constexpr double kFewestSamples = 10;

/// Of a region's wall time: functions that take less on all sides are not tested from run to run,
/// and fail no gate.
inline constexpr double kLeastFunctionShare = 0.01;

/// Is a tested change significant at `alpha`? Not where its interval holds "no change".
[[nodiscard]] model::Standing standing_of(const model::Change& change, double alpha);

/// At most model::kMostFunctions, what changed most first. Empty where a side did not sample the
/// CPU. A function that a side does not list is 0 there, and absent where that side lists no more
/// than the largest.
[[nodiscard]] std::vector<model::ComparedFunction> compare_functions(
    const MatchedRegion& region, double alpha, FunctionScope scope = FunctionScope::kAll);

/// Significant changes first, then the largest.
void sort_functions(std::vector<model::ComparedFunction>& functions);

}  // namespace rangescope::analyze
