// The table of losses (model/loss_kinds.hpp) as a page: `rangescope help losses` and docs/manual/losses.md.
#pragma once

#include <string>

namespace rangescope::report {

/// Markdown.
[[nodiscard]] std::string loss_page();

}  // namespace rangescope::report
