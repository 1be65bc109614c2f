// Numbers as a locale wrote them: which separators a file uses, and the numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rangescope::read {

/// Which character is the decimal point; separators of thousands are then whatever else separates
/// digits. kMixed: the raw page of ncu 2020 to 2024 under a German locale, where whole numbers have
/// dots between thousands
/// ("150.109.880.320", "1.696") and others a point and six decimals or a comma and two
/// ("11.050667", "0,24").
enum class Point : std::uint8_t { kUnknown, kDot, kComma, kMixed };

/// Learns the decimal point from the numbers of a file. A cell decides when it can be read in one
/// way only: two kinds of separators (the last is the point), one kind twice (thousands), or a
/// group that has not three digits (the point).
class PointGuess {
 public:
  void see(std::string_view cell, std::uint64_t line);
  /// The point where the file decides it, or where nothing depends on it.
  [[nodiscard]] Point point() const;
  [[nodiscard]] bool contradicts() const {
    return dot_line_ != 0 && comma_line_ != 0 && groups_line_ == 0;
  }
  [[nodiscard]] bool ambiguous() const {
    return dot_line_ == 0 && comma_line_ == 0 && groups_line_ == 0 && open_line_ != 0;
  }
  [[nodiscard]] std::uint64_t dot_line() const { return dot_line_; }
  [[nodiscard]] std::uint64_t comma_line() const { return comma_line_; }
  [[nodiscard]] std::uint64_t open_line() const { return open_line_; }
  [[nodiscard]] std::string_view open_cell() const { return open_cell_; }

 private:
  std::uint64_t dot_line_ = 0, comma_line_ = 0, open_line_ = 0;  // first line that shows it; 0 none
  std::uint64_t groups_line_ = 0;                                // dots between thousands
  std::string_view open_cell_;
};

/// A whole cell without separators of thousands, and with a point as in C; nothing where
/// parse_number() gives nothing. Never kMixed.
[[nodiscard]] std::optional<std::string> plain_number(std::string_view cell, Point point);
/// A whole cell as a number; nothing for text, "n/a", "nan", "inf" and numbers whose groups do not
/// fit.
[[nodiscard]] std::optional<double> parse_number(std::string_view cell, Point point);

}  // namespace rangescope::read
