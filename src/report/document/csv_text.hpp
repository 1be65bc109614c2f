// Fields and rows of CSV: RFC 4180, quoted when a field holds a comma, a quote or a line end;
// quotes doubled; rows end in CR LF. Names are made printable before, so that a row is a line in
// whatever reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::string csv_field(std::string_view text);
/// The shortest text that reads back as the same number; empty where there is none.
[[nodiscard]] std::string csv_number(std::optional<double> value);
/// The fields as they are, with commas between.
void csv_row(Sink& sink, const std::vector<std::string>& fields);

/// CSV for a spreadsheet: a cell that begins with = + - @ (or a tab or line end before one) and is
/// no number gets an apostrophe in front, since a spreadsheet would compute it. Names of ranges and
/// kernels come from the program.
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
