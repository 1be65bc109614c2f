// Text in HTML and XML.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::report {

/// Fit for an element or an attribute in double quotes: & < > " ' as entities, control characters and what is not UTF-8
/// made printable first (XML 1.0 has no way to write them).
[[nodiscard]] std::string markup_escaped(std::string_view text);

}  // namespace rangescope::report
