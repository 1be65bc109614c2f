// The page, as built from web/ and embedded in the program.
#pragma once

#include <string_view>

namespace rangescope::report {

/// What stands in the page where the data goes.
inline constexpr std::string_view kDataPlace = "__RANGESCOPE_DATA__";

[[nodiscard]] std::string_view html_template();

}  // namespace rangescope::report
