// Peaks of a GPU that no file describes, from a report of ncu that holds its roofline: what the hardware does in a
// cycle (peak_sustained) times the clock that was measured.
#pragma once

#include <optional>

#include "model/peaks.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// The highest that any result says; nothing where none names memory and some FLOPs. O(values).
[[nodiscard]] std::optional<model::Peaks> counted_peaks(const model::Session& session);

}  // namespace rangescope::analyze
