// Fields and rows of CSV (RFC 4180): a field with a comma, a quote or a line end is quoted, quotes
// are doubled, rows end in CR LF. Fields are made printable first, so that every row is one line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::string csv_field(std::string_view text);
/// The shortest text that reads back as the same number; empty without a finite value.
[[nodiscard]] std::string csv_number(std::optional<double> value);
/// Writes `fields` unchanged, separated by commas.
void csv_row(Sink& sink, const std::vector<std::string>& fields);

/// Guards a spreadsheet against formulas in names that come from the program: a cell that starts
/// with = + - @ (or a tab or line end) and is not a number gets a leading apostrophe.
class FormulaGuard final : public Sink {
 public:
  explicit FormulaGuard(Sink& under) : under_(under) {}
  void write(std::string_view bytes) override;
  [[nodiscard]] base::Result<void> finish() override;

 private:
  void end_cell();
  Sink& under_;
  std::string cell_;
  bool quoted_ = false;
};

}  // namespace rangescope::report
