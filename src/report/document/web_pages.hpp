// What is built from web/ and embedded in the program.
#pragma once

#include <string_view>

namespace rangescope::report {

/// The placeholder for the data in the report's page.
inline constexpr std::string_view kDataPlace = "__RANGESCOPE_DATA__";

/// The page of a report.
[[nodiscard]] std::string_view html_template();
/// The flame graph of a comparison: style and script of the element #flame, drawn from the JSON in #flame-data.
[[nodiscard]] std::string_view html_flame();

}  // namespace rangescope::report
