// Range expressions: Nsight Compute's NVTX filter grammar, parsed, matched, and made out of what
// people write.
//
//   EXPR     := ["regex:"] [DOMAIN "@"] (STARTEND | PUSHPOP)
//   STARTEND := NAME {"," NAME}                                  all of these start/end ranges are
//   open in the process PUSHPOP  := ["["] NAME {"/" (NAME | "*" | "+")} ["/"] ["]"]  the push/pop
//   stack, bottom to top; at least one of / [
//   ]
//
//   A/ in the stack   [A at the bottom   A] at the top   A/B directly below   A/*/B below   A/+/B
//   one between
//
// `@ , [ ] / * +` in names are escaped with a backslash. Without a domain the default domain is
// meant. Names are exact and case-sensitive; with `regex:` names and domain are regular
// expressions, searched for (use ^ and $). A character class at the very start or end is kept from
// being an anchor by a slash: `regex:/[AB]/`, `regex:/[AB/]`.
//
// parse() takes exactly what ncu takes, less what ncu accepts without ever matching anything
// (`A/,B`, `[A]`, `A/A`, quotes, `;` lists ...): those are refused with the reason and the nearest
// right form. normalize() takes also the plain forms (`decode`, `decode*`, `LLM@*`,
// `prefill;decode`, a path as tables print it: `decode > layer_0`) and answers with expressions
// that parse() takes.
//
// Source: the "NVTX Filtering" chapter of the Nsight Compute documentation; the truth tables in
// tests/golden/nvtx-grammar, run on ncu 2022.3.0 and 2024.1.1. Regular expressions are RE2's:
// linear time, no back-references. Matching a stack of depth d with k elements costs O(k d) name
// tests (wire/range_match.hpp).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/name_regex.hpp"
#include "model/range.hpp"
#include "wire/range_match.hpp"

namespace rangescope::model {

/// How ncu spells the default domain; in this model its name is "".
inline constexpr std::string_view kDefaultDomain = "<default domain>";
/// How tables mark a start/end range, behind its name.
inline constexpr std::string_view kStartEndMark = " [start/end]";
/// What makes an expression, or a kernel's name, a regular one.
inline constexpr std::string_view kRegexPrefix = "regex:";

/// The NVTX state around a kernel launch, or the one of a region: a region of path [A,
/// B] has the stack A, B. A domain of "" is the default domain.
struct RangeState {
  struct Stack {
    std::string_view domain;
    std::vector<std::string_view> names;  ///< bottom to top, of the launching thread
  };
  struct Open {
    std::string_view domain;
    std::string_view name;
  };
  std::vector<Stack> push_pop;
  std::vector<Open> start_end;  ///< open in the process
};

class RangeExpression {
 public:
  struct Element {
    using Kind = wire::RangeElement;
    Kind kind = Kind::kName;
    std::string text;  ///< the name with its escapes undone, or the regular expression
  };
  /// The parts, for who translates an expression for another tool.
  struct Parts {
    RangeKind kind = RangeKind::kPushPop;
    bool regex = false;
    std::optional<std::string> domain;  ///< absent: the default domain. "" is never stored
    bool bottom = false, top = false;   ///< `[` and `]`
    std::vector<Element> elements;      ///< push/pop: bottom to top; start/end: names only
  };

  /// kUsage, with the expression as place and the nearest right form as hint, for what ncu rejects
  /// and for what ncu accepts but can never match.
  [[nodiscard]] static base::Result<RangeExpression> parse(std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const Parts& parts() const { return parts_; }

  /// Does ncu profile a kernel that is launched in this state?
  [[nodiscard]] bool matches(const RangeState& state) const;
  /// The push/pop half of it: one domain's stack, bottom to top. False for a start/end expression.
  [[nodiscard]] bool matches_stack(std::string_view domain,
                                   std::span<const std::string_view> names) const;
  /// Does it name the region of this path, or one that it lies in? 'A,B' names A and names B.
  [[nodiscard]] bool names_region(std::string_view domain,
                                  std::span<const std::string_view> path,
                                  RangeKind kind) const;
  /// Does it name the region itself, and not only one that it lies in?
  [[nodiscard]] bool names_itself(std::string_view domain,
                                  std::span<const std::string_view> path,
                                  RangeKind kind) const;
  /// Is this start/end range one that the expression names? (`A,B` names A and names B.) False for
  /// a push/pop expression.
  [[nodiscard]] bool names_start_end(std::string_view domain, std::string_view name) const;
  /// Is this one of the names in it, whatever its domain and place?
  [[nodiscard]] bool has_name(std::string_view name) const;

 private:
  RangeExpression() = default;
  [[nodiscard]] bool domain_matches(std::string_view domain) const;
  [[nodiscard]] bool name_matches(std::size_t element, std::string_view name) const;

  std::string text_;
  Parts parts_;
  std::optional<NameRegex> domain_;              ///< of a regular expression
  std::vector<std::optional<NameRegex>> names_;  ///< of each element: absent for literals and gaps
};

/// What a person wrote, as expressions that parse() takes. Both are there when it is not said which
/// kind is meant.
struct NormalizedTerm {
  std::string written;                   ///< this part of it: "decode*"
  std::optional<std::string> push_pop;   ///< "regex:^decode.*/"
  std::optional<std::string> start_end;  ///< "regex:^decode.*"
};

struct Normalized {
  std::vector<NormalizedTerm> terms;  ///< any of them (or): never empty
  std::vector<std::string> notes;     ///< what was changed and why, one sentence each, for people
};

/// ncu's grammar and the plain forms: `decode` (a range of that name, of either kind), `decode*`
/// (names that begin so), `LLM@*` (every range of the domain LLM), `*@decode` (any domain),
/// `A::A1`, `prefill;decode` (a list), quotes around. `LLM@step > layer_*` is a path from the
/// outermost range, its names as they are but for `*`; a name that holds " > " is written with a
/// slash (`a > b/`) or as a regular expression. An expression that is right and says its kind comes
/// back as it is. kUsage where nothing sensible can be made of it.
[[nodiscard]] base::Result<Normalized> normalize(std::string_view written);

/// A literal name with the grammar's characters escaped: `a/b [x]` -> `a\/b \[x\]`.
[[nodiscard]] std::string escape_range_name(std::string_view name);

/// A literal as a regular expression that matches it and nothing else, without anchors: `a.b` ->
/// `a\.b`.
[[nodiscard]] std::string escape_regex(std::string_view name);

/// An expression that selects the region of this path and what is below it: "LLM@[decode/layer0",
/// "decode/", "request".
[[nodiscard]] std::string expression_of(std::string_view domain,
                                        std::span<const std::string> path,
                                        RangeKind kind);

}  // namespace rangescope::model
