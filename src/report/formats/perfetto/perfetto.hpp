// Timelines for other viewers: Perfetto's native format (`perfetto`) and Chrome's JSON trace events (`chrome`).
//
// Both are streamed, lane after lane: beyond the session itself they need one 32-bit index an event, and for Perfetto
// one bit a name.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

[[nodiscard]] std::unique_ptr<Exporter> make_perfetto();
[[nodiscard]] std::unique_ptr<Exporter> make_chrome();

}  // namespace rangescope::report
