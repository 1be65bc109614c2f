// The syntax half of range expressions: text to parts, or why not and what was probably meant. Only
// range_expression.cpp and range_normalize.cpp use it; everybody else includes
// model/range_expression.hpp, where the grammar stands.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/range_expression.hpp"

namespace rangescope::model {

/// Why an expression is refused, and the nearest right forms: one term each for what should be
/// separate expressions.
struct RangeRefusal {
  std::string reason;
  std::vector<NormalizedTerm> terms;
};

[[nodiscard]] std::variant<RangeExpression::Parts, RangeRefusal> parse_range_syntax(
    std::string_view text);

/// Splits at `separator` where no backslash stands before it; the pieces keep their escapes.
[[nodiscard]] std::vector<std::string_view> split_unescaped(std::string_view text,
                                                            char separator,
                                                            bool regex);

}  // namespace rangescope::model
