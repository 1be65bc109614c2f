// Why warps of a kernel waited, and at which line: samples of the program counter, as they were
// read and as a report has them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/strings.hpp"

namespace rangescope::model {

/// An instruction that was sampled.
struct PcPlace {
  std::uint32_t function = 0;  ///< index into Session::kernel_names
  std::uint64_t offset = 0;    ///< in the function's code, bytes
  StringId file = 0;           ///< "" without line information
  std::uint32_t line = 0;
};

/// Warps that stood at a place for a reason, of one launch.
struct PcSample {
  std::uint32_t launch = 0;  ///< index into Session::launches
  std::uint32_t place = 0;   ///< index into PcSampling::places
  StringId reason = 0;       ///< "long_scoreboard", as CUPTI has it
  std::uint32_t samples = 0;
};

struct PcSampling {
  std::vector<PcPlace> places;
  std::vector<PcSample> samples;
};

/// A part of a kernel's samples.
struct StallShare {
  std::string reason;  ///< "long scoreboard"; "issued": the warp went on
  double share = 0;    ///< of the kernel's samples, 0..1
};

/// A line of source, or an instruction where the code has no line information.
struct StallLine {
  std::string file;        ///< "" without line information
  std::uint32_t line = 0;  ///< 0 without
  std::string function;    ///< where it lies, the short name
  std::uint64_t offset =
      0;               ///< of its instruction with most samples, in bytes of the function's code
  double share = 0;    ///< of the kernel's samples, 0..1
  std::string reason;  ///< most of its samples
  double reason_share = 0;  ///< of the kernel's samples
};

/// Samples of a kernel's warps, over those executions that were sampled.
struct Stalls {
  std::int64_t samples = 0;
  std::vector<StallShare> reasons;  ///< the most frequent first
  std::vector<StallLine> lines;     ///< the same, at most kMostStallLines
  /// Time of all its executions without the most frequent stall: share * total. At most so much,
  /// since warps that do not wait may wait for something else; absent where no stall or no time is
  /// known.
  std::optional<double> saves_ns;
};
inline constexpr std::size_t kMostStallLines = 10;

/// A reason to wait. A warp that was not selected was ready: another one of its scheduler went on.
[[nodiscard]] inline bool is_stall(std::string_view reason) {
  return reason != "issued" && reason != "not selected";
}
/// The most frequent reason to wait; null where there is none.
[[nodiscard]] inline const StallShare* top_stall(const Stalls& stalls) {
  for (const StallShare& share : stalls.reasons)
    if (is_stall(share.reason))
      return &share;
  return nullptr;
}

/// "kernel.cu:112", or "gemm+0x1a0" where the code has no line information.
[[nodiscard]] inline std::string place_text(const StallLine& line) {
  if (line.line > 0)
    return line.file.substr(line.file.rfind('/') + 1) + ":" + std::to_string(line.line);
  char offset[24];
  std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(line.offset));
  return line.function + offset;
}

}  // namespace rangescope::model
