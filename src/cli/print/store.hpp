// What `rangescope runs` prints of a team's store (runs/store.hpp): the list of pushes, the history of a region.
#pragma once

#include <span>
#include <string>

#include "runs/store.hpp"

namespace rangescope::cli {

[[nodiscard]] std::string stored_table(std::span<const runs::Stored> pushes, std::size_t width, bool color);
[[nodiscard]] std::string stored_json(std::span<const runs::Stored> pushes);

/// A line a push: its commit, the median over its runs, and the change from the push of the same machine before it.
[[nodiscard]] std::string history_table(const runs::History& history, const std::string& tag, std::size_t width,
                                        bool color);
[[nodiscard]] std::string history_json(const runs::History& history, const std::string& tag);
/// The same as one offline page with a plot: medians in a line for each machine, a bar from least to most.
[[nodiscard]] std::string history_html(const runs::History& history, const std::string& tag);

}  // namespace rangescope::cli
