// A timeline that was on for windows only (--overhead): what the traced occurrences say of all.
//
// Windows were chosen without regard to what happened in them, so they are a sample of clusters. Of a region with N
// occurrences, m_w of them traced in window w with busy time y_w, the total is N R with R = sum y / sum m, and
// Var(R) = (1 - n / N) k / (k - 1) sum (y_w - R m_w)^2 / n^2 over k windows, n = sum m (the ratio estimator; W. G.
// Cochran, "Sampling Techniques", 3rd edition, chapters 6 and 9A). The interval is Student's, 95 %, of k - 1.
// O(occurrences * log windows).
#pragma once

#include "analyze/tree/regions.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

[[nodiscard]] bool in_windows(const model::Session& session);

/// The metric gpu_busy_estimate of each region, absent where fewer than five hold one of its occurrences, and a note.
/// `busy`: GPU busy time of each occurrence.
void add_estimates(const Regions& regions, const std::vector<std::uint64_t>& busy, model::Report& report);

/// How the source of an estimate begins.
inline constexpr std::string_view kEstimated = "estimated";

}  // namespace rangescope::analyze
