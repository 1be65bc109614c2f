// What the words of other tools (perf, py-spy, nsys, ncu) are called here, as hints with the values
// that the user gave (peers.tsv).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::cli {

/// "Write --for 5s" for `--duration 5` in `line`; "" for an option that is no other tool's, or
/// whose equivalent the command does not have.
[[nodiscard]] std::string hint_for_peers_option(
    std::string_view option,
    const std::vector<std::string>& line,
    const std::function<bool(const std::string&)>& has_option);

/// "Write: rangescope attach 4711 --dump" for `dump --pid 4711`; "" for a word that is no other
/// tool's command. `words` are those behind it.
[[nodiscard]] std::string hint_for_peers_command(const std::string& name,
                                                 const std::vector<std::string>& words);

}  // namespace rangescope::cli
