// Call chains of CPU samples with the ranges that they are in: each sample once, whatever domains were open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::report {

struct Chain {
  std::vector<std::string> ranges;     ///< from the outermost; none outside every range
  std::uint32_t stack = model::kNone;  ///< index into CpuProfile::stacks
  std::int64_t samples = 0;
};

[[nodiscard]] std::vector<Chain> chains(const model::Report& report);

/// Frames from the outermost to the innermost.
[[nodiscard]] std::vector<std::uint32_t> frames_of(const model::CpuProfile& cpu, std::uint32_t stack);

}  // namespace rangescope::report
