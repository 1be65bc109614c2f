#include "base/formula.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace rangescope::base {
namespace {

constexpr std::size_t kDeepest = 64;  // of the evaluation stack and of nested parentheses

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

// Recursive descent; every function returns false after the first error.
class FormulaParser {
 public:
  explicit FormulaParser(std::string_view text) : text_(text) {}

  Result<Formula> parse() {
    const bool is_formula =
        sum(0) && (skip(), at_ == text_.size() || refuse("unexpected character"));
    if (!is_formula) {
      return fail(Code::kConfig,
                  "formula '" + std::string(text_) + "': " + error_,
                  "column " + std::to_string(at_ + 1),
                  "Use + - * / ( ) min max, numbers and names.");
    }
    formula_.text_ = text_;
    return std::move(formula_);
  }

 private:
  using Op = Formula::Op;

  bool refuse(std::string why) {
    if (error_.empty())
      error_ = std::move(why);
    return false;
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  bool expect(char c) { return take(c) || refuse(std::string("expected '") + c + "'"); }

  // Every step's effect on the evaluation stack is known here, so that evaluation needs no check.
  bool emit(Op op, double number = 0, std::size_t name = 0) {
    formula_.steps_.push_back({op, number, name});
    if (op == Op::kNumber || op == Op::kName) {
      if (++height_ > kDeepest)
        return refuse("nested too deeply");
    } else if (op != Op::kNegate) {
      --height_;
    }
    return true;
  }

  bool sum(std::size_t depth) {
    if (depth > kDeepest)
      return refuse("nested too deeply");
    if (!product(depth))
      return false;
    for (;;) {
      const bool add = take('+');
      if (!add && !take('-'))
        return true;
      if (!product(depth) || !emit(add ? Op::kAdd : Op::kSubtract))
        return false;
    }
  }

  bool product(std::size_t depth) {
    if (!unary(depth))
      return false;
    for (;;) {
      const bool multiply = take('*');
      if (!multiply && !take('/'))
        return true;
      if (!unary(depth) || !emit(multiply ? Op::kMultiply : Op::kDivide))
        return false;
    }
  }

  bool unary(std::size_t depth) {
    if (take('-'))
      return atom(depth) && emit(Op::kNegate);
    return atom(depth);
  }

  bool atom(std::size_t depth) {
    if (take('('))
      return sum(depth + 1) && expect(')');
    skip();
    if (at_ == text_.size())
      return refuse("ends where a value is expected");
    if (is_digit(text_[at_]) || text_[at_] == '.')
      return number();
    if (!starts_name(text_[at_]))
      return refuse("expected a number, a name or '('");
    const std::size_t first = at_;
    while (at_ < text_.size() &&
           (starts_name(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.'))
      ++at_;
    const std::string name(text_.substr(first, at_ - first));
    if (take('(')) {
      if (name != "min" && name != "max")
        return refuse("unknown function '" + name + "'");
      return sum(depth + 1) && expect(',') && sum(depth + 1) && expect(')') &&
             emit(name == "min" ? Op::kMin : Op::kMax);
    }
    auto& names = formula_.names_;
    const auto found = std::find(names.begin(), names.end(), name);
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (found == names.end())
      names.push_back(name);
    return emit(Op::kName, 0, index);
  }

  bool number() {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{})
      return refuse("not a number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return emit(Op::kNumber, value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t height_ = 0;
  std::string error_;
  Formula formula_;
};

Result<Formula> Formula::parse(std::string_view text) {
  return FormulaParser(text).parse();
}

std::optional<double> Formula::evaluate(const Lookup& lookup) const {
  std::array<double, kDeepest + 1> stack{};
  std::size_t top = 0;
  for (const Step& step : steps_) {
    switch (step.op) {
      case Op::kNumber: stack[top++] = step.number; continue;
      case Op::kName: {
        const auto value = lookup(names_[step.name]);
        if (!value)
          return std::nullopt;
        stack[top++] = *value;
        continue;
      }
      case Op::kNegate: stack[top - 1] = -stack[top - 1]; continue;
      default: break;
    }
    const double right = stack[--top];
    double& left = stack[top - 1];
    switch (step.op) {
      case Op::kAdd: left += right; break;
      case Op::kSubtract: left -= right; break;
      case Op::kMultiply: left *= right; break;
      case Op::kDivide:
        if (right == 0)
          return std::nullopt;
        left /= right;
        break;
      case Op::kMin: left = std::min(left, right); break;
      case Op::kMax: left = std::max(left, right); break;
      default: break;
    }
  }
  if (top != 1 || !std::isfinite(stack[0]))
    return std::nullopt;
  return stack[0];
}

}  // namespace rangescope::base
