// Options, formats, commands and configuration keys that earlier versions had, and what replaces
// them (removed.tsv).
#pragma once

#include <string>
#include <string_view>

namespace rangescope::base {

/// "-f otlp was removed: write ..." for what an earlier version had, as the table spells it: an
/// option "--name", a format "-f name", a command's word "runs name", a configuration key
/// "section.name". "" for anything else.
[[nodiscard]] std::string removal_hint(std::string_view written);

}  // namespace rangescope::base
