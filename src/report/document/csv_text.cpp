#include "report/document/csv_text.hpp"

#include <fmt/format.h>
#include <cmath>

#include "base/text.hpp"

namespace rangescope::report {

std::string csv_field(std::string_view text) {
  const std::string shown = base::printable(text);
  if (shown.find_first_of(",\"\r\n") == std::string::npos)
    return shown;
  return "\"" + base::replace_all(shown, "\"", "\"\"") + "\"";
}

std::string csv_number(std::optional<double> value) {
  if (!value || !std::isfinite(*value))
    return {};
  return fmt::format("{}", *value);
}

void csv_row(Sink& sink, const std::vector<std::string>& fields) {
  sink.write(base::join(fields, ",") + "\r\n");
}

void FormulaGuard::end_cell() {
  constexpr std::string_view kFormulaStarts = "=+-@\t\r\n";
  const std::size_t begin = cell_.starts_with('"') ? 1 : 0;
  const bool starts_formula =
      cell_.size() > begin && kFormulaStarts.find(cell_[begin]) != std::string_view::npos;
  if (starts_formula && !base::to_double(cell_))
    cell_.insert(begin, 1, '\'');
  under_.write(cell_);
  cell_.clear();
}

void FormulaGuard::write(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '"')
      quoted_ = !quoted_;  // a doubled quote toggles twice
    const bool ends_cell = c == ',' || c == '\r' || c == '\n';
    if (quoted_ || !ends_cell) {
      cell_ += c;
      continue;
    }
    end_cell();
    under_.write({&c, 1});
  }
}

base::Result<void> FormulaGuard::finish() {
  end_cell();
  return under_.finish();
}

}  // namespace rangescope::report
