// Arithmetic over named values, as users and metric groups write it: "2 * (reads + writes) / time".
//
// Grammar: sum := product {('+'|'-') product}; product := unary {('*'|'/') unary}; unary := ['-']
// atom; atom := number | name | '(' sum ')' | ('min'|'max') '(' sum ',' sum ')'. Names are letters,
// digits, '_', '.', not starting with a digit. Parsed once into postfix code; evaluation is
// O(length), allocates nothing and has no value when a name has none or a division is by zero.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::base {

class Formula {
 public:
  using Lookup = std::function<std::optional<double>(std::string_view)>;

  /// kConfig with the column where parsing stopped.
  [[nodiscard]] static Result<Formula> parse(std::string_view text);
  [[nodiscard]] std::optional<double> evaluate(const Lookup& lookup) const;
  /// Distinct names in order of appearance.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  enum class Op : unsigned char {
    kNumber,
    kName,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kNegate,
    kMin,
    kMax
  };
  struct Step {
    Op op = Op::kNumber;
    double number = 0;
    std::size_t name = 0;
  };
  friend class FormulaParser;
  std::string text_;
  std::vector<Step> steps_;
  std::vector<std::string> names_;
};

}  // namespace rangescope::base
