// The counter plan (wire/counter_plan.hpp), parsed: which metrics of which ranges to count.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/counter_plan.hpp"
#include "wire/range_match.hpp"

namespace rangescope::inject::counters {

using wire::counters::kMaxConfigurations;
using wire::counters::kMaxElements;
using wire::counters::kMaxExpressions;
using wire::counters::kMaxKernels;
using wire::counters::kMaxMetrics;

/// One name of an expression, or a gap between names.
struct Element {
  using Kind = wire::RangeElement;
  Kind kind = Kind::kName;
  const char* text = nullptr;
  std::size_t bytes = 0;
  void* regex = nullptr;  ///< regex_t, when the expression is a regular one
};

struct Expression {
  bool start_end = false;
  bool bottom = false, top = false;
  Element domain;  ///< text null: the default domain
  Element elements[kMaxElements];
  std::size_t count = 0;
};

/// A name on a stack of ranges.
struct Piece {
  const char* text;
  std::size_t bytes;
};

enum class Per : std::uint8_t { kRange, kKernel, kBoth };

struct Plan {
  const char* metrics[kMaxMetrics];  ///< NUL-terminated, never freed: CUPTI keeps the pointers
  /// The groups that need the metric, "memory,quick"; null: none was named.
  const char* groups[kMaxMetrics] = {};
  std::size_t metric_count = 0;
  /// The first metric of each configuration; after the last configuration metric_count.
  std::size_t begins[kMaxConfigurations + 1] = {};
  std::size_t configuration_count = 0;
  bool pc = false;  ///< samples of the program counter instead of metrics
  Per per = Per::kRange;
  std::uint32_t rounds = 5;
  std::int32_t skip_first = -1;
  std::uint32_t every = 1;
  std::uint32_t trace_first = 0;
  std::int64_t patience_ms = 10000;
  std::int64_t arm_wait_ms = 100;
  bool flush_cache = false;
  bool by_payload = false;
  const char* resume = nullptr;  ///< file; null: this is the only run
  bool wait = false;
  Expression include[kMaxExpressions];
  std::size_t include_count = 0;
  Expression exclude[kMaxExpressions];
  std::size_t exclude_count = 0;
  Element kernels[kMaxKernels];     ///< names; none: all kernels
  Element no_kernels[kMaxKernels];  ///< names of kernels to leave out
  std::size_t kernel_count = 0;
  std::size_t no_kernel_count = 0;
  char* text = nullptr;  ///< the text that names and metrics point into
};

/// Parses a copy of `text`, which the plan keeps. On failure false, and line and reason in `why`.
[[nodiscard]] bool parse_plan(
    const char* text, std::size_t bytes, Plan& plan, char* why, std::size_t why_bytes);
/// Frees the memory of a plan that is not used, also of one that could not be parsed. A plan in use
/// is never freed.
void release_plan(Plan& plan);

/// Whether the expression matches this push/pop stack (bottom to top) of this domain ("" is the
/// default domain). Start/end expressions never do. O(elements * depth).
[[nodiscard]] bool matches_stack(const Expression& expression,
                                 Piece domain,
                                 const Piece* stack,
                                 std::size_t depth);
/// Whether a start/end expression names this range.
[[nodiscard]] bool matches_start_end(const Expression& expression, Piece domain, Piece name);

/// Whether the range on top of this stack is a target: an include expression begins to match with
/// it, and no exclude expression matches. So for `decode/` only decode itself is a target, not the
/// ranges inside.
[[nodiscard]] bool is_target(const Plan& plan, Piece domain, const Piece* stack, std::size_t depth);
[[nodiscard]] bool is_start_end_target(const Plan& plan, Piece domain, Piece name);

/// Whether a kernel with these names is chosen, by the rules of model::KernelSelection.
[[nodiscard]] bool chooses_kernel(const Plan& plan,
                                  Piece demangled,
                                  Piece short_name,
                                  Piece mangled);

}  // namespace rangescope::inject::counters
