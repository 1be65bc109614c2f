// `rangescope --version`: which build this is and the formats that it writes.
#pragma once

#include <string>

namespace rangescope::cli {

/// "rangescope 0.2.0", then a line of commit, build type and CUPTI's headers, as far as the build
/// knew them.
[[nodiscard]] std::string version_text();
/// The same with the versions of the formats that are written, as one JSON object
/// (`rangescope.version/1`).
[[nodiscard]] std::string version_json();

}  // namespace rangescope::cli
