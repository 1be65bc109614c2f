#include "report/csv_text.hpp"

#include <fmt/format.h>
#include <cmath>

#include "base/text.hpp"

namespace rangescope::report {

std::string csv_field(std::string_view text) {
  const std::string shown = base::printable(text);
  if (shown.find_first_of(",\"\r\n") == std::string::npos) return shown;
  return "\"" + base::replace_all(shown, "\"", "\"\"") + "\"";
}

std::string csv_number(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : std::string();
}

void csv_row(Sink& sink, const std::vector<std::string>& fields) {
  sink.write(base::join(fields, ",") + "\r\n");
}

}  // namespace rangescope::report
