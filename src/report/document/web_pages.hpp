// Pages that are embedded in the program: what is built from web/, and the frame of a comparison.
#pragma once

#include <string_view>

namespace rangescope::report {

/// The placeholder for the data in the report's page.
inline constexpr std::string_view kDataPlace = "__RANGESCOPE_DATA__";

/// The page of a report.
[[nodiscard]] std::string_view html_template();
/// The flame graph of a comparison: style and script of the element #flame, drawn from the JSON in
/// #flame-data.
[[nodiscard]] std::string_view html_flame();

/// The placeholder for the document in a comparison's page.
inline constexpr std::string_view kPagePlace = "__RANGESCOPE_PAGE__";
/// The page of a comparison: style, and the script that filters its tables.
[[nodiscard]] std::string_view html_comparison();

}  // namespace rangescope::report
