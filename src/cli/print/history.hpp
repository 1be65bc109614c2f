// What `rangescope runs` prints of a team's store (runs/store.hpp): the list of pushes, and the
// history of a region.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "report/document/document.hpp"
#include "runs/store.hpp"

namespace rangescope::cli {

/// One line a push.
[[nodiscard]] report::Grid stored_grid(std::span<const runs::Stored> pushes);
/// The same as JSON: an array of objects; unknown is null.
[[nodiscard]] nlohmann::ordered_json stored_json(std::span<const runs::Stored> pushes);

/// A line a push, below the name of the region: its commit, the median over its runs, and the
/// change from the push of the same machine before it. `tag`: of the measure.
[[nodiscard]] report::Document history_document(const runs::History& history,
                                                const std::string& tag);
/// rangescope.history/1
[[nodiscard]] std::string history_json(const runs::History& history, const std::string& tag);
/// One offline page with a plot: medians in a line for each machine, a bar from least to most.
[[nodiscard]] std::string history_html(const runs::History& history, const std::string& tag);

}  // namespace rangescope::cli
