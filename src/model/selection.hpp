// What is meant: ranges and kernels, parsed once from what a person writes. The injected library's
// plan, the command lines of ncu and nsys, the analysis, the comparison and the doctor all take
// these as they are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/name_regex.hpp"
#include "model/range_expression.hpp"

namespace rangescope::model {

/// One thing that was written: `decode` is a range of that name, of either kind.
struct RangeTerm {
  std::string written;
  std::vector<RangeExpression>
      forms;  ///< in ncu's grammar, push/pop first: two where the kind is not said

  [[nodiscard]] bool kind_said() const { return forms.size() == 1; }
  /// Any of the forms names the region of this path, or one that it lies in.
  [[nodiscard]] bool names_region(std::string_view domain,
                                  std::span<const std::string_view> path,
                                  RangeKind kind) const;
  /// Any of them names the region itself.
  [[nodiscard]] bool names_itself(std::string_view domain,
                                  std::span<const std::string_view> path,
                                  RangeKind kind) const;
  bool operator==(const RangeTerm& other) const { return written == other.written; }
  /// Does it choose a region of this state? A start/end region has every range open that is named
  /// ('A,B': A and B).
  [[nodiscard]] bool chooses(const RangeState& state) const;
};

/// The terms of one written text (`prefill;decode` has two). kUsage where nothing sensible can be
/// made of it. `notes`, where given, gets what was taken for what.
[[nodiscard]] base::Result<std::vector<RangeTerm>> parse_terms(
    std::string_view written, std::vector<std::string>* notes = nullptr);

/// Texts of all forms in ncu's grammar, in order, without repetition.
[[nodiscard]] std::vector<std::string> expressions_of(std::span<const RangeTerm> terms);
/// What was written, in order.
[[nodiscard]] std::vector<std::string> written_of(std::span<const RangeTerm> terms);

struct RangeSelection {
  std::vector<RangeTerm> include;  ///< any of them; empty: every range
  std::vector<RangeTerm> exclude;  ///< none of them: wins over include
  std::vector<std::string> notes;  ///< what was taken for what, for people

  [[nodiscard]] static base::Result<RangeSelection> parse(
      const std::vector<std::string>& include, const std::vector<std::string>& exclude = {});
  [[nodiscard]] bool empty() const { return include.empty() && exclude.empty(); }
  /// Is the region of this path chosen?
  [[nodiscard]] bool chooses(std::string_view domain,
                             std::span<const std::string_view> path,
                             RangeKind kind) const;
  bool operator==(const RangeSelection&) const = default;
};

/// `regex:"gemm"` and `"gemm"` without the quotes that the shell did not take away.
[[nodiscard]] std::string kernel_pattern_without_quotes(std::string_view written);

/// A kernel's exact demangled, short or mangled name, or `regex:` and an expression that is
/// searched for in the demangled and the short name.
class KernelPattern {
 public:
  [[nodiscard]] static base::Result<KernelPattern> parse(std::string_view written);
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool is_regex() const { return regex_.has_value(); }
  [[nodiscard]] bool matches(std::string_view demangled,
                             std::string_view short_name,
                             std::string_view mangled) const;
  bool operator==(const KernelPattern& other) const { return text_ == other.text_; }

 private:
  std::string text_;
  std::optional<NameRegex> regex_;
};

struct KernelSelection {
  std::vector<KernelPattern> include;  ///< any of them; empty: every kernel
  std::vector<KernelPattern> exclude;  ///< none of them: wins over include

  [[nodiscard]] static base::Result<KernelSelection> parse(
      const std::vector<std::string>& include, const std::vector<std::string>& exclude = {});
  [[nodiscard]] bool empty() const { return include.empty() && exclude.empty(); }
  [[nodiscard]] bool chooses(std::string_view demangled,
                             std::string_view short_name,
                             std::string_view mangled) const;
  bool operator==(const KernelSelection&) const = default;
};

}  // namespace rangescope::model
